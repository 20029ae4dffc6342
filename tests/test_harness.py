"""The harness of the benchmarks: what it measures, in which order, and what it keeps."""

from functools import partial
from pathlib import Path

import pytest

from benchmarks import harness, results
from benchmarks.datasets import MissingSet
from benchmarks.harness import Options, RunRequest, Study
from benchmarks.results import Figures, crossed, mean

ROWS = 3


def missing(_: Options) -> int:
    raise MissingSet("no such file")


@pytest.fixture
def calls() -> list[tuple[str, int, int]]:
    return []


@pytest.fixture
def study(calls: list[tuple[str, int, int]]) -> Study:
    def measure(contender: str, size: int, options: Options) -> Figures:
        calls.append((contender, size, options.seed))
        return {"score": float(size + options.seed)}

    return Study(
        {"a": "a", "b": "b"},
        {"ten": lambda _: 10, "missing": missing},
        measure,
        partial(crossed, cell=mean("score", ".1f"), corner="set"),
        seeds=(1, 2),
    )


@pytest.fixture
def run_request(study: Study, tmp_path: Path) -> RunRequest:
    return RunRequest("toy", Options(tmp_path), study.seeds, folder=tmp_path)


def test_contenders_take_turns(
    study: Study, run_request: RunRequest, calls: list[tuple[str, int, int]]
):
    kept = harness.run(study, run_request)
    assert calls == [("a", 10, 1), ("b", 10, 1), ("a", 10, 2), ("b", 10, 2)]
    table = "| set | a | b |\n| --- | ---: | ---: |\n| ten | 11.5 | 11.5 |"
    assert study.table(kept) == table


def test_kept_is_not_measured_again(
    study: Study, run_request: RunRequest, calls: list[tuple[str, int, int]]
):
    harness.run(study, run_request)
    harness.run(study, run_request)
    assert len(calls) == 4
    harness.run(study, run_request._replace(again=True, only="b on ten"))
    assert calls[4:] == [("b", 10, 1), ("b", 10, 2)]
    assert len(results.read("toy", run_request.folder)) == 4


def test_short_runs_are_kept_apart(study: Study, run_request: RunRequest):
    harness.run(study, run_request)
    short = run_request._replace(options=run_request.options._replace(rows=ROWS), seeds=[1])
    assert len(harness.run(study, short).results) == 2
    assert len(harness.read(study, "toy", None, run_request.folder).results) == 4


def test_missing_data_are_said(
    study: Study, run_request: RunRequest, capsys: pytest.CaptureFixture[str]
):
    assert harness.run(study, run_request).data == ["ten"]
    assert "missing is left out: no such file" in capsys.readouterr().out


def test_rounds_load_once(study: Study, run_request: RunRequest):
    loads = []
    harness.run(
        study._replace(data={"ten": lambda o: loads.append(o) or 10}, rounds=True), run_request
    )
    assert len(loads) == 1


def test_written_replaces_a_table():
    begin, end = results.marks("toy")
    page = f"before\n{begin}\nold\n{end}\nafter\n"
    assert results.written(page, "toy", "new") == page.replace("old", "new")
    with pytest.raises(SystemExit, match="no marks"):
        results.written("no table", "toy", "new")


def test_measured_table_replaces_the_typed(tmp_path: Path):
    line = '{"mark": "toy", "heads": ["x"], "alignment": ["---"], "rows": [["1"], [""]]}\n'
    (tmp_path / "typed.jsonl").write_text(line)
    typed = results.read_typed(tmp_path)
    assert results.typed_table(typed["toy"]) == "| x |\n| --- |\n| 1 |\n| |"
    results.forget_typed("toy", tmp_path)
    assert results.read_typed(tmp_path) == {}
