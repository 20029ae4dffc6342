"""Logs in to NATS, and connects a replica to its fleet.

Import it only on a server with a fleet, because it needs packages of an optional extra.
"""

import contextlib
import logging
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

from wolfstream.service.calls.table import VIEWS
from wolfstream.service.cluster.connections import client_of_replicas
from wolfstream.service.cluster.feeds import Feeds
from wolfstream.service.cluster.followed_models import FollowedModels
from wolfstream.service.cluster.membership import Membership
from wolfstream.service.cluster.neighbours import Neighbours
from wolfstream.service.cluster.peers import SILENT_SECONDS, Peers
from wolfstream.service.cluster.roles import Roles
from wolfstream.service.cluster.served_views import ServedViews
from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import StartupError
from wolfstream.service.fleet.api_keys import FleetKeys
from wolfstream.service.fleet.connecting import Login
from wolfstream.service.fleet.flushing import warn_of_flushing
from wolfstream.service.fleet.opening import Fleet, connect, open_fleet
from wolfstream.service.fleet.streams import grow_streams
from wolfstream.service.server.tls import check_advertised, client_tls, replica_tls
from wolfstream.service.settings import Settings


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


def check_settings(settings: Settings, loads: Mapping[str, Path], recover: bool) -> None:
    """Raise StartupError for settings that a replica of a fleet cannot have."""
    if not settings.advertise:
        raise StartupError(
            "the other replicas must reach this one: name its address with --advertise"
        )
    check_advertised(settings, replica_tls(settings))
    if settings.threads > 1:
        raise StartupError(
            "the replicas of a fleet learn with one thread each, so that all compute the same: "
            "leave --threads out"
        )
    if loads or recover:
        raise StartupError(
            "a fleet has its models already: upload one with PUT /v1/models/NAME/state instead of "
            "--load, and leave --recover out"
        )


@contextlib.contextmanager
def fleet_connection(settings: Settings) -> Iterator[Fleet]:
    """Open a connection to NATS, and the fleet's storage on it. Raises StartupError."""
    # httpx logs every forwarded call at level INFO.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    bounds = settings.fleet_log_bytes, settings.fleet_state_bytes
    nats = connect(settings.fleet, *bounds, nats_login(settings))
    try:
        grow_streams(nats, settings.fleet_log_bytes, settings.fleet_state_bytes)
        warn_of_flushing(settings.fleet_monitors)
        fleet = open_fleet(nats, settings.data, settings.snapshots)
        fleet.catalogue.watch()
        yield fleet
    finally:
        nats.close()


def create_membership(roles: Roles, engine: Engine, feeds: Feeds, settings: Settings) -> Membership:
    """Return the exchange of views with the other replicas. Raises StartupError."""
    tls = replica_tls(settings)
    peers = Peers(VIEWS, client_of_replicas(tls, SILENT_SECONDS))
    return Membership(
        roles,
        FollowedModels(engine, roles, settings, peers),
        ServedViews(engine, feeds, roles, roles.secret),
        Neighbours(roles, client_of_replicas(tls)),
        tls,
    )


def watched_keys(fleet: Fleet) -> FleetKeys:
    """Return the fleet's API keys, and watch them for changes. Raises KeysError."""
    keys = FleetKeys(fleet.nats)
    keys.watch()
    return keys
