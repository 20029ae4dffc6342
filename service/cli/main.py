"""The command `wolfstream`: serve models, replay files into them, train and use model files."""

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import ValidationError

from wolfstream.service.cli.backup import backup, restore
from wolfstream.service.cli.failures import Failure
from wolfstream.service.cli.fleet import fleet
from wolfstream.service.cli.keys import keys
from wolfstream.service.cli.models import models
from wolfstream.service.cli.options import MODEL_NAME, NAME_RULE, Command
from wolfstream.service.cli.predict import evaluate, predict
from wolfstream.service.cli.replay import replay
from wolfstream.service.cli.snapshot import snapshot
from wolfstream.service.cli.train import train
from wolfstream.service.settings import Settings, unknown_variables

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

# Settings that have an option -> what stands for its value in the help; "" for a flag.
_METAVARS = {
    "host": "ADDRESS",
    "port": "N",
    "insecure": "",
    "tls_cert": "FILE",
    "tls_key": "FILE",
    "data": "DIR",
    "workers": "N",
    "fleet": "URLS",
    "advertise": "URL",
    "threads": "N",
    "log_format": "auto|text|json",
    "webhook": "URL",
}
_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most"}
_TYPES = {"int": "a whole number", "float": "a number", "bool": "true or false"}


@click.group(
    epilog="""\b
    Examples:
      wolfstream serve --data ./models
      wolfstream replay stream.csv --model prices
      curl -X POST http://127.0.0.1:8000/v1/models/prices/predict \\
           -H 'content-type: application/json' -d '{"x": [[0.1, 0.2]]}'
      wolfstream train rooms.csv --model rooms.model
      wolfstream serve --load rooms.model

    Every setting of the server is also a variable, WOLFSTREAM_PORT and so on;
    `wolfstream serve --help` lists them. A running server describes its
    interface at /docs."""
)
@click.version_option(package_name="wolfstream")
def main() -> None:
    """A server that learns while it serves: online classification and regression.

    `serve` runs the server. `replay` streams a file of labelled samples into a model of a running
    server, and shows how well it predicts each sample just before it learns it. `keys` manages who
    may use a server. `models` shows, creates, queries and rolls back the models of a server, and
    skips or deletes one that the server cannot recover. `snapshot` copies models between data
    directories and files, and checks them for damage. `backup` copies a data directory while a
    server runs on it; `restore` restores the copy, at its end or at an earlier point. `fleet` moves
    models between a data directory and a fleet of servers. `train`, `predict` and `evaluate` work
    with files only; `serve --load` serves a model that `train` wrote.
    """


def _variable(name: str) -> str:
    return f"WOLFSTREAM_{name.upper()}"


def _settings_options(command: Command) -> Command:
    """Add the options for fields of Settings; a default here would hide the variable."""
    for name, metavar in reversed(_METAVARS.items()):
        field = Settings.model_fields[name]
        text = f"{field.description}  [{_variable(name)}; default: {_default(field)}]"
        if metavar:
            option = click.option(_option(name), metavar=metavar, help=text)
        else:
            option = click.option(_option(name), is_flag=True, default=None, help=text)
        command = option(command)
    return command


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _read_loads(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, Path]:
    loads: dict[str, Path] = {}
    for value in values:
        name, equals, file = value.partition("=")
        if not equals or not MODEL_NAME.fullmatch(name):
            name, file = Path(value).stem, value
        if not MODEL_NAME.fullmatch(name) or not file:
            raise click.BadParameter(
                f"{value!r}: {name!r} cannot be the name of a model: {NAME_RULE}; give another "
                "one as NAME=FILE"
            )
        if name in loads:
            raise click.BadParameter(f"{name!r} is given twice; give other names as NAME=FILE")
        loads[name] = Path(file)
    return loads


def _default(field: "FieldInfo") -> Any:
    if isinstance(field.default, bool):
        return "yes" if field.default else "no"
    return "none" if field.default in (None, (), "") else field.default


