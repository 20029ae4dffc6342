"""The figures of published tables are those of results that are kept beside the benchmarks."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import harness, results
from benchmarks.__main__ import study_of
from benchmarks.studies import STUDIES

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
README = (ROOT / "README.md").read_text()
BENCHMARKS = (ROOT / "benchmarks" / "README.md").read_text()


def lines_of(name: str) -> list[Any]:
    return [json.loads(line) for line in (RESULTS / name).read_text().splitlines()]


def section(page: str, heading: str) -> str:
    return page.partition(f"\n{heading}\n")[2].partition("\n#")[0]


def cells(text: str, first: str) -> list[list[str]]:
    """The rows of the table whose heading begins with a cell, without emphasis."""
    table = text[text.index(f"| {first} |") :].partition("\n\n")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines()]
    return [[cell.strip().strip("*") for cell in row] for row in rows[:1] + rows[2:]]


def shown(value: float, like: str) -> str:
    """A number with as many decimals as another text has."""
    return f"{value:,.{len(like.rstrip('%').partition('.')[2])}f}" + "%" * like.endswith("%")


def tables(page: str) -> dict[str, str]:
    """The tables of a page that stand between two marks."""
    between = r"<!-- table: ([\w, ]+) -->\n(.+?)\n<!-- end: \1 -->"
    return dict(re.findall(between, page, re.DOTALL))


@pytest.mark.parametrize("mark", tables(BENCHMARKS))
def test_table_is_that_of_results(mark: str):
    typed = results.read_typed()
    made = results.typed_table(typed[mark]) if mark in typed else table_of(mark)
    assert tables(BENCHMARKS)[mark] == made


def table_of(name: str) -> str:
    study = study_of(name)
    return study.table(harness.read(study, name))


def test_table_of_the_largest_requests():
    page = (ROOT / "docs" / "authentication-and-limits.md").read_text()
    assert tables(page)["largest_requests"] == table_of("largest_requests")


def test_typed_tables_are_on_the_page():
    assert results.read_typed().keys() <= tables(BENCHMARKS).keys()


BY_HAND = {"# Benchmarks", "### Kept results"}


def test_no_other_table_is_typed():
    outside = re.sub(r"<!-- table: .+?<!-- end: ", "", BENCHMARKS, flags=re.DOTALL)
    sections = re.split(r"^(?=#+ )", outside, flags=re.MULTILINE)
    assert {text.partition("\n")[0] for text in sections if "\n|" in text} <= BY_HAND


@pytest.mark.parametrize("name", STUDIES)
def test_study_is_whole(name: str):
    study = study_of(name)
    assert study.contenders
    assert study.data
    assert all(study.takes(contender, data) in (True, False) for contender in study.contenders
               for data in study.data)  # fmt: skip


PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), ROOT / "benchmarks" / "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_name_studies(page: Path):
    named = set(re.findall(r"python -m benchmarks ([a-z]\w*)", page.read_text()))
    assert named <= STUDIES.keys()


PREDICTED_BY = {"adaptive": "adaptive", "working set": "working_set", "ASSET": "asset"}
STREAMS = {"pen digits": "pendigits", "electricity": "elec2"}


def test_table_of_readme():
    _, *rows = cells(README, "stream")
    kept = {(row["stream"], row["by"]): row for row in lines_of("demo.jsonl")}
    stream, compared = "", set[tuple[str, str]]()
    for about, by, right, loss, held, size in rows:
        stream = STREAMS[about.partition(",")[0]] if about else stream
        if by.startswith("majority"):
            majority, again = right.split("; ")
            for rule, cell in (("majority", majority), ("last label", again)):
                compared.add((stream, rule))
                assert cell == shown(100 * kept[stream, rule]["right"], cell)
            assert held == shown(100 * kept[stream, "majority"]["held_back"], held)
            continue
        found = kept[stream, PREDICTED_BY[by]]
        compared.add((stream, PREDICTED_BY[by]))
        assert right == shown(100 * found["right"], right)
        assert held == shown(100 * found["held_back"], held)
        assert not loss or loss == shown(found["log_loss"], loss)
        assert size == f"{found['size']:,}"
    assert compared == kept.keys()


def test_hidden_ball():
    kept = {
        (each.seed, each.contender): each.figures["score"]
        for name in ("unlike", "naive_bayes")
        for each in results.read(name)
        if each.data == "hidden_ball"
    }
    unlike = section(BENCHMARKS, "### Streams that are unlike each other")
    heads, *rows = cells(unlike, "stream")
    (row,) = (dict(zip(heads, row, strict=True)) for row in rows if row[0] == "hidden_ball")
    assert row["default"] == shown(kept[1, "default"], row["default"])
    assert row["GaussianNB"] == shown(kept[1, "GaussianNB"], row["GaussianNB"])
    bank = section(BENCHMARKS, "### Naive Bayes in the bank")
    (with_it,) = re.findall(r"([\d.]+) instead of [\d.]+\s+of `hidden_ball`", bank)
    assert with_it == shown(sum(kept[seed, "default"] for seed in (31, 32, 33)) / 3, with_it)


@pytest.mark.parametrize("file", sorted(path.name for path in RESULTS.iterdir()))
def test_each_file_is_small(file: str):
    assert (RESULTS / file).stat().st_size < 100_000
