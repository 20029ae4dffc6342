"""What schedules do: their steps, how often each one is done, and what befalls which messages."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.service.jetstream.network import (
    Behind,
    Fate,
    Held,
    Late,
    Lost,
    RefusedWith,
    Unheard,
    Unserved,
)

_FATES: Sequence[Fate] = (
    *(Unheard(), Unheard(), Lost(), Lost(timed=True)),
    *(Late(0.1, 0.1), Late(1.5, 1.0), Unserved()),
    *(Behind(1), Behind(3), Behind(None), RefusedWith(10164), RefusedWith(10164)),
)
_HELD: Sequence[Fate] = tuple(Held(past) for past in (1, 2, 3, 5, 8, 13, 30))
_HEARD: Sequence[Fate] = tuple(Held(past, heard=True) for past in (1, 2, 3, 5, 8, 13, 30))
_LOGS, _STATES, _MODELS = "wolfstream.log.*", "wolfstream.states.*", "$KV.wolfstream-models.model.*"
_KEPT_KEYS, _SNAPSHOTS = "wolfstream.states.*.answers", "wolfstream.states.*.at.*"


class Profile(NamedTuple):
    """What a schedule does.

    Attributes:
        weights: how often each step is done, in proportion.
        fates: lists of what may befall a message; one of the lists is drawn, then one of its fates.
        subjects: patterns of the subjects of messages that have such fates; that of a read or a
            call is the one that it asks for.
        odds: of a message to have one of these fates; each change of weather draws from them.
        alone: whether it befalls the messages of one replica at a time.
        names: how many names for models there may be, at least and at most.
        patience: how many seconds an append is sent again; each seed draws from them.
        full: how often a snapshot is read at once, so that everything before it may be purged.
        varied: whether seeds favour some of the steps.
    """

    weights: Mapping[str, float]
    fates: Sequence[Sequence[Fate]] = (*((fate,) for fate in _FATES), _HELD, _HEARD)
    subjects: Sequence[str] = ("*",)
    odds: Sequence[float] = (0.0, 0.02, 0.1, 0.3, 0.6)
    alone: bool = False
    names: tuple[int, int] = (1, 3)
    patience: Sequence[float] = (0.0, 0.0, 0.3, 3.0)
    full: float = 0.2
    varied: bool = False


# Each is done by a method of `Schedule`.
_ALL = {
    "create": 4,
    "follow": 10,
    "take_over": 10,
    "commit": 30,
    "finish": 12,
    "settle": 10,
    "replay": 10,
    "write_answers": 4,
    "shorten": 3,
    "ask_again": 3,
    "forget_some": 2,
    "predict": 3,
    "drop_predictions": 2,
    "begin_snapshot": 8,
    "save": 8,
    "drop": 8,
    "roll_back": 5,
    "unpin": 4,
    "exchange": 3,
    "delete": 2,
    "finish_deletion": 4,
    "confirm": 4,
    "weather": 10,
    "pass_time": 3,
    "release": 3,
    "calm": 1,
}
PROFILES = {
    "all": Profile(_ALL, varied=True),
    # Commits that are sent again after their successors have learned and purged them.
    "succession": Profile(
        {
            **{"create": 1, "take_over": 20, "commit": 30, "finish": 4, "replay": 4},
            **{"begin_snapshot": 20, "save": 5, "drop": 5, "weather": 20, "confirm": 1},
        },
        fates=((Unheard(),), (Lost(),)),
        subjects=(_LOGS,),
        odds=(0.0, 0.5, 0.9),
        alone=True,
        names=(1, 1),
        patience=(3.0,),
        full=0.8,
    ),
    # Readers whose copies of the kept keys are behind what purges needed.
    "kept_keys": Profile(
        {
            **{"create": 2, "take_over": 20, "follow": 10, "commit": 30, "write_answers": 10},
            **{"begin_snapshot": 20, "drop": 5, "weather": 10},
        },
        fates=((Behind(5), Behind(None), Behind(None)),),
        subjects=(_KEPT_KEYS,),
        odds=(0.0, 0.8),
        names=(1, 1),
        full=0.8,
    ),
    # Kept keys of which it is not known whether they were written.
    "unheard_keys": Profile(
        {
            **{"create": 2, "take_over": 2, "commit": 30, "write_answers": 10},
            **{"begin_snapshot": 20, "drop": 5, "weather": 10, "calm": 4},
        },
        fates=((Unheard(),), (Unheard(),), (Lost(),)),
        subjects=(_KEPT_KEYS,),
        odds=(0.0, 0.8),
        names=(1, 1),
        patience=(0.0, 0.0, 0.3),
        full=0.8,
    ),
    # Rollbacks to the same states again and again, whose predecessors are unpinned late.
    "pins": Profile(
        {
            **{"create": 2, "take_over": 3, "commit": 10, "begin_snapshot": 8},
            **{"roll_back": 30, "unpin": 6, "drop": 2},
        },
        odds=(0.0,),
        names=(1, 1),
    ),
    # Deletions that arrive once there is another model of the same name.
    "namesakes": Profile(
        {
            **{"create": 20, "delete": 20, "finish_deletion": 20},
            **{"weather": 5, "release": 1},
        },
        fates=((Held(13), Held(20), Held(30)),),
        subjects=(_MODELS,),
        odds=(0.0, 0.3),
        names=(1, 1),
    ),
    # Standbys that read much at once: samples, rollbacks, and purges that end them.
    "standbys": Profile(
        {
            **{"create": 1, "follow": 15, "take_over": 4, "commit": 20, "predict": 10},
            **{"begin_snapshot": 20, "drop": 5, "roll_back": 15, "unpin": 5, "weather": 2},
        },
        odds=(0.0, 0.0, 0.1),
        names=(1, 1),
        full=0.8,
    ),
    # Snapshots that arrive late, or that nobody hears of.
    "snapshots": Profile(
        {
            **{"create": 2, "take_over": 6, "commit": 15, "begin_snapshot": 20, "save": 20},
            **{"roll_back": 15, "unpin": 2, "weather": 10, "release": 3},
        },
        fates=(_HELD, (Unheard(),), (Behind(None),)),
        subjects=(_STATES,),
        odds=(0.0, 0.1, 0.3),
        names=(1, 1),
    ),
    # Snapshots that arrive after others of the same sequence, from before and after rollbacks.
    "late_snapshots": Profile(
        {
            **{"create": 1, "commit": 10, "begin_snapshot": 25, "save": 15, "roll_back": 20},
            **{"weather": 10, "release": 8},
        },
        fates=(_HELD, (Held(),)),
        subjects=(_SNAPSHOTS,),
        odds=(0.0, 0.3),
        names=(1, 1),
    ),
    # Answers that a replaced leader looks for once its successor has purged them.
    "answers": Profile(
        {
            **{"create": 1, "take_over": 12, "commit": 25, "write_answers": 20, "shorten": 5},
            **{"ask_again": 25, "begin_snapshot": 20, "drop": 3},
        },
        odds=(0.0,),
        names=(1, 2),
        full=0.8,
    ),
}
