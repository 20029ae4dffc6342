"""The phases of a server, and how requests wait for its readiness and for compiled code.

The phases are recovering, compiling, ready, then draining or broken.
"""

import asyncio

import numpy as np

from wolfstream.service.compilation.warm_up import WarmUp
from wolfstream.service.errors import ModelBroken, NotReady
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.prepare.named_rows import Rows, n_entries, n_rows, rows_between
from wolfstream.solver.prepare.row_form import AnotherKind, RowForm
from wolfstream.solver.prepare.schema import SETTLING, Misfit


class Phase:
    """The phase of one server. One thread at a time changes it; any thread may read it.

    Attributes:
        text: "ready", or the reason why the server is not.
        accepting: whether requests are accepted: all models are recovered, and the server is not
            ending.
        ready: whether they are handled at once, because what they run is compiled as well.
        failed: whether the writer has failed: predictions go on, but nothing is learned.
    """

    def __init__(self) -> None:
        self.text = "starting"
        self.accepting = False
        self.ready = False
        self.failed = False
        self._ended = False  # `text` is final

    def report(self, text: str) -> None:
        """Set the text, unless the server is ending."""
        if not self._ended:
            self.text = text

    def accept(self) -> None:
        """Accept requests, which may have to wait for `open`; do nothing after `end`."""
        self.accepting = not self._ended

    def open(self) -> None:
        """Handle requests at once from now on; do nothing after `end`."""
        if not self._ended:
            self.text, self.accepting, self.ready = "ready", True, True

    def end(self, text: str) -> None:
        """Accept no more requests. The first reason stays."""
        self.accepting = self.ready = self.failed = False
        if not self._ended:
            self.text, self._ended = text, True

    def fail(self, text: str) -> None:
        """Stop learning, but keep answering predictions until the end."""
        if not self._ended:
            self.accepting, self.ready, self.failed, self.text = False, False, True, text

    @property
    def recovering(self) -> bool:
        """Whether models are being recovered, after which requests will be accepted."""
        return not (self.accepting or self.failed or self._ended)

    def check(self) -> None:
        """Raise NotReady unless requests are accepted."""
        if not self.accepting:
            raise NotReady(f"the server is {self.text}")

    def check_usable(self, model: Model) -> None:
        """Raise NotReady unless requests are accepted, ModelBroken if the model cannot learn."""
        self.check()
        if model.broken:
            raise ModelBroken(f"model {model.name!r}: {model.broken}")

    def check_readable(self) -> None:
        """Raise NotReady unless predictions are answered."""
        if not self.failed:
            self.check()


# So many values are read in some milliseconds, for which another thread is not worth its while.
_INLINE_ENTRIES = 1 << 10


class Readiness:
    """Holds accepted requests until the server can work on them. Used on the event loop.

    Args:
        phase: of the server.
        warm_up: compiles the numerics.

    Attributes:
        leaving: whether the server was told to stop, and goes on answering until its balancer
            sends it nothing more.
    """

    def __init__(self, phase: Phase, warm_up: WarmUp) -> None:
        self._phase = phase
        self._warm_up = warm_up
        self.leaving = False
        # Set once the server is ready, or ends without having been.
        self._decided = asyncio.Event()

    @property
    def reached(self) -> bool:
        """Whether requests are handled at once: models are recovered, the default one compiled."""
        return self._phase.ready

    @property
    def complete(self) -> bool:
        """Whether nothing is left to compile, so that no request waits for compilation."""
        return self._phase.ready and self._warm_up.ended

    @property
    def progress(self) -> str:
        """How much of the code for all kinds of models is compiled; "" once all is."""
        return self._warm_up.progress

    def wake(self) -> None:
        """Wake waiting requests: the server is ready, or it ends."""
        self._decided.set()

    async def wait(self) -> None:
        """Wait until the server is ready. Raises NotReady."""
        self._phase.check()
        await self._decided.wait()
        self._phase.check()

    async def compiled(self, model: Model, rows: Rows | None, seconds: float | None = None) -> None:
        """Wait until the code that a model runs on such rows is compiled.

        To be called before such rows are learned or predicted.

        Args:
            model: that the rows are for.
            rows: of a request; None for rows of the kind that the model has learned.
            seconds: how long to wait at most; None for as long as it takes.

        Raises NotReady, also when the time is up.
        """
        if self.complete:
            return
        await self.compiled_for(model.spec, await will_be_sparse(model, rows), seconds)

    async def compiled_for(
        self, spec: ModelSpec, sparse: bool, seconds: float | None = None
    ) -> None:
        """Wait until the code that models of a spec run is compiled; see `compiled`.

        sparse: whether they run it on sparse rows, too.
        """
        if self.complete:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._decided.wait()
                await self._warm_up.wait_for(spec, sparse)
        except TimeoutError:
            raise NotReady(
                f"the server is compiling what this model needs ({self.progress}); try again"
            ) from None
        self._phase.check_readable()


async def will_be_sparse(model: Model, rows: Rows | None) -> bool:
    """Return whether heads will get rows as sparse ones, as far as can be known in advance.

    Args:
        model: that the rows are for.
        rows: of a request; None for rows of the kind that the model has learned.
    """
    form = model.published.rows.form
    if rows is None or isinstance(rows, np.ndarray) or form.sparse or form.settled:
        return form.sparse
    # The form is settled, and so cannot change any more, by this many rows at most.
    first_rows = rows_between(rows, 0, min(n_rows(rows), SETTLING))
    if n_entries(first_rows) <= _INLINE_ENTRIES:
        return _is_sparse_after(form, first_rows)
    return await asyncio.to_thread(_is_sparse_after, form, first_rows)


def _is_sparse_after(form: RowForm, rows: Rows) -> bool:
    """Return whether rows are sparse once a model of this form has learned these."""
    try:
        return form.after(rows).sparse
    except (Misfit, AnotherKind):  # the rows will be refused
        return False
