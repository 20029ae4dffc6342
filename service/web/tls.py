"""The check of the TLS certificate and key, before anything starts."""

import ssl
from pathlib import Path

from wolfstream.service.errors import StartupError


class _Encrypted(Exception):
    """The key is encrypted, and a server cannot ask anybody for the password."""


def check_tls(cert: Path | None, key: Path | None) -> None:
    """Raise StartupError unless both are absent, or both are valid and belong together."""
    if cert is None and key is None:
        return
    if cert is None or key is None:
        given, missing = (
            ("--tls-key", "--tls-cert") if cert is None else ("--tls-cert", "--tls-key")
        )
        raise StartupError(f"{given} is given without {missing}; give both")
    _check_content(cert, b"-----BEGIN CERTIFICATE-----", "certificate")
    _check_content(key, b"PRIVATE KEY-----", "private key")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, _refuse_to_ask)
    except _Encrypted:
        raise StartupError(
            f"the key {key} is encrypted; decrypt it (openssl pkey), and protect the file instead"
        ) from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            text = f"the key {key} is not that of the certificate {cert}"
        else:
            text = f"the certificate {cert} and the key {key} cannot be used: {error}"
        raise StartupError(text) from None


def _check_content(path: Path, mark: bytes, what: str) -> None:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StartupError(f"the {what} {path} cannot be read: {error.strerror}") from None
    if mark not in content:
        raise StartupError(f"{path} holds no {what} in PEM")


def _refuse_to_ask() -> str:
    raise _Encrypted
