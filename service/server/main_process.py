"""The main process of a server: it owns the data directory, the engine and uvicorn."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import uvicorn

from wolfstream.service.access.key_ring import KeyRing
from wolfstream.service.access.keys import KeysError
from wolfstream.service.cluster.feeds import Feeds
from wolfstream.service.cluster.membership import Membership
from wolfstream.service.compilation.compiler_process import Process
from wolfstream.service.compilation.warm_up import WarmUp
from wolfstream.service.diagnostics.logging_setup import set_up_logging
from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import NotReady, StartupError
from wolfstream.service.heads.entry_points import permit
from wolfstream.service.monitor import alerts, points
from wolfstream.service.monitor.producer import Monitor
from wolfstream.service.monitor.side_file import SideFile
from wolfstream.service.monitor.webhook import Webhook, deliver
from wolfstream.service.process_settings import begin_serving
from wolfstream.service.recovery.rehearsal import leave_out_what_crashes
from wolfstream.service.recovery.salvage import recover_directory
from wolfstream.service.server.http_server import (
    SHUTDOWN_SECONDS,
    HttpServer,
    client_config,
    leader_config,
    read_ring,
    watch_keys,
)
from wolfstream.service.server.listeners import bound_sockets, url_of
from wolfstream.service.server.tls import check_tls
from wolfstream.service.server.workers import Workers, check_workers
from wolfstream.service.settings import Settings, taken_bytes
from wolfstream.service.storage.crash_marks import ProcessMark, last_crash, watch_for_crashes
from wolfstream.service.storage.data_directory import (
    crash_path,
    open_storage,
    owned,
    running_path,
    side_path,
)
from wolfstream.service.storage.key_mark import FileKeyMark, JournalKeyMark, check_keys
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.routes.app import create_app
from wolfstream.service.web.routes.stream import Streams
from wolfstream.service.web.transport.connections import watch_connections

if TYPE_CHECKING:
    from wolfstream.service.cluster.roles import Roles
    from wolfstream.service.fleet.opening import Fleet

logger = logging.getLogger(__name__)

# How long the writer's thread may run Python code before the event loop can run.
_SWITCH_SECONDS = 0.001
# How long a server that stops learns what it has accepted: its clients are to hear the outcome
# before their connections are closed.
_LEARN_SECONDS = SHUTDOWN_SECONDS - 2


def serve(
    settings: Settings,
    loads: Mapping[str, Path],
    recover: bool = False,
    compiling: Process | None = None,
    no_keys: bool = False,
) -> None:
    """Run the server until SIGTERM or SIGINT.

    Args:
        settings: the server's settings.
        loads: model -> the model file from which it is created.
        recover: whether to start although the data directory has lost data.
        compiling: the process that compiles the numerics, if there is one already.
        no_keys: whether the server may run without keys although it once had some.

    Raises StartupError.
    """
    set_up_logging(settings.log_format)
    check_tls(settings.tls_cert, settings.tls_key)
    check_workers(settings)
    webhook = _webhook(settings)
    settings.shares  # noqa: B018  (it is computed before there are any models)
    permit(settings.heads, settings.pickle_heads)
    with owned(settings.data), contextlib.ExitStack() as stack:
        mark = ProcessMark(
            running_path(settings.data), settings.most_bytes, lambda: taken_bytes()[0]
        )
        stack.callback(mark.end)
        mark.report()
        if recover and not settings.fleet:
            recover_directory(settings.data)
        _handle_last_crash(settings)
        fleet = _join(settings, loads, recover, stack) if settings.fleet else None
        ring = _read_ring(settings, fleet)
        listeners = stack.enter_context(bound_sockets(settings, ring.required))
        memory = MemoryBudget(settings.shares.requests)
        leads = settings.workers > 0
        config = leader_config() if leads else client_config(settings, memory)
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(
                _serve(
                    settings,
                    loads,
                    compiling,
                    config,
                    listeners,
                    ring,
                    memory,
                    webhook,
                    fleet,
                    mark,
                    no_keys,
                )
            )


def _handle_last_crash(settings: Settings) -> None:
    """If the previous process crashed, exclude the models that cause it; trace crashes of this one.

    The replicas of a fleet recognise such models by their marks of replays instead.
    """
    path = crash_path(settings.data)
    if last_crash(path) and not settings.fleet:
        for number in leave_out_what_crashes(settings.data):
            logger.error("model crashes the process, model left out: number=%d", number)
    watch_for_crashes(path)


async def _serve(
    settings: Settings,
    loads: Mapping[str, Path],
    compiling: Process | None,
    config: uvicorn.Config,
    listeners: list[socket.socket],
    ring: KeyRing,
    memory: MemoryBudget,
    webhook: Webhook | None,
    fleet: "Fleet | None",
    mark: ProcessMark,
    no_keys: bool,
) -> None:
    storage = fleet.storage if fleet else open_storage(settings.data, settings.snapshots)
    key_mark = FileKeyMark(settings.data) if fleet else JournalKeyMark(settings.data)
    try:
        check_keys(key_mark, ring.required, no_keys, ring.name)
    except StartupError:
        storage.close()
        raise
    engine, streams = Engine(settings, storage, WarmUp(compiling), loads), Streams()
    side_file = SideFile(side_path(settings.data), points.SCHEMA + alerts.SCHEMA)
    alert_log = alerts.Alerts(side_file, posted=webhook is not None)
    monitor = Monitor(engine, points.Points(side_file), alert_log)
    roles = _begin_roles(engine, fleet, settings) if fleet else None
    feeds = Feeds()
    workers = None
    if settings.workers:
        workers = Workers(settings, engine, feeds, ring, memory, listeners, roles)
    leader = None if workers is None else workers.leader
    membership = _membership(roles, engine, feeds, settings) if roles else None
    config.app = create_app(engine, monitor, settings, streams, ring, memory, membership, leader)
    server = _Server(
        config,
        engine,
        streams,
        monitor,
        roles,
        workers,
        urls=[url_of(listener, settings) for listener in listeners],
        drain_seconds=settings.drain_seconds,
    )
    engine.ready.add_done_callback(lambda _: server.recovery_ended())
    work = [
        monitor.run(),
        watch_keys(ring, streams, lambda: key_mark.set(ring.required)),
        watch_connections(server.server_state, settings.patience_seconds),
        *_view_work(engine, feeds, workers, membership),
    ]
    if webhook is not None:
        work.append(deliver(webhook, alert_log))
    background = [asyncio.create_task(each) for each in work]
    await server.serve(sockets=listeners if workers is None else [workers.listener])
    for task in background:
        task.cancel()
    if roles is not None:
        roles.stop()
    side_file.close()
    await _stop(engine, mark)


def _view_work(
    engine: Engine, feeds: Feeds, workers: Workers | None, membership: Membership | None
) -> list[Coroutine[Any, Any, None]]:
    """Return what runs beside the server so that other processes have copies of its views."""
    if workers is None and membership is None:
        return []
    engine.watch(feeds.changed)
    work = [feeds.run(engine.recovered)]
    if workers is not None:
        work.append(workers.run())
    if membership is not None:
        work += [membership.followed.views.run(), membership.neighbours.run()]
    return work


async def _stop(engine: Engine, mark: ProcessMark) -> None:
    """Stop the engine. Raises what ended its recovery."""
    if not await engine.stop():
        # A compilation cannot be interrupted: the process ends without waiting for it. Until then
        # it owns the data directory.
        mark.end()
        _exit_now(0)
    error = engine.ready.exception() if engine.ready.done() else None
    # A signal ends a recovery with NotReady. This is not a failure: nothing in the log is lost.
    if error is not None and not (engine.readiness.leaving and isinstance(error, NotReady)):
        raise error


def _webhook(settings: Settings) -> Webhook | None:
    """Return the webhook to which alerts are posted, if there is any. Raises StartupError."""
    if settings.webhook is None:
        return None
    return Webhook(settings.webhook, settings.webhook_secret, settings.webhook_private)


def _join(
    settings: Settings, loads: Mapping[str, Path], recover: bool, stack: contextlib.ExitStack
) -> "Fleet":
    """Connect to the fleet until the stack is closed. Raises StartupError."""
    try:
        from wolfstream.service.server.joining import check_settings, fleet_connection
    except ModuleNotFoundError:
        raise StartupError(
            "a fleet needs the client of NATS: pip install 'wolfstream[fleet]'"
        ) from None
    check_settings(settings, loads, recover)
    return stack.enter_context(fleet_connection(settings))


def _begin_roles(engine: Engine, fleet: "Fleet", settings: Settings) -> "Roles":
    from wolfstream.service.cluster.roles import Roles

    roles = Roles(engine, fleet, settings)
    engine.check_by(roles.check)
    return roles


def _membership(roles: "Roles", engine: Engine, feeds: Feeds, settings: Settings) -> Membership:
    from wolfstream.service.server.joining import create_membership

    return create_membership(roles, engine, feeds, settings)


def _read_ring(settings: Settings, fleet: "Fleet | None") -> KeyRing:
    try:
        if fleet is None:
            return read_ring(settings)
        from wolfstream.service.server.joining import watched_keys

        return KeyRing(watched_keys(fleet))
    except KeysError as error:
        raise StartupError(str(error)) from None


class _Server(HttpServer):
    """uvicorn's server, which answers all accepted requests before it exits."""

    def __init__(
        self,
        config: uvicorn.Config,
        engine: Engine,
        streams: Streams,
        monitor: Monitor,
        roles: "Roles | None",
        workers: Workers | None,
        *,
        urls: Sequence[str],
        drain_seconds: float,
    ) -> None:
        super().__init__(config)
        self._urls, self._drain_seconds = urls, drain_seconds
        self._engine, self._monitor, self._roles = engine, monitor, roles
        self._streams, self._workers = streams, workers

    def recovery_ended(self) -> None:
        """Log that the server is ready, or exit if recovery failed."""
        if self._engine.ready.exception():
            self.should_exit = True
        else:
            begin_serving()
            sys.setswitchinterval(_SWITCH_SECONDS)
            logger.info("ready: open %s", " or ".join(self._urls))

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Exit on SIGTERM and SIGINT; uvicorn would raise the signal again at the end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._exit, number)
        yield

    def _exit(self, number: signal.Signals) -> None:
        """Start stopping, and log what is left to do; on a second signal, exit at once."""
        if self.should_exit:
            logger.warning("exiting now; everything acknowledged is in the journal")
            self._engine.abandon()
            _exit_now(128 + number)
        self.should_exit = self._engine.readiness.leaving = True
        self._engine.stop_replays()
        if self._roles is None and not self._drain_seconds:  # otherwise `shutdown` does so later
            self._engine.refuse()
        logger.info(
            "stopping: %d samples wait to be learned; a second signal ends the server now",
            self._engine.waiting().samples,
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, answer accepted requests, close streams with 1001, then all connections.

        Before that, a replica of a fleet hands over its models, and forwards calls. For
        `drain_seconds`, all calls are still answered, until a load balancer sends no more. What
        takes long to learn is left to the next start, and its clients are told so.
        """
        drained = time.monotonic() + self._drain_seconds
        if self._roles is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._roles.hand_over(), SHUTDOWN_SECONDS)
        await asyncio.sleep(max(drained - time.monotonic(), 0.0))
        self._engine.refuse()
        asyncio.get_running_loop().call_later(_LEARN_SECONDS, self._engine.stop_learning)
        self._monitor.close()
        if self._workers is not None:
            await self._workers.stop()  # they need this process until they have exited
        for listener in self.servers:
            listener.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._streams.drain(), SHUTDOWN_SECONDS)
        await super().shutdown(sockets)


def _exit_now(code: int) -> NoReturn:
    """End the process at once, whatever its threads are doing."""
    logging.shutdown()
    os._exit(code)
