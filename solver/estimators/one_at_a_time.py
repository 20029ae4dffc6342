"""River's interface to an estimator: samples one at a time, as dicts of named values."""

import sys
from typing import ClassVar


class OneAtATime:
    """Rows that are dicts; each is treated like the dicts in a list by `StreamEstimator`.

    River is not imported. If it has been when an estimator is made, the class is registered with
    it as a virtual subclass, since its metrics check models by `isinstance`.
    """

    _supervised = True
    _kind_in_river: ClassVar[str]

    def __post_init__(self) -> None:
        river = sys.modules.get("river.base")
        if river is not None:
            getattr(river, self._kind_in_river).register(type(self))
