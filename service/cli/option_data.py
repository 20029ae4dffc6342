"""The option for a command's data directory, and the errors of work on files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from wolfstream.service.cli.failures import Failure, Interrupted

data_option = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="WOLFSTREAM_DATA",
    default=Path("wolfstream-data"),
    help="The server's data directory.  [WOLFSTREAM_DATA; default: wolfstream-data]",
)


@contextmanager
def file_errors() -> Iterator[None]:
    """Turn the errors within the block into Failures; use the cache of compiled code."""
    from wolfstream.service.native.compile_cache import use_compile_cache

    use_compile_cache()
    from wolfstream.service.errors import WolfstreamError

    try:
        yield
    except WolfstreamError as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(f"{error.filename or 'the file'}: {error.strerror or error}") from None
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
