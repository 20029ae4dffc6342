"""How replicas show NATS servers who they are, and what they say where they are not let in."""

import asyncio
import base64
import json
import logging
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.service.nats import MISSING, PROGRAM, NatsServers
from tests.service.process import free_port, listens
from tests.service.server.test_tls import Pair, make_pair

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from wolfstream.service.errors import StartupError
from wolfstream.service.fleet import streams
from wolfstream.service.fleet.connecting import NOBODY, Login
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.opening import connect, keys_at, open_fleet
from wolfstream.service.server.joining import nats_login
from wolfstream.service.settings import Settings

ROOT = Path(__file__).parents[3]
_BYTES = 8 << 20
PASSWORD = "p@ss/w%rd,:#"
ENCODED = "p%40ss%2Fw%25rd%2C%3A%23"


@contextmanager
def serving(folder: Path, settings: str) -> Iterator[NatsServers]:
    """A server with some lines of settings."""
    with closing(NatsServers(folder, more=settings)) as servers:
        yield servers.start()


def users(servers: NatsServers, user: str) -> list[str]:
    return [address.replace("//", f"//{user}@") for address in servers.addresses]


def login(**settings: Any) -> Login:
    """The login of a server with some settings."""
    return nats_login(Settings(_env_file=None, **settings))  # type: ignore[call-arg]


def check_connects(servers: list[str], who: Login = NOBODY) -> None:
    connect(servers, _BYTES, _BYTES, who).close()


def refused(servers: list[str], who: Login = NOBODY) -> str:
    """Return why a replica does not start, which it says soon."""
    began = time.monotonic()
    with pytest.raises(StartupError) as error:
        check_connects(servers, who)
    assert time.monotonic() < began + 18
    return str(error.value)


class TestPasswords:
    def test_may_be_percent_encoded_in_addresses(self, tmp_path: Path):
        known = f'authorization {{ user: "a:b", password: "{PASSWORD}" }}'
        with serving(tmp_path, known) as servers:
            check_connects(users(servers, f"a%3Ab:{ENCODED}"))
            assert "percent-encoded" in refused(users(servers, "a%3Ab:wrong"))

    def test_may_be_tokens(self, tmp_path: Path):
        with serving(tmp_path, f'authorization {{ token: "{PASSWORD}" }}') as servers:
            check_connects(users(servers, ENCODED))
            (tmp_path / "token").write_text(f"{PASSWORD}\n")
            check_connects(servers.addresses, login(nats_password_file=tmp_path / "token"))

    def test_are_read_again_after_they_were_renewed(self, tmp_path: Path):
        file, known = tmp_path / "password", "authorization {{ user: a, password: {} }}"
        file.write_text("first")
        with serving(tmp_path / "nats", known.format("first")) as servers:
            who = login(nats_user="a", nats_password_file=file)
            with closing(connect(servers.addresses, _BYTES, _BYTES, who)) as nats:
                servers.renew(known.format("second"))
                wait_for(lambda: not nats.connected)
                file.write_text("second")
                wait_for(lambda: nats.connected)
                nats.run(nats.call("STREAM.INFO.WOLFSTREAM_STATES", {}), 10)

    @pytest.mark.parametrize("word", ["User Authentication Expired", "Authorization Violation"])
    def test_that_have_expired_end_no_client_for_good(self, servers: NatsServers, word: str):
        with closing(NatsConnection(servers.addresses, "test")) as nats:
            assert nats.refusals == 0
            nats.run(nats.client._process_err(f"'{word}'"), 10)
            assert nats.refusals == 1
            wait_for(lambda: nats.connected)
            nats.run(nats.client.flush(), 10)

    def test_that_have_expired_end_no_client_that_connects_again(self, servers: NatsServers):
        """The end of a connection may be noticed before the reason for it is read."""

        async def told_late(client: Any) -> bool:
            client._status = client.RECONNECTING
            await client._process_err("'Authorization Violation'")
            await asyncio.sleep(0.1)
            status, client._status = client._status, client.CONNECTED
            return bool(status == client.RECONNECTING)

        with closing(NatsConnection(servers.addresses, "test")) as nats:
            assert nats.run(told_late(nats.client), 10)
            nats.run(nats.client.flush(), 10)

    def test_are_of_one_user(self, tmp_path: Path):
        assert "different users" in refused(["nats://a:b@x:1", "nats://c:d@x:2"])
        (tmp_path / "password").write_text("second")
        more = login(nats_password_file=tmp_path / "password")
        assert "more than one identity" in refused(["nats://a:b@x:1"], more)

    @pytest.mark.parametrize(("content", "why"), [(None, "cannot be read"), ("", "has no text")])
    def test_are_missed_at_the_start(self, tmp_path: Path, content: str | None, why: str):
        file = tmp_path / "password"
        if content is not None:
            file.write_text(content)
        assert why in refused(["nats://x:1"], login(nats_password_file=file))
        with pytest.raises(StartupError, match="without WOLFSTREAM_NATS_PASSWORD_FILE"):
            login(nats_user="a")


