"""TLS by files: a server with a certificate, and starts that say what is wrong with one."""

import json
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from websockets.sync.client import connect

from tests.service.process import ServerProcess
from wolfstream.service.client.errors import Unsuitable
from wolfstream.service.client.sync import Client
from wolfstream.service.errors import StartupError
from wolfstream.service.server.tls import check_advertised, check_tls, client_tls, replica_tls
from wolfstream.service.settings import Settings


class Pair(NamedTuple):
    cert: Path
    key: Path


def make_pair(
    folder: Path, name: str, encryption: KeySerializationEncryption | None = None
) -> Pair:
    """A key and its self-signed certificate for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    itself = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    cert = (
        x509.CertificateBuilder(itself, itself, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, SHA256())
    )
    pair = Pair(folder / f"{name}.crt", folder / f"{name}.key")
    pair.cert.write_bytes(cert.public_bytes(Encoding.PEM))
    pair.key.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())
    )
    return pair


class TlsServer(ServerProcess):
    """A server that speaks TLS, known to its clients by its own certificate."""

    def __init__(self, data: Path, pair: Pair, **settings: object) -> None:
        super().__init__(data, tls_cert=pair.cert, tls_key=pair.key, **settings)
        self.url = self.url.replace("http", "https", 1)
        self.context = ssl.create_default_context(cafile=str(pair.cert))

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", verify=self.context).status_code == 200
        except httpx.TransportError:
            return False


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return make_pair(tmp_path_factory.mktemp("tls"), "server")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, pair: Pair) -> Iterator[TlsServer]:
    with closing(TlsServer(tmp_path_factory.mktemp("server") / "data", pair)) as running:
        running.start()
        yield running


def test_http_and_websocket_over_tls(server: TlsServer) -> None:
    with httpx.Client(base_url=server.url, verify=server.context) as client:
        assert client.put("/v1/models/m").status_code == 201
        samples = {"x": [[0], [1], [2]], "y": [0, 1, 0]}
        assert client.post("/v1/models/m/samples", json=samples).json()["learned"] == 3
    url = server.url.replace("https", "wss", 1)
    with connect(f"{url}/v1/models/m/stream", ssl=server.context) as stream:
        assert json.loads(stream.recv(10))["hello"]["sequence"] == 3


def test_nothing_is_said_in_the_clear(server: TlsServer) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(server.url.replace("https", "http", 1) + "/readyz")


def test_unknown_certificate_is_not_trusted(server: TlsServer) -> None:
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(server.url + "/readyz")


def test_the_client_of_python_over_tls(server: TlsServer, pair: Pair) -> None:
    for verify in (pair.cert, str(pair.cert), server.context, False):
        with Client(server.url, verify=verify) as client:
            client.create("c")
            at = client.learn("c", [[0.0], [1.0]], [0, 1]).sequence
            with client.stream("c") as stream:
                stream.learn([2.0], 1)
                assert [result.sequence for result in stream] == [at + 1]
    with Client(server.url) as client:
        with pytest.raises(Unsuitable, match="`verify` names the certificates"):
            client.models()
        with pytest.raises(Unsuitable, match="`verify` names"), client.stream("c"):
            pass


class TestReplicas:
    """What a replica shows to the others, and whom it trusts."""

    def check(self, pair: Pair, advertise: str, ca: Path | None = None) -> None:
        settings = Settings(
            advertise=advertise, tls_cert=pair.cert, tls_key=pair.key, fleet_ca=ca or pair.cert
        )
        check_advertised(settings, replica_tls(settings))

    def test_trust_an_authority_of_their_own(self, pair: Pair):
        self.check(pair, "https://127.0.0.1:8000")

    def test_start_only_with_a_certificate_that_the_others_can_verify(
        self, pair: Pair, tmp_path: Path
    ):
        another = make_pair(tmp_path, "another").cert
        with pytest.raises(StartupError, match=r"name the authority .* with WOLFSTREAM_FLEET_CA"):
            self.check(pair, "https://127.0.0.1:8000", another)
        with pytest.raises(StartupError, match=r"cannot verify .* IP address mismatch"):
            self.check(pair, "https://10.0.0.1:8000")

    def test_know_nothing_of_a_certificate_in_front_of_them(self, pair: Pair):
        self.check(pair, "http://10.0.0.1:8000")
        settings = Settings(advertise="https://10.0.0.1:8000")
        check_advertised(settings, replica_tls(settings))

    def test_name_the_file_that_is_wrong(self, pair: Pair, tmp_path: Path):
        missing = tmp_path / "missing"
        for files in ((missing, None, None), (None, missing, pair.key)):
            with pytest.raises(StartupError, match=f"{missing} cannot be read"):
                client_tls(*files, "WOLFSTREAM_FLEET_")
        with pytest.raises(StartupError, match="WOLFSTREAM_FLEET_CERT is given without"):
            client_tls(None, pair.cert, None, "WOLFSTREAM_FLEET_")


class TestFiles:
    def test_a_pair_that_fits_is_fine_and_so_is_none(self, pair: Pair):
        check_tls(*pair)
        check_tls(None, None)

    def test_one_needs_the_other(self, pair: Pair):
        with pytest.raises(StartupError, match="--tls-cert is given without --tls-key"):
            check_tls(pair.cert, None)
        with pytest.raises(StartupError, match="--tls-key is given without --tls-cert"):
            check_tls(None, pair.key)

    def test_a_missing_file_is_named(self, pair: Pair, tmp_path: Path):
        absent = tmp_path / "absent"
        with pytest.raises(StartupError, match=f"certificate {absent} cannot be read: No such"):
            check_tls(absent, pair.key)
        with pytest.raises(StartupError, match=f"key {absent} cannot be read: No such"):
            check_tls(pair.cert, absent)

    def test_the_key_of_another_certificate(self, pair: Pair, tmp_path: Path):
        other = make_pair(tmp_path, "other")
        with pytest.raises(StartupError, match=f"{other.key} is not that of the certificate"):
            check_tls(pair.cert, other.key)

    def test_files_that_are_something_else(self, pair: Pair, tmp_path: Path):
        with pytest.raises(StartupError, match=f"{pair.key} holds no certificate"):
            check_tls(pair.key, pair.cert)
        with pytest.raises(StartupError, match=f"{pair.cert} holds no private key"):
            check_tls(pair.cert, pair.cert)
        damaged = tmp_path / "damaged.crt"
        damaged.write_text("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
        with pytest.raises(StartupError, match="cannot be used"):
            check_tls(damaged, pair.key)

    def test_an_encrypted_key_is_not_asked_for_its_password(self, tmp_path: Path):
        locked = make_pair(tmp_path, "locked", BestAvailableEncryption(b"secret"))
        with pytest.raises(StartupError, match="is encrypted"):
            check_tls(*locked)

    def test_a_start_says_it_in_one_line(self, pair: Pair, tmp_path: Path, commands: Path):
        command = [commands / "wolfstream", "serve", "--data", str(tmp_path / "data")]
        done = subprocess.run(
            [*command, "--tls-cert", str(pair.cert), "--tls-key", "absent.key"],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 1
        told = "Error: the private key absent.key cannot be read: No such file or directory"
        assert done.stderr.splitlines()[-1] == told
        assert not (tmp_path / "data").exists()


def test_the_health_check_of_the_container_speaks_tls(pair: Pair) -> None:
    class Ready(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/readyz" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    script = Path(__file__).parents[3] / "docker" / "healthcheck.py"
    with ThreadingHTTPServer(("127.0.0.1", 0), Ready) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        given = {"WOLFSTREAM_PORT": str(server.server_port), "WOLFSTREAM_TLS_CERT": "any"}
        done = subprocess.run([sys.executable, "-I", script], env=os.environ | given, timeout=30)
        server.shutdown()
        thread.join()
    assert done.returncode == 0
