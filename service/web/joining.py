"""A replica's way into its fleet.

It is imported where a fleet is asked for: what it needs is an extra.
"""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

from wolfstream.service.calls.table import VIEWS
from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import StartupError
from wolfstream.service.fleet.api_keys import FleetKeys
from wolfstream.service.fleet.flushing import warn_of_flushing
from wolfstream.service.fleet.opening import Fleet, connect, open_fleet
from wolfstream.service.fleet.streams import grow_streams
from wolfstream.service.replicas.connections import client_of_replicas
from wolfstream.service.replicas.followed_models import FollowedModels
from wolfstream.service.replicas.membership import Membership
from wolfstream.service.replicas.neighbours import Neighbours
from wolfstream.service.replicas.peers import SILENT_SECONDS, Peers
from wolfstream.service.replicas.served_views import ServedViews
from wolfstream.service.settings import Settings
from wolfstream.service.views.feeds import Feeds
from wolfstream.service.web.login import login_of
from wolfstream.service.web.roles import Roles
from wolfstream.service.web.tls import check_advertised, tls_of_replicas


def check_settings(settings: Settings, loads: Mapping[str, Path], recover: bool) -> None:
    """Raise StartupError for what a replica of a fleet cannot do."""
    if not settings.advertise:
        raise StartupError(
            "the other replicas must reach this one: name its address with --advertise"
        )
    check_advertised(settings, tls_of_replicas(settings))
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
def joined(settings: Settings) -> Iterator[Fleet]:
    """A connection to the fleet with all that it holds. Raises StartupError."""
    # It has a line for each call that is passed on.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    bounds = settings.fleet_log_bytes, settings.fleet_state_bytes
    nats = connect(settings.fleet, *bounds, login_of(settings))
    try:
        grow_streams(nats, settings.fleet_log_bytes, settings.fleet_state_bytes)
        warn_of_flushing(settings.fleet_monitors)
        fleet = open_fleet(nats, settings.data, settings.snapshots)
        fleet.catalogue.watch()
        yield fleet
    finally:
        nats.close()


def membership_of(roles: Roles, engine: Engine, feeds: Feeds, settings: Settings) -> Membership:
    """Return what a replica serves to the others, and follows of them. Raises StartupError."""
    tls = tls_of_replicas(settings)
    peers = Peers(VIEWS, client_of_replicas(tls, SILENT_SECONDS))
    return Membership(
        roles,
        FollowedModels(engine, roles, settings, peers),
        ServedViews(engine, feeds, roles, roles.secret),
        Neighbours(roles, client_of_replicas(tls)),
        tls,
    )


def keys_of(fleet: Fleet) -> FleetKeys:
    """Return the fleet's API keys, which are watched. Raises KeysError."""
    keys = FleetKeys(fleet.nats)
    keys.watch()
    return keys
