"""Compilation of numerical functions to machine code that uses vector registers."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

import numba
from llvmlite.binding import Linkage
from numba import config, extending, types
from numba.core import (
    codegen,
    compiler,
    compiler_machinery,
    typed_passes,
    typing,
    untyped_passes,
)
from numba.core.targetconfig import ConfigStack

from wolfstream.solver.compile_cache import compile_cache

Function = TypeVar("Function", bound=Callable[..., object])

# Most functions of these modules carry no types.
_extending: Any = extending
_config: Any = config
_types: Any = types
_typing: Any = typing
_codegen: Any = codegen
_compiler: Any = compiler
_machinery: Any = compiler_machinery
_untyped: Any = untyped_passes
_typed: Any = typed_passes
_ConfigStack: Any = ConfigStack


class _TypeInference(_typed.NopythonTypeInference):  # type: ignore[misc]
    """numba's type inference, in which all callers compile their calls under the same options.

    numba keeps what a call needs by the options of the caller, and so compiles it again for a
    caller that Python can call, which has another one. It looks calls up often, and finds equal
    options sooner where they are one object.
    """

    _name = "solver_type_inference"
    _shared: ClassVar[dict[Any, Any]] = {}

    def run_pass(self, state: Any) -> bool:
        options = state.flags.copy()
        options.no_cpython_wrapper = True
        with _ConfigStack().enter(self._shared.setdefault(options, options)):
            return bool(super().run_pass(state))


class _FewerPasses(_compiler.CompilerBase):  # type: ignore[misc]
    """numba's passes without those for what no function here has; the machine code is the same.

    These are for closures, comprehensions and reductions, `with`, exceptions made of values,
    arrays that expressions make, functions that ask for literals, and those that are inlined
    before types are inferred.
    """

    def define_pipelines(self) -> list[Any]:
        passes = _machinery.PassManager("solver")
        for each in _PASSES:
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]


_PASSES = (
    _untyped.TranslateByteCode,
    _untyped.FixupArgs,
    _untyped.IRProcessing,
    _untyped.RewriteSemanticConstants,
    _untyped.DeadBranchPrune,
    _untyped.GenericRewrites,
    _untyped.ReconstructSSA,
    _untyped.DeadBranchPrune,
    _TypeInference,
    _typed.PreLowerStripPhis,
    _typed.IRLegalization,
    _typed.NativeLowering,
    _typed.NoPythonBackend,
)
_machinery.register_pass(mutates_CFG=True, analysis_only=False)(_TypeInference)

_OPTIONS: Any = {
    # Functions that only compiled code calls have it too, so that their calls share options.
    "nogil": True,
    # Sums may be reordered so that they use vector registers, and comparisons may assume that
    # no NaN occurs: every row is checked to be finite before it reaches a solver.
    "fastmath": {"reassoc", "contract", "nnan", "nsz"},
    "error_model": "numpy",
    # A second wrapper, for callers from C.
    "no_cfunc_wrapper": True,
}
_CACHE = str(compile_cache())
# How the names of the functions of this package begin in machine code.
_MANGLED = "_ZN10wolfstream6solver"
# The callers of compiled functions hold their arrays until these return.
_UNCOUNTED: Any = _OPTIONS | {"_nrt": False, "pipeline_class": _FewerPasses}


def compiled(function: Function) -> Function:
    """Compile for callers from Python: cached on disk, without the interpreter lock.

    The function makes no arrays: it counts no references to those that it is given, which saves an
    eighth of the compilation and up to a third of the time of a call. What it returns must not
    be an array, not even inside a tuple, unless its caller counts no references either.
    """
    return _cached(function, _UNCOUNTED)


def _cached(function: Function, options: Any) -> Function:
    """Compile under some options, cached in a directory for these sources alone.

    Beside the sources, where numba keeps code by default, it notices an edit of the function's own
    file only, and fails once a class that it has kept has another name. Functions of the program
    that imports these keep their directory.
    """
    directory, _config.CACHE_DIR = _config.CACHE_DIR, _CACHE
    try:
        return cast(Function, numba.njit(cache=True, **options)(function))
    finally:
        _config.CACHE_DIR = directory


def inner(function: Function) -> Function:
    """Compile into the `compiled` functions that call this one; called from Python it is Python.

    It costs no wrapper for callers from Python and no file on disk, which is half of what a short
    function would cost.
    """
    return cast(Function, _extending.register_jitable(**_UNCOUNTED)(function))


def compiled_allocating(function: Function) -> Function:
    """Compile as `compiled` does, for a function that makes arrays."""
    return _cached(function, _OPTIONS)


def inner_allocating(function: Function) -> Function:
    """Compile as `inner` does, into functions that make arrays."""
    return cast(Function, _extending.register_jitable(**_OPTIONS)(function))


def larger(a: Any, b: Any) -> Any:
    """Return the larger of two numbers. A loop over it runs in vector registers.

    With numba's own max it does not: the selection there lacks the permission to assume that
    no NaN occurs, and a search takes seven times as long.
    """
    return a if a > b else b


def smaller(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers, like `larger`."""
    return a if a < b else b


