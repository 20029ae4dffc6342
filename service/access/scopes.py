"""What a key may allow."""

from typing import Literal, TypeAlias

Scope: TypeAlias = Literal["predict", "learn", "admin"]
