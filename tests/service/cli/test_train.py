"""`wolfstream train`: files in, one model file out, or one line that says why not."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tests.service.streams import part, three_classes, two_classes
from wolfstream.service.cli.display import Bar
from wolfstream.service.cli.main import main
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.model_files import load_model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import LARGEST_SET
from wolfstream.service.storage.snapshot_format import read_state
from wolfstream.solver.rows.matrix import SparseRows

STREAM = three_classes(400)


def run(*arguments: object) -> Result:
    if "--algorithm" not in arguments:
        arguments += ("--algorithm", "msfw")
    return CliRunner().invoke(main, ["train", *map(str, arguments)], prog_name="wolfstream")


def trained(file: Path, *arguments: object) -> Path:
    out = file.with_suffix(".model")
    result = run(file, "--model", out, *arguments)
    assert result.exit_code == 0, result.output
    return out


def record(out: Path) -> dict:
    return read_state(out).plain["trained"]


def error_line(result: Result) -> str:
    assert "Traceback" not in result.output
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    return line


def test_a_nameless_column_is_left_out_with_a_warning(tmp_path: Path):
    file, out = tmp_path / "a.csv", tmp_path / "a.model"
    rows = "".join(f"{k},{k % 7},{'ab'[k % 7 > 3]}\n" for k in range(40))
    file.write_text(f",size,y\n{rows}")
    result = run(file, "--model", out, "--algorithm", "adaptive")
    assert result.exit_code == 0, result.output
    warnings = [line for line in result.stderr.splitlines() if line.startswith("Warning: ")]
    assert warnings[0].startswith(f"Warning: {file}: column 1 has no name")


def test_warnings_of_learning_are_printed(tmp_path: Path):
    file, out = tmp_path / "a.csv", tmp_path / "a.model"
    rows = "".join(f"${k % 7}.50,{'ab'[k % 7 > 3]}\n" for k in range(140))
    file.write_text(f"Report of\ntoday\n\npaid,y\n{rows}soon,A\n")
    result = run(file, "--model", out, "--algorithm", "adaptive")
    assert result.exit_code == 0, result.output
    said = [line.partition(f"{file}: ")[2] for line in result.stderr.splitlines()]
    assert "lines 1 to 3 are left out as titles: line 4 is the header" in "\n".join(said)
    assert any(line.startswith("`paid` is read as number in text") for line in said)
    assert any("'soon', which is missing there" in line for line in said)
    assert "warnings" not in record(out)


def test_a_home_directory_may_be_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.csv").write_text("a,y\n1,2\n2,3\n1,2\n")
    assert run("~/a.csv", "--model", "~/a.model").exit_code == 0
    assert (tmp_path / "a.model").exists()


def test_what_can_be_read_once_only_is_refused(tmp_path: Path):
    refused = run("-", "--model", tmp_path / "a.model")
    assert refused.exit_code == 2
    assert "standard input is read once, and data twice: save it as a file" in refused.stderr
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "is a pipe" in error_line(run(pipe, "--model", tmp_path / "a.model"))


def test_what_a_file_says_reaches_no_terminal_as_a_command(tmp_path: Path):
    file = tmp_path / "[b]\x1b[2J.csv"
    file.write_text("a,\x1b]0;owned\x07,y\n1,2,3\n")
    result = run(file, "--model", tmp_path / "out", "--label", "absent")
    assert result.exit_code == 1
    assert result.stderr.replace("\n", "").isprintable()
    assert r"\x1b]0;owned\x07" in result.stderr


def test_a_bar_takes_no_markup_of_a_file_name():
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    with Bar("reading [/b]\x1b]0;owned\x07.csv", console=console) as bar:
        bar.show(0.5, "half")
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert r"reading [/b]\x1b]0;owned\x07.csv" in shown
    assert "\x1b]0" not in shown


@pytest.fixture
def npz(tmp_path: Path) -> Path:
    np.savez(tmp_path / "a.npz", X=STREAM.X, y=np.array(STREAM.y))
    return tmp_path / "a.npz"


@pytest.fixture
def svm(tmp_path: Path) -> Path:
    lines = [
        f"{label} " + " ".join(f"{k + 1}:{value!r}" for k, value in enumerate(row))
        for row, label in zip(STREAM.X.tolist(), STREAM.y, strict=True)
    ]
    (tmp_path / "a.svm").write_text("\n".join(lines))
    return tmp_path / "a.svm"


class TestOnline:
    def test_a_set_may_be_as_large_as_a_servers(self, npz: Path):
        out = trained(npz, "--max-size", LARGEST_SET)
        assert load_model(out).learner.model.spec.working_set.max_size == LARGEST_SET

    @pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
    def test_the_file_is_what_a_server_would_have_learned(self, npz: Path, kernel: str):
        # Of a set so small, blocks have two samples wherever rows are divided, and kernel values
        # round alike.
        out = trained(npz, "--kernel", kernel, "--corrective-steps", 2, "--max-size", 40)
        plain, arrays = read_state(out)
        loaded = load_model(out).model
        server = Learner(Model(1, "m", loaded.spec))
        for start in range(0, 400, 256):
            server.absorb("working_set", part(STREAM, start, start + 256))
        expected, of_server = server.state()
        assert plain["sequence"] == expected["sequence"] == 400
        assert plain["dimension"] == expected["dimension"] == 3
        assert plain["heads"]["working_set"]["classes"] == [0, 10, 20]
        assert arrays.keys() == of_server.keys()
        for name, array in arrays.items():
            np.testing.assert_allclose(array, of_server[name], atol=1e-9, err_msg=name)

    def test_gamma_is_where_the_service_settles_it(self, npz: Path):
        model = Model(
            1,
            "m",
            load_model(trained(npz)).model.spec.model_copy(
                update={"kernel": type(load_model(trained(npz, "--force")).model.spec.kernel)()}
            ),
        )
        server = Learner(model)
        server.absorb("working_set", STREAM)
        server.publish()
        spec = load_model(npz.with_suffix(".model")).model.spec
        assert spec.kernel.gamma == server.model.published.heads["working_set"].stats["gamma"]

    def test_later_passes_store_no_sample_twice_and_close_the_gap(self, npz: Path):
        once = record(trained(npz, "--corrective-steps", 5))
        out = trained(npz, "--corrective-steps", 5, "--epochs", 5, "--force")
        rows = read_state(out).arrays["working_set.rows"]
        assert len(np.unique(rows, axis=0)) == len(rows)
        assert read_state(out).plain["sequence"] == 400
        assert (record(out)["samples"], record(out)["learned"]) == (400, 2000)
        assert record(out)["gap"] < once["gap"]

    def test_shuffling_is_of_the_seed(self, npz: Path):
        objectives = [
            record(trained(npz, "--force", "--shuffle", "--seed", seed))["objective"]
            for seed in (1, 1, 2)
        ]
        assert objectives[0] == objectives[1] != objectives[2]

    def test_class_weights_stay_with_the_model(self, npz: Path):
        out = trained(npz, "--class-weight", "10=3", "--class-weight", "20=0.5")
        loaded = load_model(out).learner
        server = Learner(Model(1, "m", loaded.model.spec))
        server.absorb("working_set", STREAM)
        for learner in (loaded, server):
            current = learner.heads["working_set"].learner.current
            assert [current.ridges.class_ridge(c) for c in range(3)] == [0.5, 0.5 / 3, 1.0]
        objective = record(out)["objective"]
        assert objective != record(trained(npz, "--force"))["objective"]

    def test_class_weights_of_asset_stay_with_the_model(self, npz: Path):
        own = ["--algorithm", "asset", "--dimension", 16]
        out = trained(npz, *own, "--class-weight", "10=3")
        asset = load_model(out).learner.heads["asset"].learner
        assert asset.current.class_weight == [1.0, 3.0, 1.0]


class TestBatch:
    @pytest.mark.sweep
    @pytest.mark.parametrize("algorithm", ["fw", "mfw", "swap", "partan"])
    @pytest.mark.parametrize("weight", [None, "balanced"])
    def test_the_set_adopts_the_solution(self, npz: Path, algorithm: str, weight: str | None):
        more = ["--class-weight", weight] if weight else []
        out = trained(npz, "--algorithm", algorithm, "--tol", "0.01", *more)
        report, learner = record(out), load_model(out).learner
        assert report["complete"]
        assert 0 <= report["relative_gap"] <= 0.01001
        assert (report["gap_over"], report["tol"]) == ("all samples", 0.01)
        stats = learner.model.published.heads["working_set"].stats
        assert stats["objective"] == pytest.approx(report["objective"], rel=1e-4)
        assert stats["gap"] == pytest.approx(report["gap"], abs=1e-4 * -report["objective"])
        assert stats["size"] == stats["support_vectors"] == report["support_vectors"]
        assert learner.sequence == 400

    def test_it_goes_on_learning(self, npz: Path):
        learner = load_model(trained(npz, "--algorithm", "mfw")).learner
        held_back = three_classes(300, seed=3)
        learner.absorb("working_set", held_back)
        assert learner.sequence == 700
        said = learner.heads["working_set"].view().predict(held_back.X).prediction
        assert np.mean([a == b for a, b in zip(said, held_back.y, strict=True)]) > 0.85

    def test_a_bound_below_the_support_vectors_is_raised(self, npz: Path):
        out = trained(npz, "--algorithm", "mfw", "--max-size", 5)
        own = load_model(out).model.spec.working_set
        assert own is not None
        assert own.max_size == record(out)["support_vectors"] > 5

    def test_sampling_and_an_end_before_the_gap(self, npz: Path):
        more = ["--sampling", 30, "--max-iter", 20, "--tol", "1e-9"]
        result = run(npz, "--model", npz.with_suffix(".m"), "--algorithm", "swap", *more)
        assert result.exit_code == 0
        assert "over all samples, above --tol" in result.stdout
        assert not record(npz.with_suffix(".m"))["complete"]

    def test_a_cache_too_small(self, tmp_path: Path):
        np.savez(tmp_path / "a.npz", X=np.zeros((150_000, 1)), y=np.arange(150_000) % 2)
        result = run(tmp_path / "a.npz", "--model", tmp_path / "m", "--algorithm", "fw",
                     "--cache-mb", 1)  # fmt: skip
        assert result.exit_code == 1
        assert "cache_bytes is 1048576" in error_line(result)

    def test_does_not_need_scikit_learn(self, npz: Path):
        script = (
            "import sys; sys.modules['sklearn'] = None; "
            "from wolfstream.service.cli.main import main; "
            f"main(['train', {str(npz)!r}, '--model', {str(npz) + '.m'!r}, '--algorithm', 'mfw'])"
        )
        subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)


class TestFiles:
    def test_svmlight_rows_are_sparse_and_learn_the_same(self, npz: Path, svm: Path):
        sparse = read_state(trained(svm, "--algorithm", "mfw"))
        assert sparse.plain["trained"]["rows"] == "sparse"
        assert sparse.plain["names"] == ["1", "2", "3"]
        assert load_model(svm.with_suffix(".model")).sparse
        dense = trained(svm, "--algorithm", "mfw", "--dense", "--force")
        assert record(dense)["rows"] == "dense"
        reference = record(trained(npz, "--algorithm", "mfw", "--force"))["objective"]
        for state in (sparse, read_state(dense)):
            assert state.plain["trained"]["objective"] == pytest.approx(reference, abs=1e-3)

    def test_sparse_rows_have_no_bound_on_their_width(self, tmp_path: Path):
        lines = [f"{i % 2} {1 + i % 2}:1 {2_000_000_000 - i}:0.5\n" for i in range(50)]
        (tmp_path / "wide.svm").write_text("".join(lines[:-1]) + "0 1:1 70000:1\n")
        result = run(tmp_path / "wide.svm", "--model", tmp_path / "m", "--dense")
        assert result.exit_code == 1
        assert "line 1: index 2000000000: rows are made dense" in error_line(result)

    def test_csr_arrays_stay_sparse(self, tmp_path: Path):
        csr = {
            "data": np.ones(40),
            "indices": np.tile([0, 19_999, 1, 5], 10),
            "indptr": np.arange(0, 41, 2),
            "shape": np.array([20, 20_000]),
        }
        np.savez(tmp_path / "a.npz", y=np.arange(20) % 2, **csr)
        out = trained(tmp_path / "a.npz")
        assert record(out)["features"] == 20_000
        stored = load_model(out).learner.heads["working_set"].learner.current.store.rows.exact
        assert isinstance(stored, SparseRows)

    def test_accuracy_on_another_file(self, npz: Path, svm: Path):
        result = run(npz, "--model", npz.with_suffix(".m"), "--test", svm)
        assert result.exit_code == 0
        assert f"on 400 samples of {svm}" in result.stdout

    def test_labels_keep_their_type(self, tmp_path: Path):
        samples = two_classes(60)
        lines = [",".join(map(repr, row)) for row in samples.X.tolist()]
        rows = [f"{line},{y}" for line, y in zip(lines, samples.y, strict=True)]
        (tmp_path / "a.csv").write_text("\n".join(["a,b,c,d,y", *rows]))
        out = trained(tmp_path / "a.csv")
        assert set(load_model(out).learner.heads["working_set"].classes) == {"yes", "no"}

    def test_weights_count_and_are_no_feature(self, tmp_path: Path):
        lines = [f"{k % 7},{k % 3},{'u' if k % 2 else 'v'},{1 + k % 2}" for k in range(200)]
        (tmp_path / "a.csv").write_text("\n".join(["a,b,y,w", *lines]))
        options = ("--weight", "w", "--algorithm", "adaptive")
        weighted = load_model(trained(tmp_path / "a.csv", *options, "--force"))
        plain = load_model(trained(tmp_path / "a.csv", "--algorithm", "adaptive", "--force"))
        assert weighted.model.published.rows.dimension == 2
        assert plain.model.published.rows.dimension == 3
        rows = [[float(k % 7), float(k % 3)] for k in range(21)]
        said = [
            one.model.published.predict("adaptive", one.head_rows(X, names)).decision
            for one, X, names in (
                (weighted, np.array(rows), ("a", "b")),
                (plain, np.array([[*row, 1.0] for row in rows]), ("a", "b", "w")),
            )
        ]
        assert said[0] != said[1]

    def test_the_default_is_the_default_model_of_a_server(self, tmp_path: Path):
        (tmp_path / "a.csv").write_text("a,b,y\n1,hall,u\n2,,v\n3,bath,u\n")
        arguments = ["train", str(tmp_path / "a.csv"), "--model", str(tmp_path / "m")]
        assert CliRunner().invoke(main, arguments).exit_code == 0
        assert record(tmp_path / "m")["algorithm"] == "adaptive"
        result = CliRunner().invoke(main, [*arguments, "--C", "2"])
        assert result.exit_code == 2
        assert "not used by --algorithm adaptive, the default: choose another" in result.output

    @pytest.mark.parametrize(("weight", "detail"), [("0", "must be from"), ("-1", "must be from")])
    def test_weights_out_of_range(self, tmp_path: Path, weight: str, detail: str):
        (tmp_path / "a.csv").write_text(f"a,w,y\n1,1,u\n2,{weight},v\n")
        arguments = (tmp_path / "a.csv", "--model", tmp_path / "m", "--weight", "w")
        assert f"the weight of sample 2 {detail}" in error_line(run(*arguments))
        result = run(*arguments, "--algorithm", "mfw")
        assert "--weight is not used by --algorithm mfw: choose one that" in error_line(result)


class TestRefusals:
    @pytest.mark.parametrize(
        ("content", "detail"),
        [
            ("", "is empty"),
            ("a,y\n1,0\nx,1\n", "line 3: column 1 (a): 'x' is not a finite number"),
            ("a,y\n1,0\n2,0\n", "there is only one class, 0"),
            ("a,y\n1,0.5\n2,1\n", "a target to be regressed"),
            ("a,y\n1,0\n2,\n", "line 3: the label is missing"),
            ("a,y\n" + "".join(f"1,{i}\n" for i in range(101)), "101 different labels"),
            ("a,y\n1,a\n1e60,b\n", "row 2 of the samples: its norm exceeds"),
            (f"a,y\n1,a\n1,{'b' * 300}\n", "longer than 256 characters"),
            ("a,y\n1e-9,a\n2e-9,b\n", "the spec is not valid; /kernel/gamma"),
        ],
    )
    def test_files(self, tmp_path: Path, content: str, detail: str):
        (tmp_path / "a.csv").write_text(content)
        result = run(tmp_path / "a.csv", "--model", tmp_path / "m")
        assert result.exit_code == 1
        assert detail in error_line(result)
        assert not (tmp_path / "m").exists()

    def test_text_in_another_charset_is_named(self, tmp_path: Path):
        lines = "größe;Maß\n" + "".join(f"{k};{'groß' if k % 2 else 'klein'}\n" for k in range(20))
        (tmp_path / "a.csv").write_bytes(lines.encode("cp1252"))
        arguments = (tmp_path / "a.csv", "--model", tmp_path / "m", "--label", "Maß")
        assert "--charset windows-1252" in error_line(run(*arguments))
        assert run(*arguments, "--charset", "windows-1252").exit_code == 0

    def test_a_file_of_another_kind(self, tmp_path: Path, npz: Path):
        out = trained(npz)
        assert "neither text in UTF-8 nor" in error_line(run(out, "--model", tmp_path / "m"))

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--algorithm", "sgd"],
            ["--gamma", "0"],
            ["--gamma", "scale"],
            ["--gamma", "inf"],
            ["--C", "-1"],
            ["--tol", "0", "--algorithm", "fw"],
            ["--class-weight", "1=-2"],
            ["--class-weight", "balanced", "--class-weight", "1=2"],
            ["--class-weight", "5"],
            ["--epochs", "2", "--algorithm", "fw"],
            ["--shuffle", "--algorithm", "partan"],
            ["--tol", "0.1"],
            ["--sampling", "59"],
            ["--gamma", "1", "--kernel", "linear"],
            ["--degree", "2"],
            ["--max-size", f"{LARGEST_SET + 1}"],
        ],
    )
    def test_wrong_usage(self, npz: Path, arguments: list[str]):
        result = run(npz, "--model", npz.with_suffix(".m"), *arguments)
        assert result.exit_code == 2
        error_line(result)
        assert not npz.with_suffix(".m").exists()

    def test_a_weight_for_a_label_that_does_not_occur(self, npz: Path):
        result = run(npz, "--model", npz.with_suffix(".m"), "--class-weight", "30=2")
        assert result.exit_code == 1
        assert "no sample has the label '30'; there are: 0, 10, 20" in error_line(result)

    def test_out_is_not_overwritten_unless_forced(self, npz: Path):
        out = npz.with_suffix(".m")
        out.write_text("precious")
        assert "--force overwrites it" in error_line(run(npz, "--model", out))
        assert out.read_text() == "precious"
        assert run(npz, "--model", out, "--force").exit_code == 0
        assert load_model(out).learner.sequence == 400

    def test_out_in_a_directory_that_does_not_exist(self, npz: Path):
        result = run(npz, "--model", npz.parent / "absent" / "m")
        assert result.exit_code == 1
        assert "there is no directory" in error_line(result)

    def test_a_full_disk_leaves_what_was_there(self, npz: Path, monkeypatch: pytest.MonkeyPatch):
        out = npz.with_suffix(".m")
        out.write_text("precious")

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        result = run(npz, "--model", out, "--force")
        assert result.exit_code == 1
        assert error_line(result) == f"Error: {out} cannot be written: No space left on device"
        assert out.read_text() == "precious"
        assert sorted(p.name for p in npz.parent.iterdir()) == ["a.m", "a.npz"]


def test_a_terminal_shows_why_the_first_run_takes_seconds_to_begin(npz: Path):
    out = npz.with_suffix(".model")
    terminal = {"FORCE_COLOR": "1", "COLUMNS": "120"}
    result = CliRunner(env=terminal).invoke(main, ["train", str(npz), "--model", str(out)])
    assert result.exit_code == 0
    assert "the first run compiles for some seconds" in result.stderr


@pytest.mark.parametrize("algorithm", ["fw", "msfw"])
def test_ctrl_c_keeps_what_has_been_learned(commands: Path, tmp_path: Path, algorithm: str):
    samples: Samples = three_classes(3000)
    np.savez(tmp_path / "a.npz", X=samples.X, y=np.array(samples.y))
    out = tmp_path / "a.model"
    endless = ["--epochs", "1000"] if algorithm == "msfw" else ["--tol", "1e-14"]
    arguments = [str(tmp_path / "a.npz"), "--model", str(out), "--algorithm", algorithm, *endless]
    command = [commands / "wolfstream", "train", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith(f"training {algorithm}: ")
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert rest.splitlines()[-1] == (f"Error: interrupted; {out} has what was learned until then")
    assert record(out)["interrupted"]
    assert load_model(out).learner.heads["working_set"].classes == [0, 10, 20]
