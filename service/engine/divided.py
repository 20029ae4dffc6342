"""Models with several learners: their partitions, and what such models refuse.

The model itself learns nothing. Its partitions are models with logs of their own, which replicas
lead like any others, and which are hidden from clients. They are created before the model takes
samples, and deleted before it is.
"""

from wolfstream.service.errors import Divided, Invalid, ModelExists, NotLeader, SampleError
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.spec.stored import to_stored_spec
from wolfstream.service.storage.catalogue import Catalogue
from wolfstream.service.storage.entries import new_epoch
from wolfstream.service.storage.partitions import partition_names


def check_may_be_divided(spec: ModelSpec, *, in_fleet: bool) -> None:
    """Raise Invalid for a spec with several learners if there is no fleet."""
    if spec.learners > 1 and not in_fleet:
        wrong: list[SampleError] = [{"pointer": "/learners", "detail": "must be 1 without a fleet"}]
        raise Invalid(
            "the learners of a model are divided among the replicas of a fleet: leave learners "
            "out, or start the server with --fleet",
            wrong,
        )


def check_whole(model: Model, what: str) -> None:
    """Raise Divided for a model with several learners. what: which it cannot do."""
    if model.spec.learners > 1:
        raise Divided(f"model {model.name!r} has {model.spec.learners} learners, and cannot {what}")


def make_partitions(model: Model, new: bool, catalogue: Catalogue) -> None:
    """Create the partitions of a model that do not exist; the first replica asked leads each.

    new: whether the model was created just now. Then ModelExists is raised for partitions that an
        earlier model of its name has left. Raises StorageFailed.
    """
    for name in partition_names(model.name, model.spec.learners):
        if catalogue.find(name) is None:
            with catalogue.creating(name, to_stored_spec(model.spec.single_learner), new_epoch()):
                pass  # a partition begins with an empty log
        elif new:
            raise ModelExists(
                f"a model {model.name!r} that was deleted has left its partition {name!r}: DELETE "
                f"/v1/models/{model.name} once more, then create it again"
            )


def check_without_partitions(model: Model, catalogue: Catalogue) -> None:
    """Raise NotLeader while a model that is to be deleted has partitions, so the sender retries.

    Raises StorageFailed.
    """
    names = partition_names(model.name, model.spec.learners)
    if any(catalogue.find(name) is not None for name in names):
        raise NotLeader(f"the partitions of model {model.name!r} are deleted before it; try again")
