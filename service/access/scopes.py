"""The scopes of API keys: what a key may allow."""

from typing import Literal, TypeAlias

Scope: TypeAlias = Literal["predict", "learn", "admin"]
