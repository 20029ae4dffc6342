"""What is posted, to whom, and what becomes of it where nobody takes it."""

import asyncio
import base64
import hashlib
import hmac
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from tests.service.monitor.conftest import SideFiles
from tests.service.server.test_tls import Pair, make_pair
from wolfstream.service.errors import StartupError
from wolfstream.service.monitor import alerts, webhook
from wolfstream.service.monitor.alerts import Alert, Alerts
from wolfstream.service.monitor.webhook import NotDelivered, Webhook, deliver, signature_headers

SECRET = "a secret of enough characters"
ALERT = Alert(3, "adaptive", 700, {"model": "rooms", "time": "2026-03-01T09:30:00.000Z"})


class Receiver(BaseHTTPRequestHandler):
    """Answers as it is told to, and keeps what it got."""

    got: ClassVar[list[tuple[dict[str, str], bytes]]]
    statuses: ClassVar[list[int]]
    pause = 0.0
    elsewhere = "http://127.0.0.1:1/elsewhere"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
        time.sleep(self.pause)
        self.send_response(self.statuses.pop(0) if self.statuses else 204)
        self.send_header("location", self.elsewhere)
        with suppress(ConnectionError):
            self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def receiving(
    *statuses: int, pause: float = 0.0, pair: Pair | None = None
) -> Iterator[tuple[str, list[Any]]]:
    """A receiver and what it got. pair: of https."""
    fields = {"got": [], "statuses": list(statuses), "pause": pause}
    handler = type("Told", (Receiver,), fields)
    with serving(handler, pair) as url:
        yield url, handler.got  # type: ignore[attr-defined]


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], pair: Pair | None = None) -> Iterator[str]:
    """The URL of a server whose requests are handled so."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if pair is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair.cert, pair.key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        scheme = "http" if pair is None else "https"
        yield f"{scheme}://localhost:{server.server_port}/alerts?of=rooms"
        server.shutdown()


Noted = Callable[[Path], Alerts]


@pytest.fixture
def noted(side_file: SideFiles) -> Noted:
    """Opens the alerts of a folder."""
    return lambda folder: Alerts(side_file(folder), posted=True)


def delivered(to: Webhook, kept: Alerts, seconds: float = 5.0) -> None:
    """Deliver until nothing waits, or the time is over."""

    async def run() -> None:
        task = asyncio.create_task(deliver(to, kept))
        deadline = time.monotonic() + seconds
        await asyncio.to_thread(_wait, kept, deadline)
        task.cancel()

    asyncio.run(run())


def _wait(kept: Alerts, deadline: float) -> None:
    while kept._file.use(_waiting, 0) and time.monotonic() < deadline:
        time.sleep(0.02)


def _waiting(db: Any) -> int:
    return int(db.execute("SELECT count(*) FROM alerts WHERE waiting").fetchone()[0])


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(webhook, "_LOOK_SECONDS", 0.01)


def test_what_is_posted_is_signed(tmp_path: Path, noted: Noted):
    kept = noted(tmp_path)
    assert kept.record([ALERT]) == [ALERT]
    with receiving() as (url, got):
        delivered(Webhook(url, SECRET, private=True), kept)
    ((headers, body),) = got
    assert json.loads(body) == {
        "type": "change",
        "timestamp": ALERT.content["time"],
        "data": ALERT.content,
    }
    assert headers["host"].startswith("localhost:")
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(SECRET.encode(), content, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


def test_the_signature_is_that_of_standard_webhooks():
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    number, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}'
    headers = signature_headers(secret, number, 1614265330, body)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_it_is_posted_again_under_one_id_until_it_is_taken(tmp_path: Path, noted: Noted):
    kept = noted(tmp_path)
    kept.record([ALERT])
    with receiving(500, 302, 429, 200) as (url, got):
        delivered(Webhook(url, SECRET, private=True), kept)
    assert len(got) == 4
    assert len({headers["webhook-id"] for headers, _ in got}) == 1
    assert kept.due() is None


def test_it_is_given_up_at_last(tmp_path: Path, noted: Noted, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(webhook, "_MAX_TRIES", 2)
    kept = noted(tmp_path)
    kept.record([ALERT])
    with receiving(500, 500, 500) as (url, got):
        delivered(Webhook(url, SECRET, private=True), kept)
    assert len(got) == 2


def test_one_that_hangs_is_left(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(webhook, "_SECONDS", 0.2)
    with receiving(pause=1.0) as (url, _), pytest.raises(NotDelivered, match="no response"):
        asyncio.run(Webhook(url, SECRET, private=True).post(ALERT))


def test_a_redirection_is_not_followed():
    with receiving() as (inner, got):

        class Redirecting(Receiver):
            got: ClassVar[list[Any]] = []
            statuses: ClassVar[list[int]] = [307]
            elsewhere = inner

        with (
            serving(Redirecting) as url,
            pytest.raises(NotDelivered, match="the response was 307"),
        ):
            asyncio.run(Webhook(url, SECRET, private=True).post(ALERT))
        assert got == []


class Resolver:
    """Stands in for the look-up of names; each one has other addresses than the one before."""

    def __init__(self, patch: pytest.MonkeyPatch, *answers: list[str]) -> None:
        self.answers = list(answers)
        patch.setattr(asyncio.BaseEventLoop, "getaddrinfo", self._getaddrinfo)

    async def _getaddrinfo(self, host: str, port: int, **_: Any) -> list[Any]:
        # A connection to an address looks that up, too.
        if host[0].isdigit():
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]
        addresses = self.answers.pop(0)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses]


def test_a_name_that_turns_inwards_later_is_not_posted_to(monkeypatch: pytest.MonkeyPatch):
    """What a name led to before says nothing: it is checked at each attempt."""
    monkeypatch.setattr(webhook, "_is_public", lambda address: str(address) == "127.0.0.1")
    with receiving() as (url, got):
        Resolver(monkeypatch, ["127.0.0.1"], ["10.0.0.1"])
        to = Webhook(url, SECRET, private=False)
        asyncio.run(to.post(ALERT))
        with pytest.raises(NotDelivered, match=r"is at 10\.0\.0\.1"):
            asyncio.run(to.post(ALERT))
        assert len(got) == 1


def test_the_connection_is_made_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch):
    """A second look-up, which could have another answer, would find none here."""
    with receiving() as (url, got):
        looked_up = Resolver(monkeypatch, ["127.0.0.1"])
        asyncio.run(Webhook(url, SECRET, private=True).post(ALERT))
        assert looked_up.answers == []
        assert len(got) == 1


def test_a_name_with_one_address_inside_is_not_posted_to(monkeypatch: pytest.MonkeyPatch):
    Resolver(monkeypatch, ["93.184.215.14", "192.168.0.1"])
    with pytest.raises(NotDelivered, match=r"is at 192\.168\.0\.1"):
        asyncio.run(Webhook("https://example.com", SECRET, private=False).post(ALERT))


@pytest.mark.parametrize("host", ["a..b", "a" * 64], ids=["empty label", "long label"])
def test_impossible_names_are_not_posted_to(host: str):
    with pytest.raises(NotDelivered, match=r"label .*too long"):
        asyncio.run(Webhook(f"http://{host}/alerts", SECRET, private=True).post(ALERT))


class TestSeveralAddresses:
    """127.0.0.2 comes first, and the receiver is at 127.0.0.1."""

    @pytest.fixture(autouse=True)
    def resolver(self, monkeypatch: pytest.MonkeyPatch) -> Resolver:
        return Resolver(monkeypatch, ["127.0.0.2", "127.0.0.1"])

    def test_the_next_one_is_tried_where_nobody_listens(self):
        with receiving() as (url, got):
            asyncio.run(Webhook(url, SECRET, private=True).post(ALERT))
            assert len(got) == 1

    def test_the_next_one_is_tried_where_no_connection_is_made(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(webhook, "_SECONDS", 3.0)
        with receiving() as (url, got), hanging(port_of(url)):
            asyncio.run(Webhook(url, SECRET, private=True).post(ALERT))
            assert len(got) == 1

    def test_what_was_sent_to_one_is_not_sent_to_the_next(self):
        """It may have been taken; it comes again, under the same id, with the next attempt."""
        with (
            receiving() as (url, got),
            answering(b"", address=("127.0.0.2", port_of(url))),
            pytest.raises(NotDelivered),
        ):
            asyncio.run(Webhook(url, SECRET, private=True).post(ALERT))
        assert got == []

    def test_that_all_refuse_is_said(self):
        with receiving() as (url, _):
            pass
        with pytest.raises(NotDelivered, match="connection"):
            asyncio.run(Webhook(url, SECRET, private=True).post(ALERT))


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


@contextmanager
def hanging(port: int) -> Iterator[None]:
    """Let connections to a port of 127.0.0.2 hang: so many wait there that no other one may."""
    with socket.create_server(("127.0.0.2", port), backlog=0), ExitStack() as waiting:
        for _ in range(3):
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(("127.0.0.2", port))
        yield


@contextmanager
def answering(
    *parts: bytes, again: bytes = b"", address: tuple[str, int] = ("127.0.0.1", 0)
) -> Iterator[str]:
    """A URL whose server sends these parts, then one of them for ever."""

    def answer(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            for part in parts:
                connection.sendall(part)
            while again:
                connection.sendall(again)
                time.sleep(0.001)

    with socket.create_server(address) as listening:
        thread = threading.Thread(target=answer, args=(listening,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        thread.join()


def test_one_whose_response_never_ends_its_headers_is_left():
    started = b"HTTP/1.1 200 OK\r\n"
    with (
        answering(started, again=b"x-more: " + 1000 * b"y" + b"\r\n") as url,
        pytest.raises(NotDelivered),
    ):
        asyncio.run(Webhook(url, SECRET, private=True).post(ALERT))


def test_the_body_of_a_response_is_not_read():
    started = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with answering(started, again=b"3e8\r\n" + 1000 * b"y" + b"\r\n") as url:
        asyncio.run(Webhook(url, SECRET, private=True).post(ALERT))


def test_what_is_no_http_is_not_taken_for_an_answer():
    with answering(b"SSH-2.0-OpenSSH_9.6\r\n") as url, pytest.raises(NotDelivered):
        asyncio.run(Webhook(url, SECRET, private=True).post(ALERT))


def test_a_name_that_leads_inwards_is_not_posted_to():
    with receiving() as (url, got):
        with pytest.raises(NotDelivered, match="WOLFSTREAM_WEBHOOK_PRIVATE"):
            asyncio.run(Webhook(url, SECRET, private=False).post(ALERT))
        assert got == []


def test_the_certificate_is_checked_against_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The connection is made to an address, but the name is what must be certified."""
    pair = make_pair(tmp_path, "receiver")  # for 127.0.0.1, not for localhost
    with receiving(pair=pair) as (url, got):
        certified = url.replace("localhost", "127.0.0.1")
        with pytest.raises(NotDelivered, match="certificate"):
            asyncio.run(Webhook(certified, SECRET, private=True).post(ALERT))
        monkeypatch.setenv("SSL_CERT_FILE", str(pair.cert))
        asyncio.run(Webhook(certified, SECRET, private=True).post(ALERT))
        with pytest.raises(NotDelivered, match="certificate"):
            asyncio.run(Webhook(url, SECRET, private=True).post(ALERT))
        assert len(got) == 1


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1"),
        *("[::1]", "[fe80::1]", "[fc00::1]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]"),
        *("[2002:a00:1::]", "[fec0::1]", "[::10.0.0.1]", "[::ffff:0:10.0.0.1]"),
        *("[64:ff9b:1::a00:1]", "[5f00::1]", "255.255.255.255"),
    ],
)
def test_an_address_that_leads_inwards_is_refused_at_the_start(host: str):
    with pytest.raises(StartupError, match="WOLFSTREAM_WEBHOOK_PRIVATE"):
        Webhook(f"https://{host}/alerts", SECRET, private=False)
    Webhook(f"https://{host}/alerts", SECRET, private=True)


