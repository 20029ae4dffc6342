"""One container: started as README says, with little memory, stopped, killed, and started again."""

import re
import shlex
import time
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from tests.image.compose import is_ready
from tests.image.engine import ROOT, podman, remove

pytestmark = [pytest.mark.image, pytest.mark.timeout(1800)]
NAME, VOLUME = "wolfstream-test", "wolfstream-test"
# With compiled code; compiling takes ten times as long.
READY_SECONDS = 30.0
SAFE = ("--read-only", "--tmpfs", "/tmp:size=128m,mode=1777", "--cap-drop", "ALL")
SAFE = (*SAFE, "--security-opt", "no-new-privileges")


def of_readme(pattern: str) -> list[str]:
    """Return the words of a command in README, with the volume of these tests."""
    text = (ROOT / "README.md").read_text()
    found = re.search(pattern, text.replace("\\\n", ""))
    assert found is not None
    given = shlex.split(found[1], comments=True)
    given[given.index("--volume") + 1] = f"{VOLUME}:/data"
    return given


class Container:
    """The server of README's command, with more options of `docker run`."""

    def __init__(self, *more: str, arguments: tuple[str, ...] = ()) -> None:
        remove("container", NAME)
        began = time.monotonic()
        podman("run", *self._given(), *more, "wolfstream", *arguments)
        self.ready_seconds = self.wait(began)

    def _given(self) -> list[str]:
        """Return the options in README, but for the names and the port."""
        given = of_readme(r"docker run (--detach.*?) wolfstream\n")
        given[given.index("--name") + 1] = NAME
        at = given.index("--publish")
        return [*given[:at], *given[at + 2 :]]  # tests reach it by its address

    def client(self, key: str) -> httpx.Client:
        authorization = {"Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.url, timeout=60, headers=authorization)

    @property
    def url(self) -> str:
        address = podman("inspect", "--format", "{{.NetworkSettings.IPAddress}}", NAME)
        return f"http://{address}:8000"

    def wait(self, began: float) -> float:
        """Wait until it is ready; return how long that took."""
        while not is_ready(self.url):
            state = podman("inspect", "--format", "{{.State.Status}}", NAME)
            assert state == "running", f"it has ended:\n{self.log()}"
            assert time.monotonic() < began + 300, self.log()
            time.sleep(0.1)
        return time.monotonic() - began

    def run(self, *command: str, check: bool = True) -> str:
        return podman("exec", NAME, *command, check=check)

    def log(self) -> str:
        return podman("logs", NAME, check=False)

    def kill(self) -> None:
        podman("kill", "--signal", "KILL", NAME)
        podman("wait", NAME)

    def start(self) -> None:
        began = time.monotonic()
        podman("start", NAME)
        self.wait(began)


@pytest.fixture
def key(image: str) -> Iterator[str]:
    """A key, made as README says. Nothing is left of an earlier run, nor of this one."""
    del image
    remove_all()
    printed = podman("run", *of_readme(r"docker run (--rm .* keys add .*)\n"))
    (made,) = re.findall(r"^wfs_\w+$", printed, re.MULTILINE)
    yield made
    remove_all()


def remove_all() -> None:
    remove("container", NAME)
    remove("volume", VOLUME)


def samples(seed: int, n: int = 500) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 20)).round(3)
    return {"x": X.tolist(), "y": (X[:, 0] > 0).astype(int).tolist()}


def test_container_of_readme(key: str):
    container = Container(*SAFE)
    assert container.ready_seconds < READY_SECONDS
    assert container.run("id", "-u") == "10001"
    status = container.run("cat", "/proc/self/status")
    assert set(re.findall(r"^Cap\w+:\t(\w+)$", status, re.MULTILINE)) == {"0" * 16}
    refused = container.run("touch", "/opt/wolfstream/x", check=False)
    assert "Read-only file system" in refused
    podman("healthcheck", "run", NAME)
    assert "200" in container.run("python", "-I", "/opt/wolfstream/healthcheck.py")
    assert httpx.get(f"{container.url}/v1/models").status_code == 401
    with container.client(key) as client:
        page = client.get("/", headers={"Accept": "text/html"}).text
        assert "<html" in page.lower()
        client.put("/v1/models/m", json={}).raise_for_status()
        for seed in range(3):
            client.post("/v1/models/m/samples", json=samples(seed)).raise_for_status()
    check_nothing_compiled(container)


