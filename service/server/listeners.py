"""Binds the sockets on which a server accepts connections, before it recovers its models."""

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
# How long to wait for a port that another process still uses.
_BIND_RETRY_SECONDS = 2.0
# Wildcard address -> loopback address, for a browser on this machine.
_LOCAL_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@contextlib.contextmanager
def bound_sockets(settings: Settings, has_keys: bool) -> Iterator[list[socket.socket]]:
    """Bind a socket for each process that accepts connections; close them at the end.

    The sockets of several workers share a port (SO_REUSEPORT).

    Args:
        settings: the server's settings.
        has_keys: whether the server has API keys.

    Raises StartupError.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with contextlib.ExitStack() as stack:
        try:
            listener = _bind_exclusively(settings, family)
            listeners = [stack.enter_context(listener)]
            if settings.workers:
                # This socket was not shared, so no other server uses the port.
                address = listener.getsockname()
                listener.close()
                listeners = [
                    stack.enter_context(_bind_shared(address, family))
                    for _ in range(settings.workers)
                ]
        except OSError as error:
            raise StartupError(
                f"cannot listen on {settings.host} port {settings.port}: {_reason(error)}; "
                "choose another address with --host and --port"
            ) from error
        _check_reach(listeners[0], settings, has_keys)
        yield listeners


def _bind_exclusively(settings: Settings, family: socket.AddressFamily) -> socket.socket:
    """Return a socket that does not share its port."""
    # The workers of a killed server may use it for another moment.
    deadline = time.monotonic() + (_BIND_RETRY_SECONDS if settings.workers else 0.0)
    while True:
        try:
            return socket.create_server((settings.host, settings.port), family=family)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= deadline:
                raise
        time.sleep(0.05)


def _bind_shared(address: tuple[str, int], family: socket.AddressFamily) -> socket.socket:
    """Return a socket that shares its port with other sockets from this function."""
    return socket.create_server(address[:2], family=family, backlog=_BACKLOG, reuse_port=True)


def _check_reach(listener: socket.socket, settings: Settings, has_keys: bool) -> None:
    """Raise StartupError if anybody on the network could use the server."""
    if not (_is_loopback(listener) or has_keys or settings.insecure):
        raise StartupError(
            f"other machines reach {settings.host}, and there are no keys in {settings.data}: "
            "anybody could use this server; add a key with `wolfstream keys add --data "
            f"{settings.data} --name NAME --scope admin`, or use --insecure"
        )
    if has_keys and not (_is_loopback(listener) or settings.tls_cert):
        logger.warning("keys cross the network unencrypted: use --tls-cert, or a proxy")
    logger.info("listening on %s port %d", *listener.getsockname()[:2])


def url_of(listener: socket.socket, settings: Settings) -> str:
    """Return the address of a server for a browser on this machine."""
    scheme = "https" if settings.tls_cert else "http"
    address, port, *_ = listener.getsockname()
    host = _LOCAL_ADDRESS.get(address, address)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _reason(error: OSError) -> str:
    """Return the system's message: those of asyncio and socket would repeat the address."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def _is_loopback(listener: socket.socket) -> bool:
    """Return whether a socket is bound to a loopback address."""
    # The setting `host` may be a name; the socket has the address that it was resolved to.
    address, *_ = listener.getsockname()
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback
