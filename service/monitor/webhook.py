"""Posts alerts to a URL of the operator: signed, and repeated until they are accepted.

Requests are signed as Standard Webhooks specifies: `webhook-signature` has the HMAC-SHA256 of
`ID.TIMESTAMP.BODY`. The host's name is resolved for each request, its addresses are checked, and
the connection goes to a checked address. So no later answer of a DNS server leads to an address
inside the operator's network.
"""

import asyncio
import base64
import hmac
import ipaddress
import json
import logging
import socket
import ssl
import time
from contextlib import suppress
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import httpx

from wolfstream.service.errors import StartupError
from wolfstream.service.monitor.alerts import LONGEST_PAUSE, Alert, Alerts

logger = logging.getLogger(__name__)

_SECONDS = 10.0
_MAX_ADDRESSES = 4  # of a name that are tried
_FIRST_PAUSE = 1.0
_MAX_TRIES = 150  # about a day, with these pauses
# Time between two checks whether an alert is due.
_LOOK_SECONDS = 1.0
_MIN_SECRET_LENGTH = 16
_SECRET_PREFIX = "whsec_"
# All global unicast addresses of IPv6. Others may be translated to IPv4 or routed within a site, so
# they could lead to internal addresses.
_GLOBAL = ipaddress.ip_network("2000::/3")
_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


class NotDelivered(Exception):
    """An alert was not accepted; the message says why."""


class Webhook:
    """The URL that alerts are posted to."""

    def __init__(self, url: str, secret: str, private: bool) -> None:
        """Check the settings.

        Args:
            url: http or https.
            secret: the key of the signatures.
            private: whether addresses are allowed that only this machine or its network reaches.

        Raises StartupError.
        """
        self._url = _parse_url(url)
        if len(secret) < _MIN_SECRET_LENGTH:
            raise StartupError(
                "--webhook needs WOLFSTREAM_WEBHOOK_SECRET, a text of at least "
                f"{_MIN_SECRET_LENGTH} characters, with which the receiver verifies the sender"
            )
        self._secret = _decode_secret(secret)
        self._private = private
        if (literal := _parse_address(self._url.host)) is not None:
            try:
                self._check(literal)
            except NotDelivered as error:
                raise StartupError(f"--webhook: {error}") from None
        self._tls = ssl.create_default_context()

    async def post(self, alert: Alert) -> None:
        """Try once to post an alert. Raises NotDelivered."""
        data = {"type": "change", "timestamp": alert.content["time"], "data": alert.content}
        body = json.dumps(data, allow_nan=False, separators=(",", ":")).encode()
        number = f"{alert.model_id}.{alert.head}.{alert.sequence}"
        try:
            async with asyncio.timeout(_SECONDS):
                status = await self._send(
                    body, signature_headers(self._secret, number, int(time.time()), body)
                )
        except TimeoutError:
            raise NotDelivered(f"no response within {_SECONDS:.0f} s") from None
        except (OSError, UnicodeError, httpx.HTTPError) as error:  # Unicode: no name of a host
            raise NotDelivered(str(error) or type(error).__name__) from None
        if not 200 <= status < 300:
            raise NotDelivered(f"the response was {status}")

    async def _send(self, body: bytes, headers: dict[str, str]) -> int:
        """Return the status of the response of the first address that can be connected to."""
        addresses = await self._addresses()
        # Each attempt to connect has an equal share, and the response has one, too.
        timeout = httpx.Timeout(_SECONDS, connect=_SECONDS / (len(addresses) + 1))
        async with httpx.AsyncClient(
            trust_env=False, follow_redirects=False, verify=self._tls, timeout=timeout
        ) as client:
            for address in addresses[:-1]:
                with suppress(httpx.ConnectError, httpx.ConnectTimeout):  # nothing was sent
                    return await self._send_to(client, address, body, headers)
            return await self._send_to(client, addresses[-1], body, headers)

    async def _send_to(
        self, client: httpx.AsyncClient, address: _Address, body: bytes, headers: dict[str, str]
    ) -> int:
        """Return the status of an address's response, without reading the body."""
        host = self._url.netloc.decode("ascii")
        async with client.stream(
            "POST",
            self._url.copy_with(host=str(address)),
            content=body,
            headers={"Host": host, "Content-Type": "application/json", **headers},
            extensions={"sni_hostname": self._url.host},
        ) as response:
            return response.status_code

    async def _addresses(self) -> list[_Address]:
        """Return the first addresses of the host, once all of them have passed the check.

        Raises NotDelivered, OSError.
        """
        port = self._url.port or (443 if self._url.scheme == "https" else 80)
        infos = await asyncio.get_running_loop().getaddrinfo(
            self._url.host, port, type=socket.SOCK_STREAM
        )
        addresses = [ipaddress.ip_address(str(info[4][0]).partition("%")[0]) for info in infos]
        for address in addresses:
            self._check(address)
        return list(dict.fromkeys(addresses))[:_MAX_ADDRESSES]

    def _check(self, address: _Address) -> None:
        if not (self._private or _is_public(address)):
            raise NotDelivered(
                f"{self._url.host} is at {address}, which only this machine or its network "
                "reaches; WOLFSTREAM_WEBHOOK_PRIVATE=true allows that"
            )


