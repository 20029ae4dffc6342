"""Reads from the settings how this server logs in to NATS."""

import contextlib
import ssl

from wolfstream.service.errors import StartupError
from wolfstream.service.fleet.login import Login
from wolfstream.service.settings import Settings
from wolfstream.service.web.tls import client_tls


def nats_login(settings: Settings) -> Login:
    """Return the credentials for NATS servers. Raises StartupError."""
    ca, cert, key = settings.nats_ca, settings.nats_cert, settings.nats_key
    if settings.nats_user and settings.nats_password_file is None:
        raise StartupError("WOLFSTREAM_NATS_USER is given without WOLFSTREAM_NATS_PASSWORD_FILE")
    tls = client_tls(ca, cert, key, "WOLFSTREAM_NATS_") if ca or cert or key else None

    def renew_tls() -> None:
        with contextlib.suppress(OSError, ssl.SSLError):  # the previous certificates stay in use
            if tls is not None and ca is not None:
                tls.load_verify_locations(ca)
            if tls is not None and cert is not None:
                tls.load_cert_chain(cert, key)

    return Login(
        settings.nats_user,
        settings.nats_password_file,
        settings.nats_credentials,
        settings.nats_nkey_seed,
        tls,
        renew_tls,
    )
