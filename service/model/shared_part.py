"""What many answers have in common."""

from typing import Any


class SharedPart(dict[str, Any]):
    """A part of the answers to a block: one object in all of them, which nobody changes.

    json: the part as JSON, once it was encoded.
    """

    __slots__ = ("json",)

    def __init__(self, plain: dict[str, Any]) -> None:
        super().__init__(plain)
        self.json = b""