def wait_for(look: Any) -> None:
    deadline = time.monotonic() + 30
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class TestTls:
    def settings(self, pair: Pair, more: str = "") -> str:
        return f'tls {{ cert_file: "{pair.cert}", key_file: "{pair.key}", {more} }}'

    def test_needs_the_authority(self, tmp_path: Path):
        pair = make_pair(tmp_path, "server")
        with serving(tmp_path / "nats", self.settings(pair)) as servers:
            check_connects(servers.addresses, login(nats_ca=pair.cert))
            told = refused(servers.addresses)
            assert "CERTIFICATE_VERIFY_FAILED" in told
            assert "with WOLFSTREAM_NATS_CA" in told

    def test_shows_the_certificate_that_servers_ask_for(self, tmp_path: Path):
        pair = make_pair(tmp_path, "both")
        mutual = self.settings(pair, f'ca_file: "{pair.cert}", verify: true')
        with serving(tmp_path / "nats", mutual) as servers:
            files = {"nats_cert": pair.cert, "nats_key": pair.key}
            check_connects(servers.addresses, login(nats_ca=pair.cert, **files))
            assert "WOLFSTREAM_NATS_CERT" in refused(servers.addresses, login(nats_ca=pair.cert))


class TestNkeys:
    nkeys = pytest.importorskip("nkeys")

    def seed(self, folder: Path) -> tuple[Path, str]:
        """Return a file with a new seed of a user, and its public key."""
        content = self.nkeys.encode_seed(os.urandom(32), self.nkeys.PREFIX_BYTE_USER)
        file = folder / "seed"
        file.write_bytes(content)
        return file, self.nkeys.from_seed(bytearray(content)).public_key.decode()

    def test_sign_for_a_user(self, tmp_path: Path):
        file, public = self.seed(tmp_path)
        known = f"authorization {{ users: [{{ nkey: {public} }}] }}"
        with serving(tmp_path / "nats", known) as servers:
            check_connects(servers.addresses, login(nats_nkey_seed=file))
            assert "WOLFSTREAM_NATS_PASSWORD_FILE" in refused(servers.addresses)

    def test_are_checked_at_the_start(self, tmp_path: Path):
        file = tmp_path / "seed"
        file.write_text("no seed")
        assert "is not the seed of an nkey" in refused(["nats://x:1"], login(nats_nkey_seed=file))


class Tokens:
    """An operator, an account with storage, and users whose tokens (JWT) the account signs."""

    nkeys = pytest.importorskip("nkeys")

    def __init__(self) -> None:
        keys = self.nkeys
        self._operator = self._pair(keys.PREFIX_BYTE_OPERATOR)
        self._account = self._pair(keys.PREFIX_BYTE_ACCOUNT)
        system = self._pair(keys.PREFIX_BYTE_ACCOUNT)
        unlimited = {"subs": -1, "conn": -1, "data": -1, "payload": -1, "imports": -1}
        stored = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
        limits = {system: unlimited, self._account: {**unlimited, "exports": -1, **stored}}
        accounts = [
            f"{self._name(one)}: "
            + self._signed(self._operator, self._name(one), {"type": "account", "limits": given})
            for one, given in limits.items()
        ]
        operator = self._signed(self._operator, self._name(self._operator), {"type": "operator"})
        self.settings = (
            f"operator: {operator}\nsystem_account: {self._name(system)}\nresolver: MEMORY\n"
            f"resolver_preload {{ {', '.join(accounts)} }}"
        )

    def credentials(self, seconds: float = 3600.0) -> str:
        """Return the content of a `.creds` file for a new user, whose token expires."""
        user = self._pair(self.nkeys.PREFIX_BYTE_USER)
        limits = {"subs": -1, "data": -1, "payload": -1}
        token = self._signed(
            self._account, self._name(user), {"type": "user", **limits}, int(time.time() + seconds)
        )
        seed = user.seed.decode()
        return (
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )

    def _pair(self, kind: int) -> Any:
        seed = self.nkeys.encode_seed(os.urandom(32), kind)
        return self.nkeys.from_seed(bytearray(seed))

    def _name(self, pair: Any) -> str:
        name: str = pair.public_key.decode()
        return name

    def _signed(self, by: Any, subject: str, claims: dict[str, Any], expires: int = 0) -> str:
        body = {
            "jti": os.urandom(8).hex(),
            "iat": int(time.time()),
            "iss": self._name(by),
            "name": "test",
            "sub": subject,
            "nats": {**claims, "version": 2},
            **({"exp": expires} if expires else {}),
        }
        parts = [{"typ": "JWT", "alg": "ed25519-nkey"}, body]
        text = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
        return f"{text}.{_encoded(by.sign(text.encode()))}"


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


