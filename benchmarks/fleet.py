"""A fleet: a replica on JetStream beside the same server on SQLite, views, and takeovers.

    python -m benchmarks fleet             samples a second
    python -m benchmarks fleet_views       how far views lag, and what a killed leader costs
    python -m benchmarks fleet_takeovers   until a sample is acknowledged again
    python -m benchmarks fleet_spread      which models move when a replica leaves

NATS flushes each message to disk before it is acknowledged, as SQLite does each commit. Servers and
clients share the machine: only the ratios of a run mean something. A takeover is timed from the
kill or the stop to the next sample that is acknowledged, to a client that asks the other replicas
all the time.
"""

import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import httpx
import numpy as np

from benchmarks.fleet_trio import Trio, samples, wait_for
from benchmarks.harness import Options, Study
from benchmarks.results import Figures, Results, crossed, listed, markdown, mean
from tests.service import balancer
from tests.service.fleet.conftest import Replica
from tests.service.nats import NatsServers
from tests.service.process import ServerProcess

T = TypeVar("T")

SPEC: dict[str, Any] = {"prepare": None, "adaptive": None, "asset": None}
SECONDS, ROUNDS = 5.0, range(3)
ALONE, BEHIND = "SQLite", "three replicas with standbys behind HAProxy"
_BATCH, _PER_SECOND, _MEMBERS, _TAUGHT = 50, 500, 10_000, 500
# Of each stream of the logs one or more.
_MODELS_WHILE_NATS_FAILS, _SPREAD = 16, 300


class Load(NamedTuple):
    """Connections that each send batches to a model with a set of a size."""

    connections: int
    batch: int
    set_size: int = 2000


class Servers(NamedTuple):
    """Addresses by name, and what is sent to them."""

    urls: Mapping[str, str]
    load: Load


@contextmanager
def servers(load: Load, _: Options) -> Iterator[Servers]:
    """A server on SQLite, and replicas on one server of NATS and on three."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        started = {ALONE: stack.enter_context(closing(ServerProcess(folder / "sqlite")))}
        for n, title in ((1, "one server of NATS"), (3, "three")):
            nats = stack.enter_context(closing(NatsServers(folder / f"nats{n}", n, sync=True)))
            nats.start()
            started[title] = stack.enter_context(closing(Replica(folder / f"replica{n}", nats)))
        yield Servers({title: server.start().url for title, server in started.items()}, load)


@contextmanager
def behind_a_balancer(load: Load, _: Options) -> Iterator[Servers]:
    """A server on SQLite, and a balancer before three replicas."""
    if balancer.MISSING:
        raise ModuleNotFoundError(balancer.MISSING)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        alone = stack.enter_context(closing(ServerProcess(folder / "alone")))
        trio = stack.enter_context(closing(Trio(folder / "trio"))).start()
        urls = [replica.url for replica in trio.replicas]
        between = stack.enter_context(closing(balancer.Balancer(folder, urls)))
        yield Servers({ALONE: alone.start().url, BEHIND: between.start().url}, load)


def rate(name: str, servers: Servers, options: Options) -> Figures:
    """Samples that are acknowledged in a second, each batch by one of so many connections."""
    url, load = servers.urls[name], servers.load
    seconds = SECONDS if options.rows is None else 1.0
    model, learned = f"m{time.monotonic_ns()}", [0] * load.connections
    X, y = samples(load.batch, 0)
    body = {"x": X.tolist(), "y": y.tolist()}
    _make(url, model, {"max_size": load.set_size})
    end = time.monotonic() + seconds

    def send(number: int) -> None:
        with httpx.Client(base_url=url, timeout=60) as client:
            while time.monotonic() < end:
                client.post(f"/v1/models/{model}/samples", json=body).raise_for_status()
                learned[number] += load.batch

    threads = [threading.Thread(target=send, args=(number,)) for number in range(load.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"rate": sum(learned) / seconds}


def rates_table(kept: Results) -> str:
    """Return SQLite's rate, and the others as multiples of it."""
    first, *others = kept.contenders
    rows = []
    for data in kept.data:
        alone = float(np.median([each["rate"] for each in kept.of(first, data)]))
        of = [[each["rate"] for each in kept.of(name, data)] for name in others]
        ratios = [f"{float(np.median(rates)) / alone:.2f}" if rates else "" for rates in of]
        rows.append([data, f"{alone:,.0f}", *ratios])
    return markdown(["connections x batch", f"{first}, samples/s", *others], rows)


@contextmanager
def trio_of_models(_: Options) -> Iterator[Trio]:
    """Three replicas without a model."""
    with tempfile.TemporaryDirectory() as name, closing(Trio(Path(name) / "trio")) as trio:
        yield trio.start()


# Views.


def lag(trio: Trio, options: Options) -> list[float]:
    """From an acknowledgement until another replica predicts with what was learned."""
    urls, name = [replica.url for replica in trio.replicas], "views"
    _make(urls[0], name, {"max_size": 2_000})
    leader, *others = _leader_first(urls, name)
    _learn(leader, name, _body(2_000))
    acknowledged = list[tuple[int, float]]()  # sequences, and when
    with _repeated(lambda client: _wait_at(others, acknowledged, client)) as waited:
        due = time.monotonic()
        end, n_requests = due + (SECONDS if options.rows is None else 1.0), 0
        with httpx.Client(timeout=60) as client:
            while time.monotonic() < end:
                sequence = _learn(leader, name, _body(_BATCH, n_requests), client)
                acknowledged.append((sequence, time.monotonic()))
                n_requests += 1
                due += _BATCH / _PER_SECOND
                time.sleep(max(0.0, due - time.monotonic()))
    return [seconds for seconds in waited if seconds is not None]


def _wait_at(
    urls: list[str], acknowledged: list[tuple[int, float]], client: httpx.Client
) -> float | None:
    """How long after the last acknowledgement another replica predicts with it; None without."""
    if not acknowledged:
        return None
    sequence, at = acknowledged[-1]
    acknowledged.clear()
    url = f"{urls[sequence // _BATCH % 2]}/v1/models/views/predict"
    client.post(url, params={"min_sequence": sequence}, json=_rows()).raise_for_status()
    return time.monotonic() - at


@contextmanager
def _repeated(work: Callable[[httpx.Client], T]) -> Iterator[list[T]]:
    """What a function gives that another thread calls again and again."""
    given, ended = list[T](), threading.Event()

    def run() -> None:
        with httpx.Client(timeout=60) as client:
            while not ended.is_set():
                given.append(work(client))
                time.sleep(0.01)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield given
    finally:
        ended.set()
        thread.join()


def first_view(trio: Trio, options: Options) -> list[float]:
    """From the first prediction at a replica until it predicts with a view of its own."""
    urls, name = [replica.url for replica in trio.replicas], "large"
    wanted = min(_MEMBERS, options.rows or _MEMBERS)
    _make(urls[0], name, {"max_size": wanted, "C": 1.0})
    leader, *others = _leader_first(urls, name)
    random, members = np.random.default_rng(5), 0
    while members < wanted * 0.99:
        X = random.normal(size=(500, 20))
        # Labels without any rule: every sample is needed.
        _learn(leader, name, {"x": X.tolist(), "y": random.integers(2, size=500).tolist()})
        heads = httpx.get(f"{leader}/v1/models/{name}", timeout=60).json()["heads"]
        members = heads["working_set"]["support_vectors"]
    taken = []
    for url in others:
        began = time.monotonic()
        while name not in httpx.get(f"{url}/v1/fleet", timeout=60).json()["views"]:
            answer = httpx.post(f"{url}/v1/models/{name}/predict", json=_rows(), timeout=60)
            answer.raise_for_status()
        taken.append(time.monotonic() - began)
    return taken


def without_leader(trio: Trio, _: Options) -> list[float]:
    """The time of predictions at the other replicas while the leader is killed. None is refused."""
    urls, name = [replica.url for replica in trio.replicas], "killed"
    _make(urls[0], name, {"max_size": 2_000})
    leader, *others = _leader_first(urls, name)
    _learn(leader, name, _body(2_000))
    for url in others:
        httpx.post(f"{url}/v1/models/{name}/predict", json=_rows(), timeout=60).raise_for_status()
    predict = [partial(_predict_at, f"{url}/v1/models/{name}/predict") for url in others]
    with _repeated(predict[0]) as first, _repeated(predict[1]) as second:
        time.sleep(2.0)
        begun = len(first), len(second)
        trio.replicas[urls.index(leader)].kill()
        _learn(others[0], name, _body(_BATCH))
        time.sleep(1.0)
    return first[begun[0] :] + second[begun[1] :]


