"""The server process: data directory, engine, uvicorn and signals."""

import asyncio
import contextlib
import functools
import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import uvicorn

from service.access.key_file import KeyFile
from service.access.key_ring import KeyRing
from service.access.keys import KeysError
from service.diagnostics.logging_setup import set_up_logging
from service.engine.compilation import Process
from service.engine.facade import Engine
from service.engine.salvage import recover_directory
from service.engine.warm_up import WarmUp
from service.errors import StartupError
from service.monitor import alerts, points
from service.monitor.producer import Monitor
from service.monitor.side_file import SideFile
from service.monitor.webhook import Webhook, deliver
from service.settings import Settings
from service.storage.data_directory import open_storage, owned, side_path
from service.web.formats.memory import MemoryBudget
from service.web.formats.problems import problem_response
from service.web.layers.connections import BoundedProtocol, watch_connections
from service.web.layers.stream_connections import BoundedStream
from service.web.routes.app import create_app
from service.web.routes.stream import Streams
from service.web.tls import check_tls

if TYPE_CHECKING:
    from service.fleet.opening import Fleet
    from service.web.roles import Roles

logger = logging.getLogger(__name__)

# How long a stop waits for clients that do not read their responses.
_PATIENCE_SECONDS = 5
# How long the writer's thread may run Python before the event loop gets its turn.
_SWITCH_SECONDS = 0.001
# How long it takes at most until a revoked or added key is noticed.
_KEYS_SECONDS = 0.5


def serve(
    settings: Settings,
    loads: Mapping[str, Path],
    recover: bool = False,
    compiling: Process | None = None,
) -> None:
    """Run the server until SIGTERM or SIGINT. Raises StartupError.

    loads: model files by the names of the models that they become.
    recover: whether what is lost of the data directory is given up.
    compiling: see `WarmUp`.
    """
    set_up_logging(settings.log_format)
    check_tls(settings.tls_cert, settings.tls_key)
    webhook = _webhook(settings)
    with owned(settings.data), contextlib.ExitStack() as stack:
        if recover and not settings.fleet:
            recover_directory(settings.data)
        fleet = _join(settings, loads, recover, stack) if settings.fleet else None
        ring = _read_ring(settings, fleet)
        listener = stack.enter_context(_listening(settings, ring.required))
        # uvicorn's type asks for a class, but it only calls this.
        protocol: Any = functools.partial(BoundedProtocol, settings, problem_response)
        memory = MemoryBudget(settings.memory)
        streams: Any = functools.partial(BoundedStream, settings, memory)
        config = uvicorn.Config(
            lambda: None,
            http=protocol,
            ws=streams,
            # At level INFO it logs the query of each stream, where somebody might put a key.
            log_level="warning",
            lifespan="off",
            access_log=False,
            log_config=None,
            ws_max_size=settings.body_bytes,
            server_header=False,
            # The address of a client is not used.
            proxy_headers=False,
            timeout_graceful_shutdown=_PATIENCE_SECONDS,
            ssl_certfile=settings.tls_cert,
            ssl_keyfile=settings.tls_key,
        )
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(
                _serve(settings, loads, compiling, config, listener, ring, memory, webhook, fleet)
            )


async def _serve(
    settings: Settings,
    loads: Mapping[str, Path],
    compiling: Process | None,
    config: uvicorn.Config,
    listener: socket.socket,
    ring: KeyRing,
    memory: MemoryBudget,
    webhook: Webhook | None,
    fleet: "Fleet | None",
) -> None:
    storage = fleet.storage if fleet else open_storage(settings.data, settings.snapshots)
    engine, streams = Engine(settings, storage, WarmUp(compiling), loads), Streams()
    side_file = SideFile(side_path(settings.data), points.SCHEMA + alerts.SCHEMA)
    noted = alerts.Alerts(side_file, posted=webhook is not None)
    monitor = Monitor(engine, points.Points(side_file), noted)
    roles = _begin_roles(engine, fleet, settings) if fleet else None
    config.app = create_app(engine, monitor, settings, streams, ring, memory, roles)
    server = _Server(config, engine, streams, monitor, roles)
    engine.ready.add_done_callback(lambda _: server.recovery_ended())
    watching = [
        asyncio.create_task(monitor.run()),
        asyncio.create_task(_watch_keys(ring, streams)),
        asyncio.create_task(watch_connections(server.server_state, settings.patience_seconds)),
    ]
    if webhook is not None:
        watching.append(asyncio.create_task(deliver(webhook, noted)))
    await server.serve(sockets=[listener])
    for task in watching:
        task.cancel()
    if roles is not None:
        roles.stop()
    side_file.close()
    if not await engine.stop():
        # A compilation cannot be interrupted. The directory is held until the process is gone.
        _leave(0)
    if engine.ready.done() and (error := engine.ready.exception()):
        raise error


