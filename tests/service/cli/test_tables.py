"""Files with headers, words and gaps: trained, predicted, evaluated, replayed."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from tests.service.process import ServerProcess
from wolfstream.service.cli.main import main
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.model_files import load_model
from wolfstream.service.samples.validation import Samples
from wolfstream.solver.prepare.named_rows import table_of

NAMES = ["warmth", "room", "pascals"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)], prog_name="wolfstream")


def done(*arguments: object) -> Result:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def rooms(count: int) -> list[dict[str, Any]]:
    chance = random.Random(count)
    rows = []
    for k in range(count):
        row = {
            "warmth": round(chance.gauss(20, 3), 2),
            "room": chance.choice(["hall", "bath"]),
            "pascals": round(chance.gauss(101_000, 500)),
        }
        row["y"] = "dry" if (row["warmth"] > 20) == (row["room"] == "hall") else "humid"
        if k % 10 == 9:
            row["pascals"] = ""
        rows.append(row)
    return rows


def written(path: Path, rows: list[dict[str, Any]], names: list[str]) -> Path:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, names, extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)
    return path


def predictions(path: Path, file: Path) -> list[str]:
    return done("predict", path, file).stdout.splitlines()[1:]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained on a file with a category, numbers in their own units, and gaps."""
    folder = tmp_path_factory.mktemp("rooms")
    file = written(folder / "rooms.csv", rooms(1500), [*NAMES, "y"])
    done("train", file, "--model", folder / "rooms.model", "--algorithm", "adaptive")
    return folder / "rooms.model"


def test_a_file_trains_a_table(model: Path):
    told = load_model(model).model.describe()
    assert (told["rows"], told["features"]) == ("table", 3)
    assert [c["kind"] for c in told["columns"]] == ["number", "category", "number"]


def test_columns_in_another_order_are_put_right(model: Path, tmp_path: Path):
    held = rooms(200)
    straight = written(tmp_path / "straight.csv", held, NAMES)
    turned = written(tmp_path / "turned.csv", held, NAMES[::-1])
    said = predictions(model, straight)
    assert said == predictions(model, turned)
    assert sum(p == row["y"] for p, row in zip(said, held, strict=True)) > 180


def test_a_column_that_the_model_does_not_know_is_named(model: Path, tmp_path: Path):
    file = written(tmp_path / "typo.csv", rooms(3), ["warmt", "room", "pascals"])
    result = run("predict", model, file)
    assert result.exit_code == 0
    assert result.stderr.count("did you mean `warmth`") == 1


def test_numbers_that_are_codes_are_found_where_a_server_finds_them(tmp_path: Path):
    """Hours and lines whose pairs decide: amounts of them say nothing."""
    chance = random.Random(5)
    late = {(hour, line): chance.random() < 0.5 for hour in range(12) for line in range(10)}
    rows = []
    for _ in range(3000):
        warmth, hour, line = chance.gauss(20, 3), chance.randrange(12), chance.randrange(10)
        label = "late" if late[hour, line] else "punctual"
        rows.append({"warmth": warmth, "hour": hour, "line": line, "y": label})
    names = ["warmth", "hour", "line"]
    file = written(tmp_path / "trains.csv", rows[:2500], [*names, "y"])
    done("train", file, "--model", tmp_path / "trains.model", "--algorithm", "adaptive")
    loaded = load_model(tmp_path / "trains.model")
    served = Learner(Model(1, "served", loaded.learner.model.spec))
    X = [[row[name] for name in names] for row in rows[:300]]
    served.absorb("adaptive", Samples(table_of(names, X), [row["y"] for row in rows[:300]]))
    assert loaded.learner.rows.form.coded == served.rows.form.coded == (1, 2)
    said = predictions(tmp_path / "trains.model", written(tmp_path / "new.csv", rows[2500:], names))
    assert sum(p == row["y"] for p, row in zip(said, rows[2500:], strict=True)) > 450


def test_a_model_of_plain_numbers_keeps_to_its_header(tmp_path: Path):
    held = [row | {"k": k} for k, row in enumerate(rooms(300)) if row["pascals"] != ""]
    names = ["warmth", "pascals", "k"]
    file = written(tmp_path / "plain.csv", held, [*names, "y"])
    plain = tmp_path / "plain.model"
    done("train", file, "--model", plain, "--algorithm", "asset", "--gamma", 1e-4)
    straight = written(tmp_path / "straight.csv", held[:50], names)
    turned = written(tmp_path / "turned.csv", held[:50], names[::-1])
    assert predictions(plain, straight) == predictions(plain, turned)
    lacking = run("evaluate", plain, written(tmp_path / "lacking.csv", held, ["warmth", "k", "y"]))
    assert lacking.exit_code == 1
    assert "'pascals' is missing" in lacking.stderr


def test_text_is_no_number_for_the_papers_learners(tmp_path: Path):
    file = written(tmp_path / "rooms.csv", rooms(50), [*NAMES, "y"])
    result = run("train", file, "--model", tmp_path / "m.model", "--algorithm", "msfw")
    assert result.exit_code == 1
    assert "is not a finite number" in result.stderr


def test_a_file_streams_into_a_server_with_its_names(
    server: ServerProcess, client: httpx.Client, name: str, tmp_path: Path
):
    spec = '{"working_set": null, "asset": null}'
    for part, names in enumerate(([*NAMES, "y"], ["y", *NAMES[::-1]])):
        file = written(tmp_path / f"{part}.csv", rooms(100 + part), names)
        done("replay", file, "--model", name, "--url", server.url, "--spec", spec)
    told = client.get(f"/v1/models/{name}").json()
    assert (told["sequence"], told["rows"]) == (201, "table")
    assert [column["name"] for column in told["columns"]] == NAMES
    papers = '{"prepare": null, "adaptive": null}'
    refused = run("replay", file, "--model", f"{name}p", "--url", server.url, "--spec", papers)
    assert refused.exit_code == 1
    assert "texts or gaps" in refused.stderr


def test_ndjson_is_what_the_same_csv_is(tmp_path: Path, server: ServerProcess):
    rows = rooms(300)
    in_csv = written(tmp_path / "rooms.csv", rows, [*NAMES, "y"])
    in_lines = tmp_path / "rooms.ndjson"
    flat = [{k: None if v == "" else v for k, v in row.items()} for row in rows]
    in_lines.write_text("\n".join(map(json.dumps, flat)))
    told = []
    for file in (in_csv, in_lines):
        path = tmp_path / f"{file.suffix[1:]}.model"
        done("train", file, "--model", path, "--algorithm", "adaptive")
        judged = done("evaluate", path, file).stdout.split(";")[0].partition(": ")[2]
        name = f"tables-{file.suffix[1:]}"
        done("replay", file, "--url", server.url, "--model", name)
        served = httpx.get(f"{server.url}/v1/models/{name}").json()
        told.append((predictions(path, file), judged, served["columns"], served["sequence"]))
    assert told[0] == told[1]