def _other_settings() -> str:
    lines = [
        f"  {_variable(name)}\n{_indented(f'{field.description} Default: {_default(field)}.')}"
        for name, field in Settings.model_fields.items()
        if name not in _METAVARS
    ]
    return "\b\nSettings that only a variable sets:\n" + "\n".join(lines)


def _indented(text: str) -> str:
    # As wide as click's own help: after "\b", click leaves lines as they are.
    return textwrap.fill(text, 78, initial_indent=" " * 6, subsequent_indent=" " * 6)


@main.command(epilog=_other_settings())
@_settings_options
@click.option(
    "--load",
    "loads",
    multiple=True,
    metavar="[NAME=]FILE",
    callback=_read_loads,
    help="Serve the model in FILE, which `wolfstream train` wrote, and let it go on learning; "
    "repeatable. NAME is by default FILE's name without its suffix. If --data already has a model "
    "of this name, FILE is not read.",
)
@click.option(
    "--recover",
    is_flag=True,
    help="If the journal of --data is lost, begin a new one with models from the newest snapshots; "
    "if it has lost its end, go on without that. The log says what happened to each model.",
)
@click.option(
    "--no-keys",
    is_flag=True,
    help="Start without keys although there were some. Without this option, a server whose keys "
    "are gone does not start.",
)
def serve(
    loads: dict[str, Path], recover: bool, no_keys: bool, **options: str | bool | None
) -> None:
    """Run the server until SIGTERM or Ctrl-C.

    It then finishes what it has accepted, saves snapshots and exits with 0. Everything that it
    acknowledged is in the data directory, also after a crash: start it again with the same --data,
    and it continues.

    Without keys it serves this machine only; see `wolfstream keys --help`.

    \b
    Examples:
      wolfstream serve
      wolfstream serve --load rooms.model --load mail=/srv/spam.model
      wolfstream serve --host 0.0.0.0 --port 8080 --data /var/lib/wolfstream \\
          --tls-cert server.crt --tls-key server.key
      wolfstream serve --workers 4
      WOLFSTREAM_THREADS=4 wolfstream serve
    """  # noqa: D301  (click wants the control character)
    on_command_line = {name: value for name, value in options.items() if value is not None}
    try:
        _check_variables()
        settings = Settings(**on_command_line)  # type: ignore[arg-type]  # pydantic converts
    except ValidationError as error:
        raise click.UsageError(_settings_errors(error, on_command_line)) from None
    # Importing the server takes a second, for which help and wrong settings should not wait.
    from wolfstream.service.compilation.compiler_process import compiling

    with compiling() as process:
        from wolfstream.service.errors import StartupError
        from wolfstream.service.server.main_process import serve as run

        try:
            run(settings, loads, recover, process, no_keys)
        except StartupError as error:
            raise Failure(str(error)) from None


def _check_variables() -> None:
    """Raise UsageError for variables that are not settings: a typo would silently do nothing."""
    unknown = [
        f"{name} is no setting" + (f"; did you mean {close}?" if close else ".")
        for name, close in unknown_variables(os.environ).items()
    ]
    if unknown:
        raise click.UsageError(f"{' '.join(unknown)} `wolfstream serve --help` lists all settings")


def _settings_errors(error: ValidationError, on_command_line: dict[str, Any]) -> str:
    """Return a message that names each wrong option or variable, its value and what it must be."""
    messages = []
    for item in error.errors():
        name = str(item["loc"][0])
        source = _option(name) if name in on_command_line else _variable(name)
        messages.append(f"{source} {item['input']!r}: {_requirement(item)}")
    return "; ".join(messages)


def _requirement(item: "ErrorDetails") -> str:
    """Return what a setting must be, for an error of pydantic."""
    kind, context = item["type"].partition("_")[0], item.get("ctx", {})
    for bound in _BOUNDS.keys() & context.keys():
        return f"it must be {_BOUNDS[bound]} {context[bound]}"
    if kind == "literal":
        return f"it must be {context['expected']}"
    return f"it must be {_TYPES[kind]}" if kind in _TYPES else item["msg"]


for command in (train, predict, evaluate, replay, keys, snapshot, models, backup, restore, fleet):
    main.add_command(command)
