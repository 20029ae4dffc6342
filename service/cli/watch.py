"""The command `wolfstream models watch`: a model's numbers on a terminal, once a second."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from wolfstream.service.cli.options import Count, server_client, server_option
from wolfstream.service.errors import visible

# rich is imported when the command runs: help is quick.
if TYPE_CHECKING:
    from rich.table import Table

_SECONDS = {"learn_seconds": "learning takes", "predict_seconds": "predicting takes"}
_RATES = {"samples_per_second": "samples a second", "rows_per_second": "rows a second"}


@click.command()
@click.argument("model")
@click.option("--count", type=Count(1), metavar="N", help="End after N states.")
@server_option
def watch(model: str, count: int | None, url: str) -> None:
    """Show MODEL as it learns and predicts, once a second, until Ctrl-C or its deletion.

    On a terminal the numbers stay in their place; elsewhere each second is a line.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console()
    with server_client(url) as client:
        states = islice(client.events(model), count)
        if not console.is_interactive:
            for state in states:
                click.echo(_line(state))
            return
        with Live(console=console, auto_refresh=False) as live:
            for state in states:
                live.update(_table(state), refresh=True)


def _line(state: Mapping[str, Any]) -> str:
    """Return a state in one line."""
    numbers = [f"{name} {text}" for name, text in _numbers(state)]
    return f"{state['model']} at {state['sequence']:,}: {', '.join(numbers)}"


def _table(state: Mapping[str, Any]) -> "Table":
    """Return a state as a table, with the last predictions below."""
    from rich.table import Table
    from rich.text import Text

    title = f"{state['model']} at sequence {state['sequence']:,}, {state['status']}"
    table = Table("", "", title=Text(title), show_header=False)
    for name, text in _numbers(state):
        table.add_row(Text(name), Text(text, justify="right"))
    for pair in state["latest"][-5:]:
        predicted, label = (visible(str(pair[name])) for name in ("prediction", "label"))
        table.add_row(Text(f"predicted {predicted}"), Text(f"was {label}"))
    if state["notice"]:
        table.add_row(Text("notice"), Text(state["notice"]))
    return table


def _numbers(state: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each number that is known."""
    for name, value in state["values"].items():
        if value is None:
            continue
        if name in _SECONDS:
            yield _SECONDS[name], f"{1e3 * value:.2f} ms"
        elif name in _RATES:
            yield _RATES[name], f"{value:,.0f}"
        elif name.endswith(".accuracy"):
            yield name, f"{value:.2%}"
        else:
            yield name, f"{value:,.6g}"
    yield "samples waiting", f"{state['queue_samples']:,}"
    if state["pending"] is not None:
        yield "rows waiting for labels", f"{state['pending']['rows']:,}"
