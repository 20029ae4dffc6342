"""Containers of a compose file, made by podman alone: each key that the files here have.

A key that is not known is an error, so that nothing of a file is left out in silence.
"""

import re
import shlex
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.image.engine import ROOT, podman, remove

DOCKER = ROOT / "docker"
SOON = 300.0
_KEY = ("--name", "ops", "--scope", "admin")


class Compose:
    """The services of a compose file, on a network of their own, under a name of their own.

    headers: of requests with the key that `up` makes.
    """

    def __init__(self, file: str, name: str) -> None:
        self.name = name
        self.content = yaml.safe_load((DOCKER / file).read_text())
        self.services: dict[str, dict[str, Any]] = self.content["services"]
        self._configs = tempfile.TemporaryDirectory()

    def up(self, maker: str) -> None:
        """Begin with nothing: a new network, new volumes, a key, then all containers.

        maker: the service that makes the key, after those that it depends on have started.
        """
        self.down()
        podman("network", "create", self.name)
        needed = self.services[maker].get("depends_on", [])
        for service in needed:
            self.start(service)
        printed = self._run(maker, "--rm", command=("keys", "add", *_KEY))
        (key,) = re.findall(r"^wfs_\w+$", printed, re.MULTILINE)
        self.headers = {"Authorization": f"Bearer {key}"}
        for service in self.services.keys() - needed:
            self.start(service)

    def down(self) -> None:
        """Remove everything that belongs to it."""
        for service in self.services:
            remove("container", self._of(service))
        remove("network", self.name)
        for volume in self.content.get("volumes", {}):
            remove("volume", self._of(volume))

    def close(self) -> None:
        """Remove everything that belongs to it, and its files here."""
        self.down()
        self._configs.cleanup()

    def start(self, service: str) -> None:
        """Make the container of a service."""
        self._run(service, "--detach", "--name", self._of(service), "--network-alias", service)

    def _run(self, service: str, *options: str, command: Sequence[str] = ()) -> str:
        """Run a container with the settings of a service; return its output."""
        given = dict(self.services[service])
        given.pop("build", None), given.pop("depends_on", None)
        if "--rm" in options:  # such as by `docker compose run --rm`
            given.pop("restart", None)
        image, own = given.pop("image"), [str(part) for part in given.pop("command", [])]
        settings = [part for key, value in given.items() for part in self._options(key, value)]
        network = ("--network", self.name)
        return podman("run", *options, *network, *settings, image, *(command or own))

    def replace(self, service: str) -> None:
        """Stop the container of a service as compose does, and make another one."""
        grace = str(self.services[service].get("stop_grace_period", "10s"))
        podman("stop", "--time", str(_seconds(grace)), self._of(service))
        podman("rm", self._of(service))
        self.start(service)

    def address(self, service: str) -> str:
        """Return the address of a service's container on the network."""
        form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return podman("inspect", "--format", form, self._of(service))

    def log(self, service: str) -> str:
        """Return what a service's container has printed."""
        return podman("logs", self._of(service), check=False)

    def wait(self, service: str, port: int = 8000) -> str:
        """Wait until a service answers /readyz; return its URL."""
        url, deadline = f"http://{self.address(service)}:{port}", time.monotonic() + SOON
        while not is_ready(url):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{service} is not ready:\n{self.log(service)[-4000:]}")
            time.sleep(0.2)
        return url

    def _of(self, name: str) -> str:
        return f"{self.name}-{name}"

    def _options(self, key: str, value: Any) -> list[str]:
        """Return podman's options of a key of a service."""
        match key:
            case "environment":
                return [part for name in value for part in ("--env", f"{name}={value[name]}")]
            case "volumes":
                return [part for one in value for part in ("--volume", self._volume(one))]
            case "configs":
                return [part for one in value for part in ("--volume", self._config(one))]
            case "tmpfs" | "cap_drop" | "security_opt":
                option = f"--{key.replace('_', '-')}"
                return [part for one in value for part in (option, _of_podman(one))]
            case "restart" | "hostname" | "pids_limit":
                return [f"--{key.replace('_', '-')}", str(value)]
            case "mem_limit":
                return ["--memory", str(value)]
            case "init" | "read_only":
                return [f"--{key.replace('_', '-')}"] if value else []
            case "stop_grace_period":
                return ["--stop-timeout", str(_seconds(value))]
            case "healthcheck":
                times = {name: value[name] for name in ("interval", "timeout", "retries")}
                shell = "CMD " + shlex.join(value["test"][1:])
                return ["--health-cmd", shell] + [f"--health-{k}={v}" for k, v in times.items()]
            case "ports":
                return []  # the tests reach the containers by their own addresses
        raise ValueError(f"{key!r} is not known here: teach it to tests/image/compose.py")

    def _volume(self, given: str) -> str:
        source, _, rest = given.partition(":")
        if source.startswith("."):
            return f"{(DOCKER / source).resolve()}:{rest}"
        assert source in self.content["volumes"], f"the volume {source!r} is not declared"
        return f"{self._of(source)}:{rest}"

    def _config(self, name: str) -> str:
        """Return the mount of an inline config at /NAME."""
        path = Path(self._configs.name, name)
        # Written once: a container that has just started reads it now.
        if not path.exists():
            path.write_text(self.content["configs"][name]["content"].replace("$$", "$"))
            path.chmod(0o644)
        return f"{path}:/{name}:ro"


def is_ready(url: str) -> bool:
    """Return whether a server says that it is ready."""
    try:
        return httpx.get(f"{url}/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def _of_podman(value: str) -> str:
    return value.replace("no-new-privileges:true", "no-new-privileges")


def _seconds(text: str) -> int:
    return int(text[:-1]) * {"s": 1, "m": 60}[text[-1]]
