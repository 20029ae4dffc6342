"""Options that several commands share, what they stand for, and parsers of their values."""

import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from wolfstream.service.cli.failures import Failure, NoConnection, as_failures
from wolfstream.service.files.roles import Roles

# httpx, numpy and the client of NATS are imported when a command runs: help is quick.
if TYPE_CHECKING:
    from wolfstream.service.client.sync import Client
    from wolfstream.service.fleet.opening import Fleet

Command = TypeVar("Command", bound=Callable[..., Any])

# The same as `spec.model.MODEL_NAME_PATTERN`; importing that module would make help slow.
MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
NAME_RULE = "use 1 to 63 letters, digits, . _ -, the first one a letter or digit"
# A person is waiting at the terminal.
_RETRY_SECONDS = 5.0
_COLUMN = "Column of a table, by its name or its number from 1,"


class UserPath(click.Path):
    """A path, in which ~ stands for the user's home: shells leave --model=~/rooms.model alone."""

    def __init__(self, **checks: Any) -> None:
        """Begin with the checks of `click.Path`."""
        super().__init__(path_type=Path, **checks)

    def convert(
        self,
        value: "str | os.PathLike[str]",
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return a checked path."""
        if self.exists and value == "-":
            detail = "standard input is read once, and data twice: save it as a file"
            self.fail(detail, param, ctx)
        return super().convert(Path(value).expanduser(), param, ctx)


class Count(click.IntRange):
    """A whole number from a least one on, of at most 63 bits; more would be no sequence."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return a checked number."""
        number: int = super().convert(value, param, ctx)
        if number >= 1 << 63:
            self.fail(f"{number} is too large", param, ctx)
        return number


data_option = click.option(
    "--data",
    type=UserPath(file_okay=False),
    envvar="WOLFSTREAM_DATA",
    default=Path("wolfstream-data"),
    help="The server's data directory.  [WOLFSTREAM_DATA; default: wolfstream-data]",
)
server_option = click.option(
    "--url",
    default="http://127.0.0.1:8000",
    envvar="WOLFSTREAM_URL",
    help="URL of the server.  [WOLFSTREAM_URL; default: http://127.0.0.1:8000]",
)


def fleet_option(text: str, required: bool = False) -> Callable[[Command], Command]:
    """Return the option for the NATS servers of a fleet.

    Args:
        text: the help.
        required: whether the command needs a fleet.
    """
    return click.option(
        "--fleet",
        "servers",
        metavar="URLS",
        envvar="WOLFSTREAM_FLEET",
        default=None if required else "",
        required=required,
        help=f"{text}  [WOLFSTREAM_FLEET]",
    )


class DataSource(NamedTuple):
    """A data file of a command, and what its options say about it.

    Attributes:
        path: the path of the file.
        roles: columns that are not features.
        charset: the charset of a text; None for UTF-8, or UTF-16 with its byte order mark.
    """

    path: Path
    roles: Roles
    charset: str | None


def column_options(
    default: str = "the one headed y, label, target or class",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds --label, --id, --weight and --charset.

    The command has an argument `file` and gets a `source` instead.

    Args:
        default: of --label, for the help text.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def command_with_source(
            *args: Any,
            file: Path,
            label: str | None,
            id_column: str | None,
            weight: str | None,
            charset: str | None,
            **more: Any,
        ) -> Any:
            roles = Roles(label, id_column, weight)
            return command(*args, source=DataSource(file, roles, charset), **more)

        return label_option(id_option(weight_option(charset_option(command_with_source))))

    label_option = click.option(
        "--label", metavar="NAME|N", help=f"{_COLUMN} that has the labels.  [default: {default}]"
    )
    id_option = click.option(
        "--id",
        "id_column",
        metavar="NAME|N",
        help=f"{_COLUMN} that identifies a row; it is not a feature.",
    )
    weight_option = click.option(
        "--weight",
        metavar="NAME|N",
        help=f"{_COLUMN} that has the weights of the samples.",
    )
    charset_option = click.option(
        "--charset",
        metavar="NAME",
        help="Charset of text that is not UTF-8, such as windows-1252. UTF-16 is known by its "
        "byte order mark.",
    )
    return add


def ask_first(prompt: str) -> Callable[[Command], Command]:
    """Return a decorator that makes a command ask a question first, unless it gets `--yes`."""

    def ask(_: click.Context, __: click.Parameter, yes: bool) -> None:
        if yes:
            return
        try:
            agreed = click.confirm(prompt)
        except click.Abort:
            if sys.stdin.isatty():
                raise
            raise click.UsageError("there is no terminal to ask on; confirm with --yes") from None
        if not agreed:
            raise click.Abort

    return click.option(
        "--yes",
        is_flag=True,
        expose_value=False,
        callback=ask,
        help="Do not ask; needed where there is no terminal.",
    )


@contextmanager
def file_errors() -> Iterator[None]:
    """Turn the errors within the block into Failures; use the cache of compiled code."""
    from wolfstream.solver.compile_cache import use_compile_cache

    use_compile_cache()
    with as_failures("the file"):
        yield


@contextmanager
def fleet_errors() -> Iterator[None]:
    """Turn the errors of work on a fleet within the block into Failures."""
    with as_failures("the fleet"):
        try:
            yield
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "nats":
                raise
            hint = "a fleet needs the client of NATS: pip install 'wolfstream[fleet]'"
            raise Failure(hint) from None


@contextmanager
def open_fleet_at(servers: str) -> "Iterator[Fleet]":
    """Open the fleet at some NATS servers within the block; its errors become Failures."""
    from wolfstream.service.settings import Settings

    with fleet_errors():
        from wolfstream.service.fleet.opening import connect, open_fleet
        from wolfstream.service.server.joining import nats_login

        settings = Settings()
        bounds = settings.fleet_log_bytes, settings.fleet_state_bytes
        nats = connect(servers.split(","), *bounds, nats_login(settings))
        with tempfile.TemporaryDirectory() as data, closing(nats):
            yield open_fleet(nats, Path(data))


def check_server_url(url: str) -> None:
    """Raise BadParameter if --url cannot be the URL of a server."""
    from wolfstream.service.client.errors import ClientError
    from wolfstream.service.client.wire import check_url

    try:
        check_url(url)
    except ClientError as error:
        raise click.BadParameter(str(error), param_hint="--url") from None


@contextmanager
def server_client(url: str) -> "Iterator[Client]":
    """Yield a client of the server; its errors within the block become Failures.

    The key comes from the environment, because other users can see options in the list of
    processes.
    """
    from wolfstream.service.client.errors import AnswerLost, ClientError, Unreachable
    from wolfstream.service.client.sync import Client

    check_server_url(url)
    key = os.environ.get("WOLFSTREAM_KEY")
    try:
        with as_failures("the file"), Client(url, key, retry=_RETRY_SECONDS) as client:
            yield client
    except ClientError as error:
        kind = NoConnection if isinstance(error, AnswerLost | Unreachable) else Failure
        raise kind(str(error)) from None


def read_json(_: click.Context, __: click.Parameter, value: str | None) -> Any:
    """Parse JSON, or the JSON in the file of @FILE; return None without a value."""
    if value is None:
        return None
    try:
        return json.loads(Path(value[1:]).read_text("utf-8") if value[:1] == "@" else value)
    except OSError as error:
        raise click.BadParameter(f"{value[1:]} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"this is not JSON: {error}") from None


def read_gamma(_: click.Context, __: click.Parameter, value: str) -> float | None:
    """Parse --gamma; return None for auto."""
    if value == "auto":
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0.0 < number <= 1e12:
        raise click.BadParameter(f"{value!r} must be auto, or a number above 0 and up to 1e12")
    return number


def read_weights(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> Any:
    """Parse --class-weight; return text of a label -> weight, "balanced", or None."""
    if values == ("balanced",):
        return "balanced"
    weights: dict[str, float] = {}
    for value in values:
        label, equals, text = value.rpartition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = math.nan
        if not equals or not 1e-6 <= weight <= 1e6:
            detail = f"{value!r} must be balanced alone, or LABEL=NUMBER from 1e-6 to 1e6"
            raise click.BadParameter(detail)
        weights[label] = weight
    return weights or None


def read_bases(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> Any:
    """Parse --basis into fields of a spec, which checks the numbers; return None without any."""
    return [_read_basis(value) for value in values] or None


def _read_basis(value: str) -> dict[str, Any]:
    kind, colon, rest = value.partition(":")
    basis: dict[str, Any] = {"type": kind}
    for parameter in rest.split(",") if colon else ():
        name, equals, text = parameter.partition("=")
        try:
            number = int(text) if name == "feature" else float(text)
        except ValueError:
            number = math.nan
        if not equals or not math.isfinite(number) or name in basis:
            raise click.BadParameter(
                f"{value!r} must be TYPE:NAME=NUMBER,...; {parameter!r} is not NAME=NUMBER"
            )
        basis[name] = number
    return basis