class TestCredentials:
    def test_are_renewed_when_they_expire(self, tmp_path: Path, caplog: pytest.LogCaptureFixture):
        tokens, file = Tokens(), tmp_path / "user.creds"
        file.write_text(tokens.credentials(seconds=4.0))
        with serving(tmp_path / "nats", tokens.settings) as servers:
            who = login(nats_credentials=file)
            with closing(connect(servers.addresses, _BYTES, _BYTES, who)) as nats:
                renewed = tmp_path / "renewed"
                renewed.write_text(tokens.credentials())
                renewed.rename(file)
                wait_for(lambda: "expired" in caplog.text.lower())
                wait_for(lambda: nats.connected)
                nats.run(nats.call("STREAM.INFO.WOLFSTREAM_STATES", {}), 10)

    def test_are_checked_at_the_start(self, tmp_path: Path):
        """The library reads a file without a token for ever."""
        file = tmp_path / "user.creds"
        file.write_text("nothing")
        assert "is no file of credentials" in refused(["nats://x:1"], login(nats_credentials=file))


class TestPermissions:
    @pytest.mark.parametrize(
        "permissions",
        [
            'publish: { deny: "$JS.API.STREAM.INFO.*" }',
            'publish: { deny: "$JS.API.STREAM.CREATE.*" }',
            'subscribe: { deny: "_INBOX.>" }',
        ],
    )
    def test_that_are_missing_are_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, permissions: str
    ):
        monkeypatch.setattr(NatsConnection.ask, "__defaults__", (None, 1.0))
        user = f"{{ user: a, password: b, permissions {{ {permissions} }} }}"
        with serving(tmp_path, f"authorization {{ users: [{user}] }}") as servers:
            told = refused(users(servers, "a:b"))
            assert "permissions violation" in told
            assert permissions.split('"')[1][:7].lower() in told.lower()

    def test_of_an_account_without_storage_are_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(streams, "_RETRY_SECONDS", 2.0)
        account = "accounts { A { users: [{ user: a, password: b }] } }"
        with serving(tmp_path, account) as servers:
            assert "enable JetStream for the servers and for this user's account" in refused(
                users(servers, "a:b")
            )


class ConfiguredServers:
    """Three servers of `docker/nats.fleet.conf`."""

    def __init__(self, folder: Path) -> None:
        self.pair = make_pair(folder, "nats")
        self.ports, routes = [free_port() for _ in range(3)], [free_port() for _ in range(3)]
        self.log = folder / "log"
        addresses = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
        self._processes = []
        for number, (port, route) in enumerate(zip(self.ports, routes, strict=True)):
            given = {
                "NATS_NAME": f"n{number}",
                "NATS_LISTEN": f"127.0.0.1:{port}",
                "NATS_CLUSTER_LISTEN": f"127.0.0.1:{route}",
                "NATS_ROUTES": f"[{addresses}]",
                "NATS_STORE": str(folder / str(number)),
                "NATS_STORE_BYTES": "10GB",
                "NATS_CERT": str(self.pair.cert),
                "NATS_KEY": str(self.pair.key),
                "NATS_CA": str(self.pair.cert),
                "NATS_PASSWORD": "secret",
            }
            with self.log.open("ab") as log:
                command = [PROGRAM, "-c", str(ROOT / "docker" / "nats.fleet.conf")]
                environment = {**os.environ, **given}
                process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            self._processes.append(process)

    @property
    def addresses(self) -> list[str]:
        return [f"tls://127.0.0.1:{port}" for port in self.ports]

    def close(self) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGKILL)
            process.wait(30)


def test_configuration_file_lets_a_fleet_do_what_it_needs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """And nothing else: not to read what others say, nor to delete a stream."""
    with ExitStack() as stack, caplog.at_level(logging.WARNING, "wolfstream"):
        servers = stack.enter_context(closing(ConfiguredServers(tmp_path)))
        wait_for(lambda: all(map(listens, servers.ports)))
        (tmp_path / "password").write_text("secret")
        who = login(
            nats_user="wolfstream",
            nats_password_file=tmp_path / "password",
            nats_ca=servers.pair.cert,
        )
        nats = connect(servers.addresses, _BYTES, _BYTES, who)
        (tmp_path / "data").mkdir()
        fleet = open_fleet(nats, tmp_path / "data")
        stack.callback(fleet.storage.close)
        use(fleet)
        with keys_at(servers.addresses, who) as keys, keys.changing():
            pass
        assert "permissions violation" not in caplog.text
        info = nats.run(nats.call("STREAM.INFO.WOLFSTREAM_STATES", {}), 10)
        assert info["config"]["num_replicas"] == 3
        with pytest.raises(Exception, match="permissions violation"):
            nats.run(nats.ask("$JS.API.STREAM.DELETE.WOLFSTREAM_STATES", b"{}", seconds=1.0), 10)


def use(fleet: Any) -> None:
    """Do what replicas do with a fleet's storage."""
    fleet.catalogue.watch()
    with fleet.catalogue.creating("m", {}, "e" * 16) as term:
        pass
    assert fleet.catalogue.find("m").number == term.model
    fleet.snapshots.sequences(term.model)
    fleet.catalogue.delete(term)
    assert fleet.catalogue.find("m") is None