def _webhook(settings: Settings) -> Webhook | None:
    """Where alerts are posted. Raises StartupError."""
    if settings.webhook is None:
        return None
    return Webhook(settings.webhook, settings.webhook_secret, settings.webhook_private)


def _join(
    settings: Settings, loads: Mapping[str, Path], recover: bool, stack: contextlib.ExitStack
) -> "Fleet":
    """Raises StartupError."""
    try:
        from service.web.joining import check_settings, joined
    except ModuleNotFoundError:
        raise StartupError(
            "a fleet needs the client of NATS: pip install 'wolfstream[fleet]'"
        ) from None
    check_settings(settings, loads, recover)
    return stack.enter_context(joined(settings))


def _begin_roles(engine: Engine, fleet: "Fleet", settings: Settings) -> "Roles":
    from service.web.roles import Roles

    return Roles(engine, fleet, settings.advertise)


def _read_ring(settings: Settings, fleet: "Fleet | None") -> KeyRing:
    try:
        if fleet is None:
            return KeyRing(KeyFile(settings.data))
        from service.web.joining import keys_of

        return KeyRing(keys_of(fleet))
    except KeysError as error:
        raise StartupError(str(error)) from None


async def _watch_keys(ring: KeyRing, streams: Streams) -> None:
    """Apply changes of the keys, and end the streams of revoked ones."""
    logged = ""
    while True:
        await asyncio.sleep(_KEYS_SECONDS)
        try:
            if ring.refresh():
                logged = ""
                logger.info("the keys have changed")
        except KeysError as error:
            if str(error) != logged:
                logged = str(error)
                logger.error("%s; the keys stay as they were", logged)
        # Every time: a stream may have been opening while its key was revoked.
        streams.end_revoked(ring)


class _Server(uvicorn.Server):
    """uvicorn's server, which responds to all it accepted before it closes streams and exits."""

    def __init__(
        self,
        config: uvicorn.Config,
        engine: Engine,
        streams: Streams,
        monitor: Monitor,
        roles: "Roles | None",
    ) -> None:
        super().__init__(config)
        self._engine, self._monitor, self._roles = engine, monitor, roles
        self._streams = streams

    def recovery_ended(self) -> None:
        """Log that the server is ready, or exit if recovery failed."""
        if self._engine.ready.exception():
            self.should_exit = True
        else:
            # What exists now stays until the end: each full collection that visited it would
            # stop all threads for a tenth of a second.
            gc.collect()
            gc.freeze()
            sys.setswitchinterval(_SWITCH_SECONDS)
            logger.info("ready")

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Exit on SIGTERM and SIGINT, without uvicorn's raising them again at the end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._exit, number)
        yield

    def _exit(self, number: signal.Signals) -> None:
        """Take nothing more, and say what is left; the second time, leave at once."""
        if self.should_exit:
            logger.warning("leaving at once; what was acknowledged is in the journal")
            self._engine.abandon()
            _leave(128 + number)
        self.should_exit = True
        if self._roles is None:  # else it hands over first
            self._engine.refuse()
        logger.info(
            "stopping: %d samples wait to be learned; a second signal ends the server at once",
            self._engine.waiting().samples,
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, respond to what was accepted, close streams with 1001, then the rest.

        Before that, a replica of a fleet hands over what it leads, and passes calls on.
        """
        if self._roles is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._roles.hand_over(), _PATIENCE_SECONDS)
        self._engine.refuse()
        for listener in self.servers:
            listener.close()
        self._monitor.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._streams.drain(), _PATIENCE_SECONDS)
        await super().shutdown(sockets)


def _leave(code: int) -> NoReturn:
    """End the process, whatever its threads are doing."""
    logging.shutdown()
    os._exit(code)


@contextlib.contextmanager
def _listening(settings: Settings, has_keys: bool) -> Iterator[socket.socket]:
    """The bound socket, which exists before recovery begins."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        raise StartupError(
            f"cannot listen on {settings.host} port {settings.port}: {_reason(error)}; "
            "choose another address with --host and --port"
        ) from error
    with listener:
        if not (_is_loopback(listener) or has_keys or settings.insecure):
            raise StartupError(
                f"other machines reach {settings.host}, and there are no keys in {settings.data}: "
                "anybody could use this server; add a key with `wolfstream keys add --data "
                f"{settings.data} --name NAME --scope admin`, or use --insecure"
            )
        if has_keys and not (_is_loopback(listener) or settings.tls_cert):
            logger.warning("keys cross the network unencrypted: use --tls-cert, or a proxy")
        logger.info("listening on %s port %d", *listener.getsockname()[:2])
        yield listener


def _reason(error: OSError) -> str:
    """The system's words; those of asyncio and socket repeat the address."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def _is_loopback(listener: socket.socket) -> bool:
    """Whether a socket is bound to loopback; a host's name would have to be resolved first."""
    address, *_ = listener.getsockname()
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback
