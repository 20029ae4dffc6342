"""The scopes of API keys: what a key may allow. Clients read them without the keys' own imports."""

from typing import Literal, TypeAlias

Scope: TypeAlias = Literal["predict", "learn", "admin"]
