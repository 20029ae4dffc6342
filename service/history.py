"""A model's kept snapshots: what each one is, and what it would be to go back to it."""

from datetime import UTC, datetime
from typing import Any

from service.errors import UnknownSnapshot, UnusableSnapshot
from service.loading import ModelFileError, revive
from service.model import Model
from service.scores import score_in
from service.snapshots import DamagedSnapshot, Snapshots, decode_state, read_content, read_plain


def now() -> str:
    """The time as RFC 3339 has it, in UTC."""
    return _rfc3339(datetime.now(UTC))


def told_of(model: Model, snapshots: Snapshots, sequence: int) -> dict[str, Any] | None:
    """What is told of one snapshot; None where it was forgotten meanwhile.

    samples_since: logged after it, and not known to the model once it went back. scores: those
    of each head at that time; None of a file that cannot be read.
    """
    path = snapshots.path(model.id, sequence)
    try:
        file = path.stat()
        plain: dict[str, Any] | None = read_plain(path)
    except FileNotFoundError:
        return None
    except DamagedSnapshot:
        plain = None
    heads = {} if plain is None else plain["heads"]
    return {
        "sequence": sequence,
        "bytes": file.st_size,
        "written": _rfc3339(datetime.fromtimestamp(file.st_mtime, UTC)),
        "samples_since": max(model.sequence - sequence, 0),
        "rolled_back": None if plain is None else plain.get("rolled_back"),
        "scores": None if plain is None else {n: score_in(h).told() for n, h in heads.items()},
    }


def restored(model: Model, snapshots: Snapshots, sequence: int) -> tuple[bytes, Model]:
    """The bytes of a snapshot, and a model that is what they say.

    Raises UnknownSnapshot, UnusableSnapshot.
    """
    kept = snapshots.sequences(model.id)
    path = snapshots.path(model.id, sequence)
    if sequence not in kept:
        raise UnknownSnapshot(
            f"model {model.name!r} has no snapshot of sequence {sequence}; {_listed(kept)}"
        )
    try:
        content = read_content(path)
        state = decode_state(content, path.name)
        return content, revive(path, state, Model(model.id, model.name, model.spec)).model
    except (DamagedSnapshot, ModelFileError) as error:
        others = [other for other in kept if other != sequence]
        raise UnusableSnapshot(
            f"the snapshot of sequence {sequence} is damaged: {error}; {_listed(others)}"
        ) from None


def _listed(sequences: list[int]) -> str:
    if not sequences:
        return "there is no other; POST .../snapshot makes one"
    return f"there are those of {', '.join(map(str, sequences))}"


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