@inner
def rank(ascending: Any, value: Any) -> int:
    """Return how many of the ascending numbers (n,) are less than a value."""
    first, last = 0, len(ascending)
    while first < last:
        middle = (first + last) // 2
        if ascending[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


def _selection(function: Callable[[Any, Any], Any], comparison: str) -> None:
    """Let compiled code use two instructions for `function`, those of floats with that permission.

    As an ordinary function it would be compiled for each pair of types, as numba's own max is.
    """

    def typed(context: Any) -> Any:
        def of(a: Any, b: Any) -> Any:
            kind = context.unify_types(_types.unliteral(a), _types.unliteral(b))
            return _typing.signature(kind, kind, kind)

        return of

    def floats(_context: Any, builder: Any, _signature: Any, pair: Any) -> Any:
        flags = ("nnan", "nsz")
        chosen = builder.fcmp_ordered(comparison, *pair, flags=flags)
        return builder.select(chosen, *pair, flags=flags)

    def integers(_context: Any, builder: Any, signature: Any, pair: Any) -> Any:
        compare = builder.icmp_signed if signature.return_type.signed else builder.icmp_unsigned
        return builder.select(compare(comparison, *pair), *pair)

    _extending.type_callable(function)(typed)
    _extending.lower_builtin(function, _types.Float, _types.Float)(floats)
    _extending.lower_builtin(function, _types.Integer, _types.Integer)(integers)


_selection(larger, ">")
_selection(smaller, "<")


class _OwnCopies(_codegen.JITCodeLibrary):  # type: ignore[misc]
    """Machine code that calls its own copies of `inner` functions.

    numba leaves it to the process which copy a call reaches: where a function was just compiled
    it was another copy, vectorised on its own, than where it was read from the cache. The last bits
    differed, and so did those of a model that was replayed after its first start.

    An `inner` function is optimised within its callers, and becomes machine code there. numba does
    both for each function alone as well, with all that it calls, so that a function at the bottom
    of five calls is compiled six times; that was half of what LLVM took.
    """

    def _optimize_final_module(self) -> None:
        if self._is_inner():
            return
        for function in self._final_module.functions:
            own = function.name.startswith(_MANGLED) and not function.is_declaration
            if own and function.linkage is Linkage.linkonce_odr:
                function.linkage = Linkage.internal
        super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        if self._is_inner():
            self._finalized = True
        else:
            super()._finalize_final_module()

    def _is_inner(self) -> bool:
        """Return whether this is a function of this package that Python cannot call."""
        own = [
            function.name
            for function in self._final_module.functions
            if function.linkage is Linkage.external and not function.is_declaration
        ]
        return bool(own) and all(name.startswith(_MANGLED) for name in own)


_set_any_environment = _codegen.JITCPUCodegen.set_env


def _set_environment(codegen: Any, name: str, environment: Any) -> None:
    """Tell machine code where its Python function is, unless there is none of that name."""
    if codegen._engine.is_symbol_defined(name):
        _set_any_environment(codegen, name, environment)


_codegen.JITCPUCodegen._library_class = _OwnCopies
_codegen.JITCPUCodegen.set_env = _set_environment
