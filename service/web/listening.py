"""The sockets on which a server accepts connections, bound before it recovers anything."""

import contextlib
import errno
import ipaddress
import logging
import os
import socket
import time
from collections.abc import Iterator

from wolfstream.service.errors import StartupError
from wolfstream.service.settings import Settings

logger = logging.getLogger(__name__)

_BACKLOG = 1024
_GONE_SECONDS = 2.0


@contextlib.contextmanager
def listening(settings: Settings, has_keys: bool) -> Iterator[list[socket.socket]]:
    """Bound sockets, one for each process that accepts; several share a port (SO_REUSEPORT).

    Raises StartupError.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with contextlib.ExitStack() as stack:
        try:
            listener = _bound(settings, family)
            listeners = [stack.enter_context(listener)]
            if settings.workers:
                # Bound alone, it has shown that no other server has the port.
                address = listener.getsockname()
                listener.close()
                listeners = [
                    stack.enter_context(_sharing(address, family)) for _ in range(settings.workers)
                ]
        except OSError as error:
            raise StartupError(
                f"cannot listen on {settings.host} port {settings.port}: {_reason(error)}; "
                "choose another address with --host and --port"
            ) from error
        _check_reach(listeners[0], settings, has_keys)
        yield listeners


def _bound(settings: Settings, family: socket.AddressFamily) -> socket.socket:
    """A socket that has the port alone; workers of a killed server may have it for a moment."""
    deadline = time.monotonic() + (_GONE_SECONDS if settings.workers else 0.0)
    while True:
        try:
            return socket.create_server((settings.host, settings.port), family=family)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= deadline:
                raise
        time.sleep(0.05)


def _sharing(address: tuple[str, int], family: socket.AddressFamily) -> socket.socket:
    """Return a socket that shares its port with others of this kind."""
    return socket.create_server(address[:2], family=family, backlog=_BACKLOG, reuse_port=True)


def _check_reach(listener: socket.socket, settings: Settings, has_keys: bool) -> None:
    """Raise StartupError if anybody could use the server."""
    if not (_is_loopback(listener) or has_keys or settings.insecure):
        raise StartupError(
            f"other machines reach {settings.host}, and there are no keys in {settings.data}: "
            "anybody could use this server; add a key with `wolfstream keys add --data "
            f"{settings.data} --name NAME --scope admin`, or use --insecure"
        )
    if has_keys and not (_is_loopback(listener) or settings.tls_cert):
        logger.warning("keys cross the network unencrypted: use --tls-cert, or a proxy")
    logger.info("listening on %s port %d", *listener.getsockname()[:2])


def _reason(error: OSError) -> str:
    """Return the system's message; those of asyncio and socket repeat the address."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def _is_loopback(listener: socket.socket) -> bool:
    """Whether a socket is bound to loopback; a host's name would have to be resolved first."""
    address, *_ = listener.getsockname()
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback
