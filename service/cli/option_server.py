"""The option for a command's server, the API key, and the errors of calls."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from wolfstream.service.cli.failures import Failure, Interrupted, NoConnection

# httpx and numpy are imported when a command runs: help is quick.
if TYPE_CHECKING:
    from wolfstream.service.client.sync import Client

# A person is waiting at the terminal.
_RETRY_SECONDS = 5.0

server_option = click.option(
    "--url",
    default="http://127.0.0.1:8000",
    envvar="WOLFSTREAM_URL",
    help="URL of the server.  [WOLFSTREAM_URL; default: http://127.0.0.1:8000]",
)


@contextmanager
def server_client(url: str) -> Iterator["Client"]:
    """Yield a client of the server; its errors within the block become Failures.

    The key comes from the environment, because other users can see options in the list of
    processes.
    """
    from wolfstream.service.client.errors import AnswerLost, ClientError, Unreachable
    from wolfstream.service.client.sync import Client
    from wolfstream.service.client.wire import check_url

    try:
        check_url(url)
    except ClientError as error:
        raise click.BadParameter(str(error), param_hint="--url") from None
    key = os.environ.get("WOLFSTREAM_KEY")
    try:
        with Client(url, key, retry=_RETRY_SECONDS) as client:
            yield client
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    except ClientError as error:
        kind = NoConnection if isinstance(error, AnswerLost | Unreachable) else Failure
        raise kind(str(error)) from None
    except OSError as error:
        raise Failure(f"{error.filename or 'the file'}: {error.strerror or error}") from None
