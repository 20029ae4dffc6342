"""Settings of a server: defaults, then `WOLFSTREAM_*` variables, then the command line."""

import contextlib
import functools
import os
import re
import resource
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

# Where the groups of processes and their limits are: cgroups of version 2 and 1.
_GROUPS = Path("/proc/self/cgroup")
_LIMITS = (
    ("", Path("/sys/fs/cgroup"), "memory.max"),
    ("memory", Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
)
# Compiled code that is loaded later, the stacks and heaps of threads; of address space they take
# more than of memory.
_LATER_BYTES, _LATER_ADDRESSES = 48 << 20, 192 << 20
_PREFIX = "WOLFSTREAM_"
# Whatever the limit, a share is no smaller.
_LEAST_BYTES = 1 << 20


@functools.cache
def usable_bytes() -> int:
    """Return the memory of the container, or else of the machine, as far as limits allow it."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_group_limits(), *_address_limits()])


def _group_limits() -> Iterator[int]:
    """Yield the limits of the process's cgroups, and of those around them."""
    with contextlib.suppress(OSError):
        for line in _GROUPS.read_text().splitlines():
            _, controllers, place = line.split(":", 2)
            for name, root, file in _LIMITS:
                if name in controllers.split(","):
                    inner = Path(place.lstrip("/"))
                    for group in (inner, *inner.parents):
                        with contextlib.suppress(OSError, ValueError):  # "max" without a limit
                            yield int((root / group / file).read_text())


def _address_limits() -> Iterator[int]:
    """Yield the limit of the process's address space, if it has one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        yield soft


def taken_bytes() -> tuple[int, int]:
    """Return what the process takes: memory, and address space.

    Files that are mapped, such as libraries, count as address space alone: the system can drop
    them from memory.
    """
    try:
        addresses, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
    except OSError:  # not on Linux
        return 0, 0
    page = os.sysconf("SC_PAGE_SIZE")
    return (resident - shared) * page, addresses * page


@functools.cache
def _taken_at_first() -> tuple[int, int]:
    return taken_bytes()


class Shares(NamedTuple):
    """How the memory of a server is divided, in bytes.

    Attributes:
        requests: of what arrives, is decoded and is answered.
        waiting: of samples that wait to be learned.
        models: of all models, and of copies while one is saved or recovered.
    """

    requests: int
    waiting: int
    models: int


def _split(given: Any) -> Any:
    """Return the items of a list that a variable holds, separated by commas."""
    if not isinstance(given, str):
        return given
    return tuple(part.strip() for part in given.split(",") if part.strip())


def _split_names(given: Any) -> Any:
    """Return the same, of names of hosts, whose case does not matter."""
    return _split(given.lower()) if isinstance(given, str) else given


_Host = Annotated[str, Field(pattern=r"^[a-z0-9._-]+$")]
_Server = Annotated[str, Field(pattern=r"^(nats|tls)://[^\s/]+$")]
_Monitor = Annotated[str, Field(pattern=r"^https?://[^/?#\s]+$")]
_Origin = Annotated[str, Field(pattern=r"^[a-z][a-z0-9+.-]*://[^/?#\s]+$")]


# Variables of clients, which commands read.
_OF_CLIENTS = {"WOLFSTREAM_KEY", "WOLFSTREAM_URL"}
# Kubernetes sets these in each pod, for a Service whose name begins with wolfstream.
_OF_KUBERNETES = re.compile(
    r"WOLFSTREAM_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)"
    r"|WOLFSTREAM_\w+_PORT"
)


def unknown_variables(names: Iterable[str]) -> dict[str, str | None]:
    """Return those of these variables that look like settings and are none.

    Each with the nearest one that there is; None if none is like it.
    """
    known = [field.upper() for field in Settings.model_fields]
    allowed = {*(_PREFIX + field for field in known), *_OF_CLIENTS}
    unknown = dict[str, str | None]()
    for name in names:
        meant = name.upper()
        if not meant.startswith(_PREFIX) or meant in allowed or _OF_KUBERNETES.fullmatch(name):
            continue
        close = get_close_matches(meant.removeprefix(_PREFIX), known, 1)
        unknown[name] = _PREFIX + close[0] if close else None
    return unknown


class Settings(BaseSettings):
    """Everything an operator can set; each field is also a variable, as in `WOLFSTREAM_PORT`."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, extra="forbid")

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    insecure: bool = Field(False, description="Let other machines use the server without keys.")
    hosts: Annotated[tuple[_Host, ...], NoDecode, BeforeValidator(_split_names)] = Field(
        (),
        description="Names by which clients address the server, separated by commas. Requests for "
        "other names are refused, except IP addresses and localhost: without keys always, with "
        "keys if this is set.",
    )
    origins: Annotated[tuple[_Origin, ...], NoDecode, BeforeValidator(_split_names)] = Field(
        (),
        description="Sites whose pages may use the server, like https://example.com, separated by "
        "commas.",
    )
    heads: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = Field(
        (),
        description="Learners of other distributions that models may have, by the names of their "
        "entry points `wolfstream.heads`, separated by commas.",
    )
    pickle_heads: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = Field(
        (),
        description="The same, of learners that save pickles, such as river: whoever may upload a "
        "model can run code on the server.",
    )
    tls_cert: Path | None = Field(
        None, description="Certificate chain, PEM; with it the server speaks https and wss only."
    )
    tls_key: Path | None = Field(None, description="Private key of the certificate, PEM.")
    log_format: Literal["auto", "text", "json"] = Field(
        "auto",
        description="Format of the log on standard error: lines of text, or one JSON object a "
        "line; auto: text on a terminal, json elsewhere.",
    )
    log_requests: Literal["none", "errors", "all"] = Field(
        "errors",
        description="Requests to log; errors: only those that are refused, fail or take more than "
        "a second, up to 100 lines a second.",
    )
    data: Path = Field(
        Path("wolfstream-data"), description="Directory of the journal and the snapshots."
    )
    fleet: Annotated[tuple[_Server, ...], NoDecode, BeforeValidator(_split)] = Field(
        (),
        description="NATS servers that store the fleet's models, like nats://a:4222, separated by "
        "commas; the data directory then holds no models.",
    )
    advertise: str = Field(
        "",
        pattern=r"^(https?://[^/?#\s]+)?$",
        description="Address at which the fleet's other replicas reach this one, like "
        "http://10.0.0.7:8000.",
    )
    nats_user: str = Field(
        "", description="User of the NATS servers, whose password is in nats_password_file."
    )
    nats_password_file: Path | None = Field(
        None,
        description="File with the password of nats_user; with a token, if there is no user. It is "
        "read again for each connection.",
    )
    nats_credentials: Path | None = Field(
        None, description="File of credentials (.creds), also read for each connection."
    )
    nats_nkey_seed: Path | None = Field(None, description="File with the seed of an nkey.")
    nats_ca: Path | None = Field(
        None,
        description="Certificates of the authorities that vouch for the NATS servers, PEM; without "
        "it, those of the system.",
    )
    nats_cert: Path | None = Field(
        None, description="Certificate chain, PEM, that is shown to NATS servers which ask for it."
    )
    nats_key: Path | None = Field(None, description="Private key of nats_cert, PEM.")
    fleet_ca: Path | None = Field(
        None,
        description="Certificates of the authorities that vouch for the fleet's other replicas, "
        "PEM; without it, those of the system.",
    )
    fleet_cert: Path | None = Field(
        None,
        description="Certificate chain, PEM, that this replica shows to the others, where they "
        "ask for one.",
    )
    fleet_key: Path | None = Field(None, description="Private key of fleet_cert, PEM.")
    fleet_log_bytes: int = Field(
        4 << 30,
        ge=1 << 23,
        description="Bytes that the logs of all models of a fleet may take together; of the "
        "replicas' settings, the largest counts.",
    )
    fleet_state_bytes: int = Field(
        4 << 30,
        ge=1 << 23,
        description="The same for the snapshots of all models.",
    )
    fleet_monitors: Annotated[tuple[_Monitor, ...], NoDecode, BeforeValidator(_split)] = Field(
        (),
        description="Monitoring ports of the NATS servers, like http://a:8222, separated by "
        "commas; a replica that starts checks there that they flush each message.",
    )
    max_lag_seconds: float = Field(
        10.0,
        ge=0,
        description="How old a prediction of a replica of a fleet may be: how long it goes on "
        "while most NATS servers, or the model's leader, cannot be reached.",
    )
    webhook: str | None = Field(
        None,
        description="URL to which alerts are posted: heads whose predictions became worse.",
    )
    webhook_secret: str = Field(
        "", description="Text of at least 16 characters that signs what is posted to the webhook."
    )
    webhook_private: bool = Field(
        False, description="Let the webhook's address be private, or this machine's own."
    )
    workers: int = Field(
        0,
        ge=0,
        description="Worker processes, which answer requests while another process learns, on "
        "Linux; 0: one process does both.",
    )
    threads: int = Field(1, ge=1, description="Threads of a matrix product.")
    queue_samples: int = Field(65_536, ge=1, description="Samples that may wait to be learned.")
    queue_bytes: int = Field(
        256 << 20,
        ge=1,
        description="Bytes of memory that samples may take while they wait, at most an eighth of "
        "what the server itself leaves.",
    )
    group_samples: int = Field(4_096, ge=1, description="Samples that may share one commit.")
    body_bytes: int = Field(
        64 << 20, ge=1024, description="Largest request body or frame, packed and unpacked."
    )
    state_bytes: int = Field(
        256 << 20, ge=1024, description="Largest model file that may be uploaded."
    )
    request_rows: int = Field(100_000, ge=1, description="Rows in one request.")
    row_numbers: int = Field(100_000, ge=1, description="Numbers in one row.")
    request_values: int = Field(
        1 << 22,
        ge=1,
        description="Numbers, texts and names in one request, except those of raw arrays.",
    )
    models: int = Field(1_000, ge=1, description="Models that the server may have.")
    connections: int = Field(
        800,
        ge=1,
        description="Open connections, at least 200 fewer than the system's bound on open files.",
    )
    patience_seconds: float = Field(
        30.0,
        gt=0,
        description="Longest wait for a request to arrive, or for a response to be read.",
    )
    upload_bytes_per_second: int = Field(
        128 << 10,
        ge=1,
        description="Slowest rate at which a request may arrive after patience_seconds.",
    )
    memory_bytes: int = Field(
        0,
        ge=0,
        description="Bytes of memory that the server may take; samples for which the models would "
        "need more are refused. 0: the limit of the container, or the memory of the machine.",
    )
    request_bytes: int = Field(
        0,
        ge=0,
        description="Bytes that all requests together may take while they arrive and are decoded, "
        "and their answers until they are sent; 0: a quarter of what the server itself leaves of "
        "the memory.",
    )
    window: int = Field(
        256, ge=1, description="Messages on a websocket stream that may wait for a response."
    )
    classes: int = Field(100, ge=2, description="Different labels that one model may meet.")
    features: int = Field(
        100_000, ge=1, description="Different feature names that one model may meet."
    )
    model_bytes: int = Field(
        0,
        ge=0,
        description="Bytes that the feature map of one model may take while it learns; 0: half of "
        "the memory that the server may use.",
    )
    idempotency_keys: int = Field(
        100_000, ge=1, description="Idempotency keys kept for each model, the newest ones."
    )
    idempotency_bytes: int = Field(
        64 << 20,
        ge=0,
        description="Bytes of the responses kept for the keys of each model; older ones are "
        "reduced to sequence and learned.",
    )
    refits: int = Field(16, ge=1, description="Refits that may wait for their turn.")
    snapshot_samples: int = Field(
        100_000, ge=1, description="Samples learned between two snapshots of a model."
    )
    snapshot_seconds: float = Field(
        10.0,
        gt=0,
        description="Seconds of learning between two snapshots of a model, if that is sooner: "
        "about as long as a start, or a new leader of a fleet, replays.",
    )
    snapshots: int = Field(
        4,
        ge=2,
        description="Snapshots kept of a model for rollback; the journal covers the newest two.",
    )
    drain_seconds: float = Field(
        0.0,
        ge=0,
        le=600,
        description="How long a server that was told to stop goes on answering while /readyz says "
        "503, so that a balancer sends nothing more: longer than it takes to notice.",
    )
    wait_seconds: float = Field(
        5.0,
        gt=0,
        description="Longest wait for a min_sequence, and for Prefer: wait.",
    )

    @property
    def most_bytes(self) -> int:
        """The memory that the server may take."""
        return self.memory_bytes or usable_bytes()

    def left_bytes(self) -> int:
        """Return how many bytes this process may still take, before its code is loaded."""
        memory, addresses = taken_bytes()
        of_addresses = (limit - addresses - _LATER_ADDRESSES for limit in _address_limits())
        return min([self.most_bytes - memory - _LATER_BYTES, *of_addresses])

    @functools.cached_property
    def shares(self) -> Shares:
        """How the memory is divided, given what the process takes before it has any model."""
        memory, addresses = _taken_at_first()
        processes = 1 + self.workers
        left = self.most_bytes - processes * (memory + _LATER_BYTES)
        for limit in _address_limits():
            left = min(left, limit - addresses - _LATER_ADDRESSES)
        left = max(left, 8 * _LEAST_BYTES)
        requests, waiting = self.request_bytes or left // 4, min(self.queue_bytes, left // 8)
        # Each worker has the views of all models, which are hardly larger than these.
        models = (left - min(requests, left // 4) - waiting) // processes
        return Shares(requests, waiting, models)