def _predict_at(url: str, client: httpx.Client) -> float:
    """Return how long a prediction took."""
    began = time.monotonic()
    client.post(url, json=_rows()).raise_for_status()
    return time.monotonic() - began


def view(measured: Callable[[Trio, Options], list[float]], trio: Trio, options: Options) -> Figures:
    """Return percentiles in ms."""
    ms = 1e3 * np.array(measured(trio, options))
    return {"median": float(np.median(ms)), "longest": float(ms.max()), "times": len(ms)}


# Takeovers.


class Taught(NamedTuple):
    """A fleet, and the names of its models."""

    trio: Trio
    models: list[str]


@contextmanager
def taught(n: int, options: Options) -> Iterator[Taught]:
    """Three replicas with a model that has learned so many samples; a set of 10,000."""
    n = min(n, options.rows or n)
    with trio_of_models(options) as trio:
        trio.make("model", SPEC | {"working_set": {"max_size": 10_000}})
        for start in range(0, n, _TAUGHT):
            trio.learn(trio.urls, "model", min(_TAUGHT, n), start)
        yield Taught(trio, ["model"])


@contextmanager
def taught_sixteen(options: Options) -> Iterator[Taught]:
    """Three replicas with 16 models that have learned a sample."""
    with trio_of_models(options) as trio:
        models = [f"of-nats-{number}" for number in range(_MODELS_WHILE_NATS_FAILS)]
        for model in models:
            trio.make(model, SPEC)
            trio.learn(trio.urls, model, 1)
        yield Taught(trio, models)


def leader_fails(how: signal.Signals, taught: Taught, options: Options) -> Figures:
    """Kill or stop the leader; seconds until a sample is acknowledged again."""
    trio = taught.trio
    sequence = trio.learn(trio.urls, "model", 1, options.seed)
    wait_for(lambda: trio.is_ready("model", sequence))
    leader = trio.urls.index(trio.leaders()["model"])
    others = [url for url in trio.urls if url != trio.urls[leader]]
    replica, began = trio.replicas[leader], time.monotonic()
    replica.send_signal(how)
    trio.learn(others, "model", 1, options.seed + 1)
    seconds = time.monotonic() - began
    if how == signal.SIGKILL:
        replica.exit_code()
        replica.start()
    else:
        replica.send_signal(signal.SIGCONT)
    return {"seconds": seconds}


def nats_fails(_: object, taught: Taught, options: Options) -> Figures:
    """Kill a NATS server; seconds until the last of the models has taken a sample."""
    trio = taught.trio
    server, began = options.seed % 3, time.monotonic()
    trio.nats.kill(server)
    for model in taught.models:
        trio.learn(trio.urls, model, 1, options.seed)
    seconds = time.monotonic() - began
    trio.nats.start_one(server)
    time.sleep(15)  # it has to read what it missed: two servers of three have to be whole
    return {"seconds": seconds}


def spread_models(_: object, trio: Trio, options: Options) -> Figures:
    """Make many models; count how they are led, and which ones move when a replica leaves."""
    names = {f"model-{number}" for number in range(options.rows or _SPREAD)}
    for name in names:
        trio.make(name, SPEC)
    wait_for(
        lambda: (
            names <= {name for replica in trio.reported().values() for name in replica["follows"]}
        )
    )
    before = wait_for(lambda: _leaders_of(trio, names))
    counts = Counter(before[name] for name in names)
    leaving, began = trio.urls[2], time.monotonic()
    assert trio.replicas[2].terminate() == 0
    after = wait_for(lambda: _leaders_of(trio, names, besides=leaving))
    moved = {name for name in names if before[name] != after[name]}
    return {
        "leads": ", ".join(str(counts[url]) for url in trio.urls),
        "moved": len(moved),
        "others_moved": len({name for name in moved if before[name] != leaving}),
        "seconds": time.monotonic() - began,
    }


def _leaders_of(trio: Trio, names: set[str], besides: str = "") -> dict[str, str]:
    """The leaders of all models; nothing until each has one, other than a replica that leaves."""
    leaders = trio.leaders()
    return leaders if names <= leaders.keys() and besides not in leaders.values() else {}


# Requests.


def _body(n: int, seed: int = 0) -> dict[str, Any]:
    X, y = samples(n, seed)
    return {"x": X.tolist(), "y": y.tolist()}


def _rows() -> dict[str, Any]:
    return {"x": _body(4, 99)["x"]}


def _make(url: str, name: str, working_set: dict[str, Any]) -> None:
    spec = SPEC | {"working_set": working_set}
    while httpx.put(f"{url}/v1/models/{name}", json=spec, timeout=60).status_code == 503:
        time.sleep(0.1)


def _learn(url: str, name: str, samples: dict[str, Any], client: httpx.Client | None = None) -> int:
    """Learn; the sequence."""
    post = httpx.post if client is None else client.post
    answer = post(f"{url}/v1/models/{name}/samples", json=samples, timeout=60)
    answer.raise_for_status()
    return int(answer.json()["sequence"])


def _leader_first(urls: list[str], name: str) -> list[str]:
    """Return the replicas, the model's leader first, once it is known."""
    while True:
        replicas = httpx.get(f"{urls[0]}/v1/fleet", timeout=60).json()["replicas"]
        leading = [replica["url"] for replica in replicas if name in replica["leads"]]
        if leading:
            return [leading[0], *(url for url in urls if url != leading[0])]
        time.sleep(0.05)


def seconds_cell(figures: list[Figures]) -> str:
    """Return the median and the longest of all rounds."""
    seconds = [each["seconds"] for each in figures]
    return f"{float(np.median(seconds)):.2f}, {max(seconds):.2f}" if seconds else ""


FAILURES: dict[str, Any] = {
    "the leader is killed": partial(leader_fails, signal.SIGKILL),
    "the leader stands still": partial(leader_fails, signal.SIGSTOP),
    "a server of NATS is killed": partial(nats_fails, None),
}
SIXTEEN = "16 models"
STUDIES = {
    "fleet": Study(
        {name: name for name in (ALONE, "one server of NATS", "three", BEHIND)},
        {
            f"{c} x {b}": partial(servers, Load(c, b))
            for c, b in ((4, 64), (16, 64), (1, 1), (32, 1))
        }
        | {"16 x 64, a set of 5,000": partial(behind_a_balancer, Load(16, 64, 5000))},
        rate,
        rates_table,
        seeds=ROUNDS,
        rounds=True,
        takes=lambda name, data: name == ALONE or ("5,000" in data) == (name == BEHIND),
    ),
    "fleet_views": Study(
        {
            "from an acknowledgement until another replica predicts with it": lag,
            "from the first prediction at a replica until it holds a large view": first_view,
            "predictions at the others while the leader is killed": without_leader,
        },
        {"three replicas": trio_of_models},
        view,
        partial(
            listed,
            columns={
                "median, ms": mean("median", ",.0f"),
                "longest, ms": mean("longest", ",.0f"),
                "times": mean("times", ".0f"),
            },
        ),
    ),
    "fleet_takeovers": Study(
        FAILURES,
        {f"{n:,} samples in its log": partial(taught, n) for n in (10_000, 100_000)}
        | {SIXTEEN: taught_sixteen},
        lambda fail, taught, options: fail(taught, options),
        partial(crossed, cell=seconds_cell, corner="median and longest, s"),
        seeds=range(10),
        rounds=True,
        takes=lambda failure, data: ("NATS" in failure) == (data == SIXTEEN),
    ),
    "fleet_spread": Study(
        {"a replica leaves": None},
        {"three replicas": trio_of_models},
        spread_models,
        partial(
            listed,
            columns={
                "models led": lambda figures: str(figures[0]["leads"]),
                "moved": mean("moved", ".0f"),
                "of others": mean("others_moved", ".0f"),
                "seconds": mean("seconds", ".1f"),
            },
        ),
    ),
}
