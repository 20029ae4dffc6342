"""Checks TLS certificates and keys before anything starts, and configures TLS clients."""

import ssl
from pathlib import Path
from urllib.parse import urlsplit

from wolfstream.service.errors import StartupError
from wolfstream.service.settings import Settings


class _EncryptedKey(Exception):
    """The key is encrypted, and a server has nobody to ask for the password."""


def check_tls(cert: Path | None, key: Path | None, prefix: str = "--tls-") -> None:
    """Check a certificate and its key; both may be absent.

    Args:
        cert: the certificate.
        key: its private key.
        prefix: beginning of the names of the two settings, which end in "cert" and "key".

    Raises StartupError if they are invalid, or do not belong together.
    """
    if cert is None and key is None:
        return
    if cert is None or key is None:
        words = ("key", "cert") if cert is None else ("cert", "key")
        given, missing = (f"{prefix}{word.upper() if prefix.isupper() else word}" for word in words)
        raise StartupError(f"{given} is given without {missing}; give both")
    _check_content(cert, b"-----BEGIN CERTIFICATE-----", "certificate")
    _check_content(key, b"PRIVATE KEY-----", "private key")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, _refuse_to_ask)
    except _EncryptedKey:
        raise StartupError(
            f"the key {key} is encrypted; decrypt it (openssl pkey), and protect the file instead"
        ) from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            text = f"the key {key} is not that of the certificate {cert}"
        else:
            text = f"the certificate {cert} and the key {key} cannot be used: {error}"
        raise StartupError(text) from None


def client_tls(ca: Path | None, cert: Path | None, key: Path | None, prefix: str) -> ssl.SSLContext:
    """Return the TLS context of a client.

    Args:
        ca: the certificates of the authorities that it trusts; None for those of the system.
        cert: its own certificate, if it has one.
        key: the private key of that certificate.
        prefix: beginning of the names of the three settings, which end in "ca", "cert" and "key".

    Raises StartupError.
    """
    check_tls(cert, key, prefix)
    if ca is not None:
        _check_content(ca, b"-----BEGIN CERTIFICATE-----", "certificate")
    try:
        context = ssl.create_default_context(cafile=ca)
    except ssl.SSLError as error:
        raise StartupError(f"the certificates {ca} cannot be used: {error}") from None
    if cert is not None:
        context.load_cert_chain(cert, key)
    return context


def replica_tls(settings: Settings) -> ssl.SSLContext:
    """Return the TLS context with which this replica connects to others. Raises StartupError."""
    files = settings.fleet_ca, settings.fleet_cert, settings.fleet_key
    return client_tls(*files, "WOLFSTREAM_FLEET_")


def check_advertised(settings: Settings, tls: ssl.SSLContext) -> None:
    """Raise StartupError if the other replicas could not verify this one's certificate.

    It assumes that they trust the same authorities. If a proxy terminates TLS, its certificate is
    not checked.

    Args:
        settings: the server's settings.
        tls: the context with which this replica connects to others.
    """
    address = urlsplit(settings.advertise)
    if settings.tls_cert is None or settings.tls_key is None or address.scheme != "https":
        return
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(settings.tls_cert, settings.tls_key)
    try:
        _shake_hands(server, tls, address.hostname or "")
    except ssl.SSLCertVerificationError as error:
        raise StartupError(
            f"the other replicas cannot verify the certificate {settings.tls_cert} at "
            f"{settings.advertise}: {error.verify_message}; name the authority that has signed it "
            "with WOLFSTREAM_FLEET_CA, and a host that it is for with --advertise"
        ) from None


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> None:
    """Perform a handshake between a client and a server in memory. Raises SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        for end in list(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)


def _check_content(path: Path, mark: bytes, what: str) -> None:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StartupError(f"the {what} {path} cannot be read: {error.strerror}") from None
    if mark not in content:
        raise StartupError(f"{path} holds no {what} in PEM")


def _refuse_to_ask() -> str:
    raise _EncryptedKey