@pytest.mark.parametrize("url", ["ftp://example.com", "example.com", "https://", "https://a:b@c.d"])
def test_other_urls_are_refused(url: str):
    with pytest.raises(StartupError, match="--webhook needs a URL"):
        Webhook(url, SECRET, private=False)


@pytest.mark.parametrize("secret", ["", "short", "whsec_this is not base64"])
def test_a_secret_is_needed(secret: str):
    with pytest.raises(StartupError, match="WOLFSTREAM_WEBHOOK_SECRET"):
        Webhook("https://example.com", secret, private=False)


def test_missing_file_reports_each_models_newest_alert(tmp_path: Path, noted: Noted):
    older, other = ALERT._replace(sequence=1), ALERT._replace(model_id=4, sequence=2)
    assert noted(tmp_path / "missing").record([older, ALERT, other]) == [ALERT, other]


def test_alerts_are_noted_once_and_those_that_wait_are_bounded(
    tmp_path: Path, noted: Noted, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(alerts, "_MAX_WAITING", 5)
    kept = noted(tmp_path)
    several = [ALERT._replace(sequence=i) for i in range(9)]
    for alert in several:
        assert kept.record([alert]) == [alert]
    assert noted(tmp_path).record(several) == []
    assert kept._file.use(_waiting, 0) == 5
    kept.forget([])
    assert kept._file.use(_waiting, 0) == 5
