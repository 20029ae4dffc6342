"""`wolfstream models`: how the models of a directory stand, one left out, one deleted."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.service.streams import three_classes
from tests.service.writer_bench import Bench, state_of
from wolfstream.service.cli.main import main
from wolfstream.service.recovery.salvage import recover_directory
from wolfstream.service.storage.data_directory import owned

SPEC = {"asset": None, "working_set": {"max_size": 60}}
ROWS = three_classes(20, 9).X


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["models", *map(str, arguments)], prog_name="wolfstream")


def error_of(result: Result) -> str:
    assert result.exit_code == 1, result.output
    line: str = result.stderr.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    return line


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One model with a snapshot at 20 and a journal up to 30, and one without any."""
    bench = Bench(tmp_path / "data")
    model = bench.create(SPEC, "prices")
    bench.learn(model, three_classes(20))
    bench.snapshot(model)
    bench.learn(model, three_classes(10, 1))
    bench.learn(bench.create(SPEC, "mail"), three_classes(5))
    bench.kill()
    return tmp_path / "data"


def test_they_are_listed(data: Path) -> None:
    listed = "prices at sequence 30, snapshots 20\nmail at sequence 5, snapshots none\n"
    assert run("list", "--data", data).output == listed
    with owned(data):
        assert run("list", "--data", data).output == listed


def test_one_is_left_out_and_tried_again_on_request(data: Path) -> None:
    bench = Bench(data)
    whole = state_of(bench.writer.models.all()[0], ROWS)
    bench.kill()
    assert "at sequence 20, and learn nothing" in run("skip", "prices", "--data", data).output
    assert "snapshots 20; skipped" in run("list", "--data", data).output
    for _ in range(2):
        bench = Bench(data)
        prices, mail = bench.writer.models.all()
        assert (prices.published.sequence, mail.published.sequence) == (20, 5)
        assert prices.describe()["status"] == "broken"
        assert not prices.published.heads["working_set"].lacks
        bench.kill()
    recover_directory(data)
    bench = Bench(data)
    assert state_of(bench.writer.models.all()[0], ROWS) == whole
    bench.kill()


def test_one_is_deleted(data: Path) -> None:
    assert run("delete", "prices", "--data", data, "--yes").exit_code == 0
    assert run("list", "--data", data).output == "mail at sequence 5, snapshots none\n"
    assert not list((data / "snapshots").glob("1*"))
    bench = Bench(data)
    assert [model.name for model in bench.writer.models.all()] == ["mail"]
    bench.kill()


def test_what_is_refused(data: Path, tmp_path: Path) -> None:
    asked = ["models", "delete", "prices", "--data", str(data)]
    assert CliRunner().invoke(main, asked, input="n\n").exit_code == 1
    assert "has no model 'other'; it has prices, mail" in error_of(
        run("skip", "other", "--data", data)
    )
    assert "is no data directory" in error_of(run("list", "--data", tmp_path))
    with owned(data):
        for command in (["skip", "prices"], ["delete", "prices", "--yes"]):
            assert "a server holds" in error_of(run(*command, "--data", data))
    assert "prices at sequence 30" in run("list", "--data", data).output
