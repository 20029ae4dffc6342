"""A command's connection to a fleet."""

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from wolfstream.service.cli.failures import Failure

if TYPE_CHECKING:
    from wolfstream.service.fleet.opening import Fleet


@contextmanager
def open_fleet_at(servers: str) -> "Iterator[Fleet]":
    """Open the fleet at some NATS servers within the block; its errors become Failures."""
    from wolfstream.service.errors import Refusal, WolfstreamError
    from wolfstream.service.settings import Settings

    try:
        from wolfstream.service.fleet.opening import connect, open_fleet
        from wolfstream.service.web.nats_login import nats_login
    except ModuleNotFoundError:
        raise Failure("a fleet needs the client of NATS: pip install 'wolfstream[fleet]'") from None
    settings = Settings()
    try:
        bounds = settings.fleet_log_bytes, settings.fleet_state_bytes
        nats = connect(servers.split(","), *bounds, nats_login(settings))
        with tempfile.TemporaryDirectory() as data, closing(nats):
            yield open_fleet(nats, Path(data))
    except Refusal as error:
        raise Failure(error.detail) from None
    except WolfstreamError as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(f"{error.filename or 'the fleet'}: {error.strerror or error}") from None