def check_nothing_compiled(container: Container) -> None:
    """The cache has what the image has, and no process compiles."""
    log = container.log()
    assert "compiling for this machine" not in log
    assert "no compiled code" not in log
    listed = "cd {} && find . -name '*.nb[ic]' | sort"
    brought = container.run("sh", "-c", listed.format("/opt/wolfstream/cache/wolfstream"))
    found = container.run("sh", "-c", listed.format("/tmp/wolfstream"))
    assert brought
    assert found == brought


def test_same_predictions_after_kill_and_restart(key: str):
    container, rows = Container(*SAFE), {"x": samples(99)["x"]}

    def predicted() -> Any:
        with container.client(key) as client:
            response = client.post("/v1/models/m/predict", json=rows).json()
        return {name: response[name] for name in ("sequence", "prediction", "decision")}

    with container.client(key) as client:
        client.put("/v1/models/m", json={}).raise_for_status()
        for seed in range(4):
            client.post("/v1/models/m/samples", json=samples(seed)).raise_for_status()
    before = predicted()
    container.kill()
    container.start()
    assert predicted() == before
    began = time.monotonic()
    podman("stop", NAME)
    assert time.monotonic() < began + 20
    assert podman("inspect", "--format", "{{.State.ExitCode}}", NAME) == "0"
    container.start()
    assert predicted() == before


def test_memory_limit_is_not_passed(key: str):
    container = Container(*SAFE, "--memory", "400m")
    learned = list[str]()
    with container.client(key) as client:
        for i in range(60):
            response = client.put(f"/v1/models/m{i}", json={})
            if response.is_success:
                response = client.post(f"/v1/models/m{i}/samples", json=samples(i))
            if not response.is_success:
                break
            learned.append(f"m{i}")
    assert response.status_code == 507
    assert "limit of its container" in response.json()["detail"]
    assert len(learned) >= 8
    container.kill()
    container.start()
    with container.client(key) as client:
        models = client.get("/v1/models").json()["models"]
        assert {one["sequence"] for one in models if one["model"] in learned} == {500}
    # With less than its models take, it says so and serves the others.
    smaller = Container(*SAFE, "--memory", "200m")
    with smaller.client(key) as client:
        models = client.get("/v1/models").json()["models"]
    assert {one["status"] for one in models} == {"ok", "broken"}
    assert "model broken, no memory to recover it" in smaller.log()


@pytest.mark.usefixtures("key")
def test_killed_for_memory_is_said_at_the_next_start():
    container = Container(*SAFE, "--memory", "400m")
    # As if it took most of its memory.
    container.run("sh", "-c", "sleep 1; echo 400000000 419430400 > /data/running")
    container.kill()
    container.start()
    assert "probably killed for want of memory" in container.log()


@pytest.mark.usefixtures("key")
def test_starts_without_any_temporary_directory():
    mounts = ("--read-only", "--read-only-tmpfs=false", "--mount", "type=tmpfs,dst=/dev/shm,ro")
    container = Container(*mounts)
    assert container.ready_seconds < READY_SECONDS
    assert "compiling for this machine" not in container.log()


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("algorithm", ["mfw", "smo", "asset"])
def test_train_compiles_nothing(algorithm: str):
    found = samples(0)
    rows = zip(found["x"], found["y"], strict=True)
    lines = [",".join(map(str, [*row, label])) for row, label in rows]
    write = f"printf '%s\\n' {' '.join(lines[:100])} > /data/a.csv"
    mount = ("--volume", f"{VOLUME}:/data")
    podman("run", "--rm", *mount, "--entrypoint", "sh", "wolfstream", "-c", write)
    said = podman(
        *("run", "--rm", *mount, "--env", "NUMBA_DEBUG_CACHE=1", "wolfstream", "train"),
        *("/data/a.csv", "--model", "/data/a.model", "--force", "--algorithm", algorithm),
        *("--label", str(len(found["x"][0]) + 1)),
    )
    assert "data loaded from" in said
    assert "data saved to" not in said
