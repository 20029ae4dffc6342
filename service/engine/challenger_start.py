"""Makes challengers: empty, with their champion's state, or before the samples in its log.

It also checks whether a model can be a challenger.
"""

from wolfstream.service.engine.model_files import LoadedModel, ModelFileError, fill_model
from wolfstream.service.engine.uploads import WAITING_ROWS, without_history
from wolfstream.service.errors import (
    Invalid,
    ModelExists,
    NotLeader,
    Refusal,
    SampleError,
    pointer_to,
)
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.spec.following import Start
from wolfstream.service.spec.heads import HEADS
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.storage.catalogue import Catalogue, NameTaken
from wolfstream.service.storage.log import LogReader
from wolfstream.service.storage.snapshot_format import State

# Spec fields that may differ from the champion's if its state is taken over.
_FREE = ("serve", WAITING_ROWS)


def check_champion(name: str, champion: Model, spec: ModelSpec) -> None:
    """Raise Invalid if a model of this name and spec cannot follow the champion."""
    if champion.name == name:
        raise _refused("/follows", "a model cannot follow itself: name another one")
    if champion.champion is not None:
        leader = champion.champion.name
        detail = f"model {champion.name!r} follows {leader!r} itself: follow {leader!r}"
        raise _refused("/follows", detail)
    if champion.spec.task != spec.task:
        detail = f"must be {champion.spec.task}, as the task of {champion.name!r} is"
        raise _refused("/task", detail)


def check_same(model: Model, champion: Model, spec: ModelSpec) -> None:
    """Raise ModelExists unless an existing model follows this champion, with this spec."""
    if model.champion is not champion or model.spec != spec:
        raise ModelExists(
            f"model {model.name!r} exists, and does not follow {champion.name!r} with this spec; "
            "choose another name or DELETE it first"
        )


def new_challenger(champion: Learner, spec: ModelSpec, start: Start, log: LogReader) -> LoadedModel:
    """Return a challenger at one of its champion's sequences, not served yet.

    Args:
        champion: that it will follow.
        spec: of the challenger.
        start: "state": with the champion's state; "samples": before the first sample in the
            champion's log; "empty": with nothing learned.
        log: of the champion.

    Raises Invalid.
    """
    if start == "state":
        return _with_state(champion, spec)
    learner = Learner(Model(0, "", spec))
    begin = log.begin() if start == "samples" else None
    learner.sequence = champion.sequence if begin is None else begin
    return fill_model(learner.model, State(*learner.state()), "it")


def _with_state(champion: Learner, spec: ModelSpec) -> LoadedModel:
    _check_fits(champion.model, spec)
    plain, arrays = without_history(*champion.state())
    arrays.pop(WAITING_ROWS, None)
    state = State({**plain, "spec": spec.plain()}, arrays)
    try:
        return fill_model(Model(0, "", spec), state, "the champion's state")
    except ModelFileError as error:
        raise _refused("/start", f"{error}; start empty, or with samples") from None


def _check_fits(champion: Model, spec: ModelSpec) -> None:
    """Raise Invalid if the champion's state does not fit a spec, except for heads that are null."""
    for name in type(spec).model_fields:
        wanted, present = getattr(spec, name), getattr(champion.spec, name)
        dropped = name in HEADS and wanted is None
        if wanted != present and name not in _FREE and not dropped:
            detail = f"must be as in the spec of {champion.name!r}, whose state it starts from"
            raise _refused(pointer_to(name), f"{detail}; start empty, or with samples")


def _refused(pointer: str, detail: str) -> Invalid:
    wrong: list[SampleError] = [{"pointer": pointer, "detail": detail}]
    return Invalid("the challenger cannot be made", wrong)


def not_its_follower(catalogue: Catalogue, name: str, champion: Model, error: NameTaken) -> Refusal:
    """Return why an existing model of a fleet cannot become this champion's challenger.

    error: the one that creating the challenger has raised.
    """
    entry = catalogue.find(name)
    if entry is None:
        return error  # it was deleted just now
    if entry.follows == champion.id:
        return NotLeader(f"model {name!r} is not learned here yet")
    return ModelExists(
        f"model {name!r} exists, and does not follow {champion.name!r}; choose another name "
        "or DELETE it first"
    )
