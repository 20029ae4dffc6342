"""The items of the writer's queue: requests of a group, and orders."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from wolfstream.service.engine.costly_requests import GroupRequest
from wolfstream.service.model.live import Model


class Order(NamedTuple):
    """An operation other than learning, in its place among a model's requests.

    Attributes:
        run: the operation; called on the writer's thread.
        waiter: gets what `run` returns or raises.
        model: that it is about; None if it is about no existing one, such as a creation.
    """

    run: Callable[[], Any]
    waiter: "asyncio.Future[Any]"
    model: Model | None


Item: TypeAlias = GroupRequest | Order
