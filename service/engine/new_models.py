"""New models: created from specs, loaded from files, uploaded, or made as challengers.

A model is durable before it is live, so that nobody sees one that a crash would undo.
"""

import logging
from pathlib import Path

from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.errors import (
    Invalid,
    ModelExists,
    NotLeader,
    Refusal,
    SampleError,
    StartupError,
    StateExists,
    StorageFailed,
    TooManyModels,
    pointer_to,
)
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.model_files import (
    LoadedModel,
    ModelFileError,
    add_loaded,
    add_model,
    describe,
    fill_model,
)
from wolfstream.service.recovery.uploads import WAITING_ROWS, in_same_state, without_history
from wolfstream.service.spec.following import Start
from wolfstream.service.spec.heads import HEADS
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.spec.stored import to_stored_spec
from wolfstream.service.storage.entries import new_epoch
from wolfstream.service.storage.interfaces import Catalogue, NameTaken, Storage
from wolfstream.service.storage.log import LogReader
from wolfstream.service.storage.snapshot_format import State

# Spec fields that may differ from the champion's if its state is taken over.
_MAY_DIFFER = ("serve", WAITING_ROWS)


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
    """Return a challenger with what its champion has learned. Raises Invalid."""
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
        if wanted != present and name not in _MAY_DIFFER and not dropped:
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


logger = logging.getLogger(__name__)


class NewModels:
    """Makes models durable, then live. Used by the writer's thread.

    Args:
        storage: where they become durable.
        models: where they become live.
        max_models: how many models there may be.
    """

    def __init__(self, storage: Storage, models: LiveModels, max_models: int) -> None:
        self._storage, self._models, self._max_models = storage, models, max_models

    def load(self, name: str, path: Path) -> None:
        """Make the model in a file a live one, unless a model has this name already.

        Raises StartupError.
        """
        if name in self._models.recovering:
            return
        if model := self._models.get(name):
            logger.info(
                "model exists, file not loaded: model=%s sequence=%d file=%s",
                name,
                model.published.sequence,
                path,
            )
            return
        try:
            loaded, term = add_model(name, path, self._storage)
        except (ModelFileError, StorageFailed, OSError) as error:
            raise StartupError(f"--load: {error}") from None
        self._models.register(name, loaded.learner, term)
        logger.info("model loaded: model=%s file=%s state=%r", name, path, describe(loaded))

    def create(self, name: str, spec: ModelSpec) -> tuple[Model, bool]:
        """Return the model of this name and spec, and whether it is new.

        Raises ModelExists, TooManyModels, ModelsFull, StorageFailed, NotReady.
        """
        self._models.check_recovered(name)
        model = self._models.get(name)
        if model is None:
            self._check_room(name)
            return self._create(name, spec), True
        if model.spec != spec:
            raise ModelExists(
                f"model {name!r} exists with another spec; choose another name or DELETE it first"
            )
        return model, False

    def _create(self, name: str, spec: ModelSpec) -> Model:
        epoch, creating = new_epoch(), self._storage.catalogue.creating
        with self._models.making(name):
            with creating(name, to_stored_spec(spec), epoch) as term:
                learner = Learner(Model(term.model, name, spec), epoch)
            self._models.register(name, learner, term)
        return learner.model

    def add_follower(self, name: str, loaded: LoadedModel, champion: Model) -> Learner:
        """Make a challenger from a state that has a sequence of its champion's.

        Raises TooManyModels, ModelsFull, ModelExists, NotLeader, StorageFailed.
        """
        self._check_room(name, loaded.learner.n_bytes)
        try:
            self._add(name, loaded, champion.id)
        except NameTaken as error:
            raise not_its_follower(self._storage.catalogue, name, champion, error) from None
        loaded.learner.follow(champion)
        loaded.learner.publish()
        return loaded.learner

    def add(self, name: str, loaded: LoadedModel) -> tuple[Model, bool]:
        """Return the model of this name and an uploaded state, and whether it is new.

        Raises StateExists, TooManyModels, ModelsFull, StorageFailed, NotReady.
        """
        self._models.check_recovered(name)
        model = self._models.get(name)
        if model is not None:
            if not in_same_state(self._models.learner(model), loaded.learner):
                raise StateExists(
                    f"model {name!r} exists, and is not in this state; choose another name or "
                    "DELETE it first"
                )
            return model, False
        self._check_room(name, loaded.learner.n_bytes)
        self._add(name, loaded)
        logger.info("model uploaded: model=%s state=%r", name, describe(loaded))
        return loaded.model, True

    def _add(self, name: str, loaded: LoadedModel, follows: int | None = None) -> None:
        """Make a model of a state durable, then live.

        follows: the id of its champion; None if it is no challenger.
        """
        with self._models.making(name):
            try:
                term = add_loaded(name, loaded, self._storage, follows)
            except OSError as error:
                reason = error.strerror or error
                raise StorageFailed(f"the state could not be written: {reason}") from None
            self._models.register(name, loaded.learner, term)

    def _check_room(self, name: str, n_bytes: int = 0) -> None:
        """Raise TooManyModels or ModelsFull if no other model may be made.

        n_bytes: see `ModelMemory.check_new`.
        """
        self._models.memory.check_new(name, n_bytes)
        n_models = len(self._models) + len(self._models.recovering)
        if n_models >= self._max_models:
            raise TooManyModels(
                f"this server has {n_models} models and may have {self._max_models}; "
                "DELETE one that is not used"
            )
