"""The image's files: what they refer to exists, they agree with each other, their scripts work."""

import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import tomllib
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from wolfstream.service.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
DOCKER = ROOT / "docker"


class Instruction(NamedTuple):
    """One instruction of the Dockerfile: flags such as --from=builder, and what follows them."""

    name: str
    flags: dict[str, str]
    arguments: str


def read_dockerfile() -> list[Instruction]:
    text = (ROOT / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    instructions = []
    for line in "\n".join(lines).replace("\\\n", "").splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            flags = {}
            while flag := re.match(r"--([a-z-]+)=(\S+)\s+", rest := rest.lstrip()):
                flags[flag[1]] = flag[2]
                rest = rest[flag.end() :]
            instructions.append(Instruction(name, flags, rest.strip()))
    return instructions


INSTRUCTIONS = read_dockerfile()
STARTS = [i for i, instruction in enumerate(INSTRUCTIONS) if instruction.name == "FROM"]
FINAL = INSTRUCTIONS[STARTS[-1] :]


def only(name: str) -> Instruction:
    """The one instruction of this name in the final stage."""
    (found,) = [instruction for instruction in FINAL if instruction.name == name]
    return found


def variables(instructions: list[Instruction]) -> dict[str, str]:
    pairs = [
        part.partition("=")
        for instruction in instructions
        if instruction.name == "ENV"
        for part in shlex.split(instruction.arguments)
    ]
    return {name: value for name, _, value in pairs}


def copied_from_the_context() -> list[str]:
    return [
        source
        for instruction in INSTRUCTIONS
        if instruction.name == "COPY" and "from" not in instruction.flags
        for source in instruction.arguments.split()[:-1]
    ]


class TestDockerfile:
    @pytest.mark.parametrize("source", copied_from_the_context())
    def test_what_is_copied_is_in_git_and_in_the_build_context(self, source: str):
        if not (ROOT / ".git").exists() or shutil.which("git") is None:
            pytest.skip("not a clone")
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", source]
        assert subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout
        rules = (ROOT / ".dockerignore").read_text().splitlines()
        assert rules.index("*") < rules.index(f"!{source}")

    def test_nothing_else_is_in_the_build_context(self):
        rules = (ROOT / ".dockerignore").read_text().splitlines()
        allowed = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
        assert allowed == set(copied_from_the_context())

    def test_stages_copy_from_earlier_ones(self):
        known: list[str] = []
        for instruction in INSTRUCTIONS:
            if instruction.name == "FROM":
                image, _, name = instruction.arguments.partition(" AS ")
                assert image in known or image in ("$BASE_IMAGE", "$NODE_IMAGE")
                known.append(name)
            if "from" in instruction.flags:
                assert instruction.flags["from"] in known

    def test_does_not_run_as_root(self):
        user, _, group = only("USER").arguments.partition(":")
        assert int(user) > 0
        assert int(group) > 0

    def test_signals_reach_the_server(self):
        program, *arguments = json.loads(only("ENTRYPOINT").arguments)
        assert (program, arguments) == ("/bin/sh", ["/opt/wolfstream/entrypoint.sh"])
        assert json.loads(only("CMD").arguments) == ["serve"]
        assert only("STOPSIGNAL").arguments == "SIGTERM"

    def test_the_data_directory_is_a_volume_of_the_servers_user(self):
        (volume,) = json.loads(only("VOLUME").arguments)
        assert variables(FINAL)["WOLFSTREAM_DATA"] == volume
        user, _, group = only("USER").arguments.partition(":")
        assert re.search(rf"install -d -o {user} -g {group} .* {volume}$", only("RUN").arguments)

    def test_listens_on_all_addresses_of_the_exposed_port(self):
        given = variables(FINAL)
        assert given["WOLFSTREAM_HOST"] == "0.0.0.0"
        assert given["WOLFSTREAM_PORT"] == only("EXPOSE").arguments
        fields = {f"WOLFSTREAM_{name.upper()}" for name in Settings.model_fields}
        assert {name for name in given if name.startswith("WOLFSTREAM_")} <= fields

    def test_does_not_answer_everybody_unless_it_is_told_to(self):
        given = [i.arguments for i in INSTRUCTIONS if i.name == "ENV"]
        assert not [line for line in given if "INSECURE" in line]

    def test_scripts_are_copied_where_they_are_called(self):
        name, _, form = only("HEALTHCHECK").arguments.partition(" ")
        assert name == "CMD"
        called = {json.loads(form)[-1], json.loads(only("ENTRYPOINT").arguments)[-1]}
        copy = [i for i in FINAL if i.name == "COPY" and "from" not in i.flags]
        *sources, folder = copy[0].arguments.split()
        assert called == {f"{folder}{Path(source).name}" for source in sources}

    def test_every_stage_compiles_for_the_same_processor(self):
        base = INSTRUCTIONS[STARTS[0] : STARTS[1]]
        assert {"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"} <= set(variables(base))
        assert INSTRUCTIONS[STARTS[-1]].arguments == "base"
        later = variables(INSTRUCTIONS[STARTS[1] :])
        assert not [name for name in later if name.startswith("NUMBA_CPU")]

    def test_the_version_is_that_of_the_project(self):
        (version,) = [i.arguments for i in FINAL if i.name == "ARG" and "VERSION" in i.arguments]
        assert version == f"VERSION={project()['project']['version']}"

    def test_what_is_installed_is_locked(self):
        commands = [i.arguments for i in INSTRUCTIONS if i.name == "RUN" and " -r " in i.arguments]
        installs = [part for line in commands for part in line.split("&&") if " -r " in part]
        assert len(installs) == 2
        assert all("--require-hashes" in install for install in installs)

    def test_the_base_image_is_an_argument_which_a_digest_may_be(self):
        assert INSTRUCTIONS[0].name == "ARG"
        name, _, image = INSTRUCTIONS[0].arguments.partition("=")
        assert name == "BASE_IMAGE"
        assert re.fullmatch(r"python:3\.\d+-slim", image)


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


class TestCompose:
    @pytest.fixture
    def compose(self) -> dict[str, Any]:
        yaml = pytest.importorskip("yaml")
        parsed: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
        return parsed

    @pytest.fixture
    def server(self, compose: dict[str, Any]) -> dict[str, Any]:
        (server,) = compose["services"].values()
        assert isinstance(server, dict)
        return server

    def test_the_data_is_in_a_named_volume(self, compose: dict[str, Any], server: dict[str, Any]):
        (mount,) = server["volumes"]
        volume, _, path = mount.partition(":")
        assert volume in compose["volumes"]
        assert [path] == json.loads(only("VOLUME").arguments)

    def test_the_port_is_published_on_loopback(self, server: dict[str, Any]):
        (port,) = server["ports"]
        address, _, inside = port.rpartition(":")
        assert address.startswith("127.0.0.1:")
        assert inside == only("EXPOSE").arguments

    def test_the_build_context_is_the_repository(self, server: dict[str, Any]):
        assert (DOCKER / server["build"]["context"]).resolve() == ROOT

    def test_the_health_check_is_that_of_the_image(self, server: dict[str, Any]):
        health, image = server["healthcheck"], only("HEALTHCHECK")
        assert health["test"] == ["CMD", *json.loads(image.arguments.removeprefix("CMD "))]
        times = {name.replace("_", "-"): str(health[name]) for name in health if name != "test"}
        assert times == image.flags

    def test_variables_are_settings(self, server: dict[str, Any]):
        for name, value in server["environment"].items():
            field = name.removeprefix("WOLFSTREAM_").lower()
            assert field in Settings.model_fields
            assert field not in ("host", "port", "data")  # fixed by the image
            Settings(**{field: value})

    def test_runs_with_as_little_as_it_needs(self, server: dict[str, Any]):
        assert server["read_only"] is True
        assert server["cap_drop"] == ["ALL"]
        assert server["security_opt"] == ["no-new-privileges:true"]
        assert not {"privileged", "cap_add", "user"} & set(server)


class TestEntrypoint:
    @pytest.fixture
    def image(self, tmp_path: Path) -> Iterator[Path]:
        """The image's directory with a server that only says how it was called."""
        image = tmp_path / "image"
        compiled = image / "cache" / "wolfstream" / f"compiled-{uuid.uuid4().hex}"
        (compiled / "solver").mkdir(parents=True)
        (compiled / "solver" / "walk.nbi").write_text("machine code")
        server = image / "venv" / "bin" / "wolfstream"
        server.parent.mkdir(parents=True)
        server.write_text('#!/bin/sh\necho "$$;${XDG_CACHE_HOME:-none};$*"\nexit 7\n')
        server.chmod(0o755)
        shutil.copy(DOCKER / "entrypoint.sh", image)
        yield image
        shared = Path("/dev/shm/wolfstream")
        shutil.rmtree(shared / compiled.name, ignore_errors=True)
        with contextlib.suppress(OSError):  # missing, or somebody else's too
            shared.rmdir()

    def run(self, image: Path, *arguments: str, cache: Path) -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            ["/bin/sh", str(image / "entrypoint.sh"), *arguments],
            env=os.environ | {"XDG_CACHE_HOME": str(cache)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said, _ = process.communicate(timeout=30)
        return process, said.strip()

    def test_the_shell_gives_its_place_to_the_server(self, image: Path, tmp_path: Path):
        process, said = self.run(image, "serve", "--threads", "2", cache=tmp_path / "cache")
        assert said == f"{process.pid};{tmp_path / 'cache'};serve --threads 2"
        assert process.returncode == 7

    def test_compiled_code_is_where_the_server_looks_for_it(self, image: Path, tmp_path: Path):
        for _ in range(2):  # a restart finds the directory already there
            self.run(image, "serve", cache=tmp_path / "cache")
        found = list((tmp_path / "cache").rglob("*.nbi"))
        brought = list((image / "cache").rglob("*.nbi"))
        assert [file.relative_to(tmp_path / "cache") for file in found] == [
            file.relative_to(image / "cache") for file in brought
        ]

    @pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no shared memory directory")
    def test_takes_another_directory_where_the_first_cannot_be_written(
        self, image: Path, tmp_path: Path
    ):
        (tmp_path / "file").touch()
        _, said = self.run(image, "serve", cache=tmp_path / "file")
        assert said.split(";")[1:] == ["/dev/shm", "serve"]

    def test_says_that_it_found_no_compiled_code(self, image: Path, tmp_path: Path):
        shutil.rmtree(image / "cache")
        _, said = self.run(image, "serve", cache=tmp_path / "cache")
        told, called = said.splitlines()
        assert f"no compiled code could be copied from {image}/cache" in told
        assert f"user {os.getuid()} cannot read it" in told
        assert called.endswith(";serve")

    def test_data_directory_takes_what_no_other_does(self, image: Path, tmp_path: Path):
        script = (DOCKER / "entrypoint.sh").read_text().replace("/dev/shm", f"{tmp_path}/file")
        (image / "entrypoint.sh").write_text(script)
        (tmp_path / "file").touch()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WOLFSTREAM_DATA", str(tmp_path / "data"))
            _, said = self.run(image, "serve", cache=tmp_path / "file")
        assert said.split(";")[1:] == [f"{tmp_path}/data/cache", "serve"]
        assert list((tmp_path / "data" / "cache").rglob("*.nbi"))


class TestHealthcheck:
    @pytest.fixture
    def answers(self) -> Iterator[ThreadingHTTPServer]:
        """A server that answers /readyz with its `status`."""

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                assert isinstance(self.server, ThreadingHTTPServer)
                status = self.server.status if self.path == "/readyz" else 404
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            yield server
            server.shutdown()
            thread.join()

    def check(self, port: int) -> int:
        # A proxy is for others: the container's own server is asked directly.
        proxies = {"http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
        given = {"WOLFSTREAM_HOST": "0.0.0.0", "WOLFSTREAM_PORT": str(port)}
        command = [sys.executable, "-I", str(DOCKER / "healthcheck.py")]
        return subprocess.run(command, env=os.environ | given | proxies, timeout=30).returncode

    @pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
    def test_says_whether_the_server_is_ready(
        self, answers: ThreadingHTTPServer, status: int, code: int
    ):
        answers.status = status  # type: ignore[attr-defined]
        assert self.check(answers.server_port) == code

    def test_nobody_answers(self):
        with socket.socket() as taken:  # bound, but nobody listens
            taken.bind(("127.0.0.1", 0))
            assert self.check(taken.getsockname()[1]) == 1
