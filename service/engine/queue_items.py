"""What the queue holds, and the writer works off: requests to be learned, and orders."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from wolfstream.service.engine.group_learning import GroupRequest
from wolfstream.service.model.live import Model


class Order(NamedTuple):
    """An operation other than learning, in its place among a model's requests.

    model: None for an operation on no existing model, such as the creation of one.
    """

    run: Callable[[], Any]
    answer: "asyncio.Future[Any]"
    model: Model | None


Item: TypeAlias = GroupRequest | Order
