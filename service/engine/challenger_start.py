"""How a challenger starts: empty, with its champion's state, or with the samples kept of it.

Also why a model cannot be one.
"""

from wolfstream.service.engine.model_files import LoadedModel, ModelFileError, fill_model
from wolfstream.service.engine.uploads import OF_ANOTHER_LIFE
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

_WAITING_ROWS = "pending"
# What of a spec may differ where a state is taken over, besides heads that are null.
_FREE = ("serve", "pending")


def check_champion(name: str, champion: Model, spec: ModelSpec) -> None:
    """Raise Invalid if a model of a spec cannot follow another one."""
    if champion.name == name:
        raise _refused("/follows", "a model cannot follow itself: name another one")
    if champion.champion is not None:
        its_own = champion.champion.name
        detail = f"model {champion.name!r} follows {its_own!r} itself: follow {its_own!r}"
        raise _refused("/follows", detail)
    if champion.spec.task != spec.task:
        detail = f"must be {champion.spec.task}, as the task of {champion.name!r} is"
        raise _refused("/task", detail)


def check_same(model: Model, champion: Model, spec: ModelSpec) -> None:
    """Raise ModelExists unless a model follows this champion, with this spec."""
    if model.champion is not champion or model.spec != spec:
        raise ModelExists(
            f"model {model.name!r} exists, and does not follow {champion.name!r} with this spec; "
            "choose another name or DELETE it first"
        )


def starting(champion: Learner, spec: ModelSpec, start: Start, log: LogReader) -> LoadedModel:
    """Return a model at a sequence of its champion, not served yet. Raises Invalid."""
    if start == "state":
        return _of_state(champion, spec)
    learner = Learner(Model(0, "", spec))
    begin = log.begin() if start == "samples" else None
    learner.sequence = champion.sequence if begin is None else begin
    return fill_model(learner.model, State(*learner.state()), "it")


def _of_state(champion: Learner, spec: ModelSpec) -> LoadedModel:
    _check_fits(champion.model, spec)
    plain, arrays = champion.state()
    plain = {name: part for name, part in plain.items() if name not in OF_ANOTHER_LIFE}
    left_behind = {*OF_ANOTHER_LIFE, _WAITING_ROWS}
    arrays = {name: array for name, array in arrays.items() if name not in left_behind}
    state = State({**plain, "spec": spec.plain()}, arrays)
    try:
        return fill_model(Model(0, "", spec), state, "the champion's state")
    except ModelFileError as error:
        raise _refused("/start", f"{error}; start empty, or with samples") from None


def _check_fits(champion: Model, spec: ModelSpec) -> None:
    """Raise Invalid if a state was made by another spec, ignoring heads that are kept."""
    own, given = champion.spec, spec
    for name in type(spec).model_fields:
        dropped = name in HEADS and getattr(given, name) is None
        if getattr(own, name) != getattr(given, name) and name not in _FREE and not dropped:
            detail = f"must be as in the spec of {champion.name!r}, whose state it starts from"
            raise _refused(pointer_to(name), f"{detail}; start empty, or with samples")


def _refused(pointer: str, detail: str) -> Invalid:
    wrong: list[SampleError] = [{"pointer": pointer, "detail": detail}]
    return Invalid("the challenger cannot be made", wrong)


def not_its_follower(catalogue: Catalogue, name: str, champion: Model, error: NameTaken) -> Refusal:
    """Return why a model of a fleet that exists cannot be made to follow another one.

    error: the one that was raised because it exists.
    """
    found = catalogue.find(name)
    if found is None:
        return error  # it was deleted just now
    if found.follows == champion.id:
        return NotLeader(f"model {name!r} is not learned here yet")
    return ModelExists(
        f"model {name!r} exists, and does not follow {champion.name!r}; choose another name "
        "or DELETE it first"
    )
