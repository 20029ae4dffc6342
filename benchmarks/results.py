"""Results of the studies, and the tables of `benchmarks/README.md` that are made of them.

A result is a line of JSON in `results/NAME.jsonl`: what one contender did on one set of data, with
the machine, the day and the versions. A page has a table between two marks, and a test compares it
with what is kept. Tables that were typed by hand before results were kept are lines of
`results/typed.jsonl`; such a line goes when its study is measured anew.
"""

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

FOLDER = Path(__file__).parent / "results"
PAGE = Path(__file__).parent / "README.md"
TYPED = "typed"

Figures: TypeAlias = dict[str, Any]


class Result(NamedTuple):
    """What one contender did on one set of data.

    rows: the bound on the data's size that was asked for, or None for all of it.
    figures: unrounded; `instead` has words where there are none.
    measured: day, machine and versions.
    """

    contender: str
    data: str
    seed: int
    rows: int | None
    figures: Figures
    measured: dict[str, Any]

    @property
    def key(self) -> tuple[str, str, int, int | None]:
        """What it replaces an earlier result by."""
        return self.contender, self.data, self.seed, self.rows


class Results:
    """Results of a study by contender and data, the names in the study's order."""

    def __init__(self, results: Iterable[Result]) -> None:
        self.results = list(results)
        self.contenders = list(dict.fromkeys(result.contender for result in self.results))
        self.data = list(dict.fromkeys(result.data for result in self.results))

    def of(self, contender: str, data: str) -> list[Figures]:
        """Return the figures of a pair, one for each seed."""
        pairs = (result for result in self.results if result.contender == contender)
        return [result.figures for result in pairs if result.data == data]


Cell: TypeAlias = Callable[[list[Figures]], str]


def read(name: str, folder: Path = FOLDER) -> list[Result]:
    """Return the kept results of a study, none where there is no file."""
    path = folder / f"{name}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [Result(**json.loads(line)) for line in lines]


def keep(name: str, result: Result, folder: Path = FOLDER) -> None:
    """Add a result, in place of that of the same contender, data, seed and rows."""
    results = [old for old in read(name, folder) if old.key != result.key]
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(each._asdict()) + "\n" for each in [*results, result])
    # A run that is stopped here loses nothing.
    part = folder / f"{name}.part"
    part.write_text(text)
    part.replace(folder / f"{name}.jsonl")


def markdown(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table, all columns but the first to the right."""
    lines = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def crossed(kept: Results, cell: Cell, corner: str = "") -> str:
    """Return a table of a row for each set of data and a column for each contender."""
    rows = [
        [name, *(cell(kept.of(contender, name)) for contender in kept.contenders)]
        for name in kept.data
    ]
    return markdown([corner, *kept.contenders], rows)


def listed(kept: Results, columns: Mapping[str, Cell]) -> str:
    """Return a table of a row for each pair of data and contender that was run."""
    pairs = [(data, contender) for data in kept.data for contender in kept.contenders]
    rows = [
        [data, contender, *(cell(figures) for cell in columns.values())]
        for data, contender in pairs
        if (figures := kept.of(contender, data))
    ]
    return markdown(["", "", *columns], rows)


def stepped(kept: Results, heads: tuple[str, str], steps: Iterable[int]) -> str:
    """Return a table of a row for each set of data and step, and a column for each contender.

    Figures hold a mean and its standard error for each step, by its digits; the error is that of
    the first contender.

    heads: of the column of data and of that of the steps.
    """
    rows = list[Iterable[str]]()
    for name in kept.data:
        for number, step in enumerate(steps):
            scores = [next(iter(kept.of(who, name)), {}).get(str(step)) for who in kept.contenders]
            error = "" if scores[0] is None else _four_digits(scores[0]["error"])
            cells = ["" if each is None else _four_digits(each["mean"]) for each in scores]
            rows.append(["" if number else name, f"{step:,}", *cells, error])
    return markdown([*heads, *kept.contenders, "standard error"], rows)


def _four_digits(value: float) -> str:
    """Return a figure of four digits, or the power of ten of one that is no figure any more."""
    if value >= 1e7:
        return f"{value:.0e}"
    return f"{value:,.0f}" if value >= 1_000.0 else f"{value:.2f}"


def mean(name: str, form: str = ".2f") -> Cell:
    """Return a cell of the mean of a figure over the seeds; empty or with words where it lacks."""

    def cell(figures: list[Figures]) -> str:
        if words := [each["instead"] for each in figures if each.get("instead")]:
            return str(words[0])
        values = [each[name] for each in figures if each.get(name) is not None]
        return format(statistics.fmean(values), form) if values else ""

    return cell


def spread(name: str, form: str = ".2f") -> Cell:
    """Return a cell of the mean and the deviation of a figure over the seeds."""

    def cell(figures: list[Figures]) -> str:
        values = [each[name] for each in figures]
        deviation = statistics.stdev(values) if len(values) > 1 else 0.0
        return f"{statistics.fmean(values):{form}} ± {deviation:{form}}" if values else ""

    return cell


def middle(figures: list[Figures], name: str) -> float:
    """Return the median of a figure over the seeds."""
    return float(statistics.median(each[name] for each in figures))


def read_typed(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Return the tables that were typed by hand, by their marks."""
    path = folder / f"{TYPED}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {table["mark"]: table for table in map(json.loads, lines)}


def typed_table(table: Mapping[str, Any]) -> str:
    """Return a table that was typed by hand, as it was."""
    lines = [table["heads"], table["alignment"], *table["rows"]]
    return "\n".join(
        "".join(f"| {cell} " if cell else "| " for cell in line) + "|" for line in lines
    )


def forget_typed(mark: str, folder: Path = FOLDER) -> None:
    """Drop the typed table that a measured one replaces."""
    tables = read_typed(folder)
    if tables.pop(mark, None) is not None:
        text = "".join(json.dumps(each) + "\n" for each in tables.values())
        (folder / f"{TYPED}.jsonl").write_text(text)


def marks(mark: str) -> tuple[str, str]:
    """Return what stands before and after a table of a page."""
    return f"<!-- table: {mark} -->", f"<!-- end: {mark} -->"


def written(page: str, mark: str, table: str) -> str:
    """Return a page with a table in place of what stands between its marks."""
    begin, end = marks(mark)
    before, _, rest = page.partition(begin)
    if end not in rest:
        raise SystemExit(f"the page has no marks {begin} and {end}")
    return f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
