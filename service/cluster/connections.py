"""HTTP connections to other replicas: time limits, keep-alive and trust."""

import socket
import ssl

import httpx

CONNECT_SECONDS = 1.0
# A connection is closed if the other machine has not acknowledged data for this long. The system's
# own limit is a quarter of an hour: too long if a firewall has dropped the connection.
_LOST_SECONDS = 8
_SOCKET_OPTIONS = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (
            ("TCP_KEEPIDLE", 2),
            ("TCP_KEEPINTVL", 2),
            ("TCP_KEEPCNT", 3),
            ("TCP_USER_TIMEOUT", 1000 * _LOST_SECONDS),
        )
        if hasattr(socket, name)  # some systems lack some of them
    ),
]


def client_of_replicas(
    tls: ssl.SSLContext, silent_seconds: float | None = None
) -> httpx.AsyncClient:
    """Return a client for calls to replicas.

    Args:
        tls: verifies their certificates.
        silent_seconds: how long to wait for the next bytes of a response; None without a limit.
    """
    return httpx.AsyncClient(
        timeout=httpx.Timeout(silent_seconds, connect=CONNECT_SECONDS),
        transport=httpx.AsyncHTTPTransport(
            verify=tls,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            socket_options=_SOCKET_OPTIONS,
        ),
        trust_env=False,
    )
