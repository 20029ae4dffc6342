"""What the outermost layer puts into a request's state."""

import asyncio
from typing import Any

from wolfstream.service.web.layers.observer import Observer


def test_headers_are_kept_by_name_and_the_first_of_two_counts() -> None:
    found: list[dict[bytes, bytes]] = []

    async def inner(scope: Any, *_: Any) -> None:
        found.append(scope["state"]["headers"])

    given = [(b"accept", b"a"), (b"host", b"localhost"), (b"accept", b"b")]
    scope = {"type": "http", "method": "GET", "path": "/livez", "headers": given, "state": {}}

    async def unused(*_: Any) -> Any:
        raise AssertionError("nothing is read or sent")

    observer = Observer(inner, {}, "none", lambda _: False)
    asyncio.run(observer(scope, unused, unused))
    assert found == [{b"accept": b"a", b"host": b"localhost"}]
