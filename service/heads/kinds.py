"""The kinds of heads, and which heads of a model learn, listen and predict.

A new kind is a module with a `KIND`, a part of the spec of the same name, and a line in `KINDS`.
"""

from typing import Any

from wolfstream.service.heads import adaptive, asset, custom, novelty, semiparametric, working_set
from wolfstream.service.heads.fit import Fit, Observe, Window
from wolfstream.service.heads.kind import Kind
from wolfstream.service.heads.protocol import Head
from wolfstream.service.spec.heads import LEARNING_CALLS, HeadName, LearningCall
from wolfstream.service.spec.model import ModelSpec

KINDS: dict[HeadName, Kind[Any]] = {
    kind.name: kind
    for kind in (
        working_set.KIND,
        asset.KIND,
        semiparametric.KIND,
        adaptive.KIND,
        custom.KIND,
        novelty.KIND,
    )
}

# The heads that get the votes of the others.
LISTENERS = frozenset(name for name, kind in KINDS.items() if kind.listens)
# The heads that do not predict but add a column of their own.
BESIDE = frozenset(name for name, kind in KINDS.items() if kind.beside)


def build(name: HeadName, spec: ModelSpec) -> Head:
    """Return a new head for a spec."""
    head: Head = KINDS[name].build(spec)
    return head


def head_of_call(spec: ModelSpec, call: LearningCall) -> HeadName:
    """Return the head that a learning call's log entries and responses name; a spec may lack it."""
    heads = [name for name, kind in KINDS.items() if call in kind.calls]
    return next((name for name in heads if name in spec.heads), heads[0])


def call_of_head(head: HeadName) -> LearningCall:
    """Return the first learning call that teaches a head of this kind."""
    calls: tuple[LearningCall, ...] = KINDS[head].calls
    return calls[0]


def learners(spec: ModelSpec, named: HeadName) -> tuple[HeadName, ...]:
    """Return the heads that learn the samples of a call which names `named`; `named` first."""
    others = [name for name in spec.heads if KINDS[name].learns_all and name != named]
    return (named, *others)


def fit_window(window: Window, job: str | None, observe: Observe) -> Fit:
    """Fit a window on any thread; see `RefitMethod.solve`. Raises what the head's solver raises."""
    refitting = KINDS[window.head].refitting
    assert refitting is not None
    fit: Fit = refitting.solve(window, job, observe)
    return fit


def how_to_teach(model: str, spec: ModelSpec, head: HeadName) -> str:
    """Return advice: the calls that teach a head of a model."""
    heads = {call: head_of_call(spec, call) for call in LEARNING_CALLS}
    teaching = [
        f"POST /v1/models/{model}/{call}"
        for call, named in heads.items()
        if named in spec.heads and head in learners(spec, named)
    ]
    refit = f", then POST /v1/models/{model}/refit" if KINDS[head].refitting else ""
    return f"teach it with {' or '.join(teaching)}{refit}"