async def deliver(webhook: Webhook, alerts: Alerts) -> None:
    """Post the alerts that wait, one after another, until cancelled."""
    while True:
        alert = await asyncio.to_thread(alerts.due)
        if alert is None:
            await asyncio.sleep(_LOOK_SECONDS)
            continue
        try:
            await webhook.post(alert)
        except NotDelivered as error:
            await asyncio.to_thread(_postpone, alerts, alert, error)
        else:
            await asyncio.to_thread(alerts.finish, alert)


def signature_headers(secret: bytes, number: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers that sign a request.

    Args:
        secret: key of the signature.
        number: id of the alert, the same for each attempt.
        timestamp: seconds since 1970.
        body: of the request.
    """
    content = f"{number}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.digest(secret, content, "sha256")).decode()
    return {
        "webhook-id": number,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }


def _postpone(alerts: Alerts, alert: Alert, error: NotDelivered) -> None:
    """Schedule another attempt to post an alert; give up after too many."""
    fields = alert.content["model"], alert.sequence, error
    if alert.tries + 1 >= _MAX_TRIES:
        logger.error("alert not posted, given up: model=%s sequence=%d error=%s", *fields)
        alerts.finish(alert)
        return
    pause = min(_FIRST_PAUSE * 2.0 ** min(alert.tries, 20), LONGEST_PAUSE)
    logger.warning(
        "alert not posted, trying again: model=%s sequence=%d error=%s seconds=%.0f",
        *(*fields, pause),
    )
    alerts.postpone(alert, pause)


def _parse_url(url: str) -> httpx.URL:
    """Return a URL that can be posted to. Raises StartupError."""
    try:
        parts = httpx.URL(url)
        usable = parts.scheme in ("http", "https") and parts.host and not urlsplit(url).username
    except (httpx.InvalidURL, ValueError):
        usable = False
    if not usable:
        raise StartupError(
            "--webhook needs a URL like https://example.com/alerts, without a user's name in it"
        )
    return parts


def _decode_secret(secret: str) -> bytes:
    """Return the bytes of a secret: base64 after Standard Webhooks' prefix, otherwise its text.

    Raises StartupError.
    """
    if secret.startswith(_SECRET_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
        except ValueError:
            raise StartupError(
                f"WOLFSTREAM_WEBHOOK_SECRET begins with {_SECRET_PREFIX}, but what follows is not "
                "base64"
            ) from None
    return secret.encode()


def _parse_address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_public(address: _Address) -> bool:
    """Return whether an address, or the IPv4 address within it, is reachable from anywhere."""
    if isinstance(address, ipaddress.IPv6Address):
        inside: Any = address.ipv4_mapped or address.sixtofour
        if inside is not None:
            return _is_public(inside)
        if address.teredo is not None or address not in _GLOBAL:
            return False
    return address.is_global and not address.is_multicast
