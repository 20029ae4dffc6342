"""README and the pages in docs are true: each runs as one session, and what they name exists."""

import ast
import json
import os
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.page_session import ROOT, Session, blocks_of, run_page
from tests.test_structure import ALLOWED

README = (ROOT / "README.md").read_text()
PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
TEXTS = {
    page: (ROOT / page).read_text() for page in [*PAGES, "CONTRIBUTING.md", "docker/README.md"]
}


def run(page: str, folder: Path, commands: Path | None = None) -> Session:
    """A page that ran to its end without an error in Python.

    commands: those of all pages but README, whose commands are started as usual.
    """
    session = run_page(page, folder, commands)
    assert session.code == 0, session.errors
    assert "Traceback" not in session.errors
    return session


def test_readme_is_one_session(tmp_path: Path):
    session = run("README.md", tmp_path)
    ready, created, learned, predicted = session.output("wolfstream serve").responses
    # On a first start it still compiles what nobody waits for.
    ready.pop("compiling", None)
    assert ready == {"status": "ready"}
    assert created["sequence"] == 0
    assert learned["sequence"] == predicted["sequence"] == 4
    assert predicted["prediction"] == ["dry", "humid"]
    assert session.output('client.learn("rooms"').lines == ["['dry' 'humid']"]
    assert "adaptive: 4 samples" in session.output("wolfstream replay").text


def test_the_recording_of_the_console_is_small():
    assert 0 < (ROOT / "docs" / "console.webp").stat().st_size < 1_500_000


def test_readme_is_short_and_its_picture_small():
    assert len(README.splitlines()) < 140
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert pictures
    assert all((ROOT / picture).stat().st_size < 100_000 for picture in pictures)


@pytest.mark.parametrize("page", PAGES[1:])
def test_each_page_works_in_a_folder_of_its_own(page: str):
    """Most pages make a model of the name rooms, and one of them makes keys."""
    blocks = blocks_of(page)
    stem = Path(page).stem
    assert not blocks or blocks[0].text.startswith(f"mkdir -p {stem} && cd {stem}\n")


def test_page_of_late_labels_is_one_session(tmp_path: Path, commands: Path):
    session = run("docs/late-labels.md", tmp_path, commands)
    _, _, _, predicted, labelled, again = session.output("wolfstream serve").responses
    assert predicted["ids"] == ["hall", 7]
    assert labelled["results"]["status"] == ["learned"] * 2
    assert labelled["results"]["prediction"] == predicted["prediction"][::-1]
    assert again["results"]["status"] == ["replayed", "conflict", "unknown"]
    found, joined = session.output('client.predict("rooms"').lines
    assert found.startswith("['learned', 'learned']")
    assert found.endswith(" 10")
    assert joined == "6"
    in_csv = session.output("text/csv").responses[-1]
    assert in_csv["results"]["status"] == ["learned"] * 2


def test_page_of_workers_is_one_session(tmp_path: Path, commands: Path):
    session = run("docs/workers.md", tmp_path, commands)
    served = session.output("wolfstream serve")
    assert [answer["sequence"] for answer in served.responses[-2:]] == [2, 2]
    assert "wolfstream_workers 2.0" in served.text


def test_page_of_probabilities_is_one_session(tmp_path: Path, commands: Path):
    session = run("docs/probabilities.md", tmp_path, commands)
    *_, sure, why, of_bank, described = session.output("wolfstream serve").responses
    assert sum(sure["probability"][0]) == pytest.approx(1.0)
    assert sure["prediction"][0] in sure["prediction_set"][0]
    (explained,) = why["explanation"]
    assert explained["for"] == why["prediction"][0]
    assert all(1 <= one["sequence"] <= 400 for one in explained["members"]["for"])
    assert {one["feature"] for one in of_bank["explanation"][0]["gradient"]} <= {
        *("celsius", "percent", "window"),
    }
    assert 370 < described["heads"]["adaptive"]["calibration"]["samples"] <= 384
    one, sets, label = session.output("client.predict_proba").lines
    assert float(one) == pytest.approx(1.0)
    assert "humid" in sets
    assert len(set(label.split())) == 1
    assert session.output("predict_interval").lines == ["True 0", "True"]


def test_page_of_challengers_is_one_session(tmp_path: Path, commands: Path):
    session = run("docs/challengers.md", tmp_path, commands)
    *_, said, board = session.output("wolfstream serve").responses
    assert said["sequence"] == 6
    (row,) = board["challengers"]
    assert (row["model"], row["lag"], row["better"]) == ("rooms-bank", 0, None)
    exchanged = session.output("/promote -d")
    promoted, back = exchanged.responses
    assert promoted["rolled_back"]["of"] == "rooms-bank"
    assert promoted["spec"]["adaptive"] is not None
    assert "rooms-bank" in exchanged.text
    assert back["spec"]["adaptive"] is None
    assert session.output("client.promote").lines[-1] == "{'type': 'linear'}"


def test_page_of_models_is_one_session(tmp_path: Path, commands: Path):
    session = run("docs/models.md", tmp_path, commands)
    ready, created, learned, predicted, job, refitted = session.output("refit").responses
    # On a first start it still compiles what nobody waits for.
    ready.pop("compiling", None)
    assert ready == {"status": "ready"}
    assert created["spec"]["semiparametric"]["window"] == 2000
    assert learned["learned"] == 5
    assert predicted["head"] == "asset"
    assert job["status"] in ("queued", "running", "done")
    assert refitted["head"] == "semiparametric"
    assert 6.0 < refitted["prediction"][0] < 8.0
    created, learned, predicted, refused, described = session.output("hectopascals").responses
    assert created["model"] == "weather"
    assert learned["learned"] == 2
    assert predicted["prediction"][0] in ("dry", "wet")
    assert "did you mean" in refused["errors"][0]["detail"]
    kinds = {column["name"]: column["kind"] for column in described["columns"]}
    assert kinds == {
        **{"at": "time", "wind": "category"},
        **{"hectopascals": "number", "frost": "constant"},
    }
    created, learned, predicted = session.output("hail").responses
    assert created["model"] == "words"
    assert learned["learned"] == 2
    assert predicted["prediction"] == ["humid"]


def test_page_of_columns_is_one_session(tmp_path: Path, commands: Path):
    session = run("docs/columns.md", tmp_path, commands)
    *_, learned, described, predicted = session.output("limit used").responses
    assert learned["learned"] == 4
    assert {column["name"]: column["kind"] for column in described["columns"]} == {
        **{"amount": "number in text", "limit used": "number in text", "when": "time"},
        **{"known device": "boolean", "note": "text"},
    }
    described_one, warned = re.findall(r"```json\n(.*?)```", TEXTS["docs/columns.md"], re.DOTALL)
    assert json.loads(described_one) == described["columns"][0]
    assert json.loads("{" + warned + "}")["warnings"] == predicted["warnings"]


def test_page_of_operations_is_one_session(tmp_path: Path, commands: Path):
    session = run("docs/operations.md", tmp_path, commands)
    day = session.output("rollback")
    _, created, learned, again, snapshot, mistake, back, history = day.responses
    assert created["sequence"] == 0
    assert learned["sequence"] == again["sequence"] == snapshot["sequence"] == 2
    assert again == learned
    assert mistake["sequence"] == back["sequence"] == 3
    assert back["rolled_back"]["to"] == 2
    assert [kept["sequence"] for kept in history["snapshots"]] == [2]
    assert "wolfstream_samples_learned" in day.text
    files = session.output("snapshot export")
    assert "wolfstream-data: whole" in files.lines
    assert '"dtype"' not in files.text
    assert (tmp_path / "work" / "operations" / "rooms.model").exists()
    assert (tmp_path / "work" / "operations" / "other-data" / "log.sqlite").exists()


def test_page_of_formats_is_one_session(tmp_path: Path, commands: Path):
    session = run("docs/formats.md", tmp_path, commands)
    _, _, of_csv, of_lines = session.output("rooms.csv").responses
    assert (of_csv["learned"], of_csv["sequence"]) == (3, 3)
    assert (of_lines["learned"], of_lines["sequence"]) == (2, 5)
    _, of_csv, of_flat_rows, predicted = session.output("label=Feels").responses
    assert (of_csv["learned"], of_flat_rows["learned"]) == (3, 1)
    assert predicted["sequence"] == 4
    assert len(predicted["prediction"]) == 3
    (refused,) = session.output("[20, [1]]").responses
    assert refused["type"].startswith("urn:wolfstream:")
    assert refused["errors"][0]["pointer"] == "/x/0/1"
    (inferred,) = session.output("infer").responses
    assert inferred["outputs"][0]["data"] == ["humid"]


