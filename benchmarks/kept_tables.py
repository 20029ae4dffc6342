"""Tables of pages whose figures are kept in `benchmarks/results`, and tests that compare them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def read(name: str) -> list[dict[str, Any]]:
    """Return the lines of a file of results, none where it does not exist."""
    path = RESULTS / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def keep(name: str, keys: tuple[str, ...], line: dict[str, Any]) -> None:
    """Add a line, in place of the one with the same values of `keys`."""
    lines = [old for old in read(name) if any(old[key] != line[key] for key in keys)]
    text = "".join(json.dumps(each) + "\n" for each in [*lines, line])
    (RESULTS / name).write_text(text)


def markdown(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table, all columns but the first to the right."""
    heads = list(heads)
    lines = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def written(page: str, mark: str, table: str) -> str:
    """Return a page with the table in place of what stands between its marks."""
    begin, end = f"<!-- {mark}: by the program -->", f"<!-- {mark}: end -->"
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}"