def test_page_of_keys_is_one_session(tmp_path: Path, commands: Path):
    session = run("docs/authentication-and-limits.md", tmp_path, commands)
    output = session.output("keys add")
    assert [line.split()[0] for line in output.lines[1:4]] == ["NAME", "ops", "sensors"]
    ready, refused, listed = output.responses
    # On a first start it still compiles what nobody waits for.
    ready.pop("compiling", None)
    assert ready == {"status": "ready"}
    assert refused["status"] == 401
    assert listed == {"models": []}


def test_page_of_python_is_one_session(tmp_path: Path, commands: Path):
    session = run("docs/python.md", tmp_path, commands)
    learned, predicted, classes = session.output('client.describe("rooms")').lines
    assert learned.split()[0] == "500"
    assert float(learned.split()[1]) > 0.8
    assert predicted == "['dry' 'humid']"
    assert classes in ("['dry', 'humid']", "['humid', 'dry']")
    assert re.fullmatch(r"300 \['(humid|dry)'\]", session.output("asyncio").lines[0])
    same, gone_on, from_file = session.output('client.upload("attic"').lines
    assert same == from_file == "True"
    assert gone_on == "StreamClassifier True"
    # A block with River has made another model where River is installed.
    created, *predicted, _, attic, copy = session.output("create attic-2").lines[:6]
    assert created == "attic-2 at sequence 300: classification"
    assert predicted == ["dry", "humid"]
    assert [line.split()[:2] for line in (attic, copy)] == [["attic", "400"], ["attic-2", "300"]]
    score, of_stream, inside_and_outside, stranger, certified = session.output(
        "EnclosingBall"
    ).lines
    assert stranger == "True"
    exact, gap = map(float, certified.split())
    assert exact > 0.97
    assert gap <= 1e-2
    accuracy, met = score.split(maxsplit=1)
    assert float(accuracy) > 0.9
    assert met == str(list(range(10)))
    assert float(of_stream.split()[0]) > 0.9
    inside, outside = map(float, inside_and_outside.split())
    assert inside > 0.7
    assert outside < 0.05
    assert session.output("merged = merge").lines == ["True"]
    if any("from river" in output.block.text for output in session.outputs):
        found = re.fullmatch(r"Accuracy: ([\d.]+)%", session.output("from river").lines[0])
        assert found
        assert float(found[1]) > 75


def test_page_of_training_is_one_session(tmp_path: Path, commands: Path):
    session = run("docs/training-from-files.md", tmp_path, commands)
    trained = session.output("wolfstream train")
    judged = re.search(r"accuracy ([\d.]+)%, kappa ([\d.]+) of 50 samples", trained.text)
    assert judged
    assert float(judged[1]) > 85
    assert float(judged[2]) > 0.6
    folder = tmp_path / "work" / "training-from-files"
    predictions = (folder / "predictions.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in predictions] == ["prediction", "dry", "humid"]
    served = session.output("--load")
    assert "model loaded: model=rooms file=rooms.model state=" in session.errors
    assert "trained by mfw on 200 samples" in session.errors
    assert "working_set: 50 samples" in served.text
    assert served.responses[-1]["prediction"] == ["humid"]


def test_page_of_learners_of_ones_own_is_one_session(tmp_path: Path):
    session = run("docs/heads.md", tmp_path)  # a forked command does not read PYTHONPATH
    assert session.output("running_mean.py <<").responses[-1]["prediction"] == [52.0]
    created, learned, predicted = session.output("river.forest").responses[-3:]
    assert created["spec"]["custom"]["learner"] == "river"
    assert learned["sequence"] == predicted["sequence"] == 4
    assert predicted["prediction"][0] in ("dry", "humid")  # of four samples


def test_a_page_without_curl_fails_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bash = shutil.which("bash")
    assert bash
    (tmp_path / "bash").symlink_to(bash)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match="curl is not installed"):
        run_page("README.md", tmp_path)


def test_every_page_with_commands_is_run():
    with_commands = {page for page in PAGES if any(not b.is_set_up for b in blocks_of(page))}
    names = re.findall(r'run\("([\w./-]+)"', Path(__file__).read_text())
    assert with_commands == set(names)


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_somewhere(page: str):
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", TEXTS[page]):
        path, _, heading = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
            plain = [re.sub(r"[^\w -]", "", title.lower()) for title in titles]
            assert heading in [title.replace(" ", "-") for title in plain]


@pytest.mark.parametrize("page", TEXTS)
def test_files_and_packages_that_are_named_exist(page: str):
    files = r"`((?:solver|service|docker|benchmarks|tests|docs)/[\w./-]+)`"
    for path in re.findall(files, TEXTS[page]):
        assert (ROOT / path).exists(), path
    for package in re.findall(r"`(service\.[\w.]+)`", TEXTS[page]):
        assert (ROOT / package.replace(".", "/")).is_dir() or (
            ROOT / f"{package.replace('.', '/')}.py"
        ).exists(), package


def test_the_way_of_a_sample_names_packages():
    table = TEXTS["CONTRIBUTING.md"].partition("| step | packages |")[2].partition("\n\n")[0]
    steps = [line.split("|")[1:3] for line in table.splitlines()[2:]]
    assert [step.strip() for step, _ in steps] == [
        *("receive", "decode", "submit", "append + fsync", "absorb block", "publish view"),
        *("acknowledge", "load snapshot, replay"),
    ]
    for _, packages in steps:
        assert set(re.findall(r"`([\w.]+)`", packages)) <= set(ALLOWED)


def test_the_extras_and_targets_that_are_named_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    makefile = (ROOT / "Makefile").read_text()
    for text in TEXTS.values():
        for extra in re.findall(r"pip install '\.\[(\w+)\]'", text):
            assert extra in project["optional-dependencies"]
        for target in re.findall(r"(?:`|^)make ([\w-]+)", text, re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("page", TEXTS)
def test_no_package_index_is_named_before_something_is_published(page: str):
    assert not re.search(r"pip install '?wolfstream", TEXTS[page])


def test_the_defaults_that_the_pages_name_are_those_of_the_settings():
    from wolfstream.service.settings import Settings
    from wolfstream.service.spec.working_set import WorkingSetSpec

    settings = Settings(_env_file=None)  # type: ignore[call-arg]
    models = " ".join(TEXTS["docs/models.md"].split())
    assert f"at most {settings.classes} different" in models
    assert f"at most {settings.features:,} different names" in models
    assert "(5,000 by default" in models
    assert WorkingSetSpec.model_fields["max_size"].default == 5000


def test_the_table_of_limits_has_each_limit_with_its_default():
    from wolfstream.service.settings import Settings

    table = TEXTS["docs/authentication-and-limits.md"].partition("| limit | default")[2]
    rows = re.findall(r"\| ([^|]+) \| `WOLFSTREAM_(\w+)` \|", table.partition("\n\n")[0])
    told = {setting.lower(): default for default, setting in rows}
    elsewhere = {
        *(
            "port",
            "threads",
            "snapshot_samples",
            "snapshot_seconds",
            "workers",
            "max_lag_seconds",
            "drain_seconds",
        ),  # which are no limits
    }
    units = {"KiB": 1 << 10, "MiB": 1 << 20}
    numbers = {name: field.default for name, field in Settings.model_fields.items()}
    limits = {name for name, default in numbers.items() if type(default) in (int, float)}
    assert told.keys() == limits - elsewhere
    for name, default in told.items():
        number, _, unit = default.partition(" ")
        if numbers[name]:
            assert (
                float(number.replace(",", "")) * units.get(unit.split(",")[0], 1) == numbers[name]
            ), name
        else:
            assert "the memory" in default or "the server leaves" in default, name


def test_each_promise_names_tests_that_exist():
    """A cell names files, each with nothing behind it or with tests and classes of it."""
    table = TEXTS["docs/guarantees.md"].partition("| promise | verified by |\n")[2]
    rows = table.partition("\n\n")[0].splitlines()[1:]
    assert len(rows) > 40
    for row in rows:
        path, names = ROOT / "none", frozenset[str]()
        named = re.findall(r"`([^`]+)`", row.rstrip("| ").rpartition(" | ")[2])
        assert named, row
        for name in named:
            if name.endswith(".py"):
                path = ROOT / name if "/" in name else path.with_name(name)
                names = names_of_tests(path)
            else:
                assert name in names, (row, name)


def names_of_tests(path: Path) -> frozenset[str]:
    """The tests of a file, and the classes that hold some."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    nodes = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds))
    names = frozenset(node.name for node in nodes if node.name.lower().startswith("test"))
    assert names, path
    return names


def test_the_commands_of_the_container_agree():
    (commands,) = [block.text for block in blocks_of("README.md") if "docker run" in block.text]
    assert commands in TEXTS["docker/README.md"]
    assert os.access(ROOT / "docker" / "entrypoint.sh", os.R_OK)
