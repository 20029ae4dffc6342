"""Warns of NATS servers that acknowledge messages before they flush them to disk.

Only a server's monitoring port shows this setting.
"""

import logging
from collections.abc import Iterator, Sequence

import httpx

logger = logging.getLogger(__name__)

_SECONDS = 5.0


def warn_of_flushing(monitors: Sequence[str]) -> None:
    """Log a warning for each server that does not flush each message, or does not respond.

    Args:
        monitors: addresses of monitoring ports, such as http://a:8222.
    """
    for monitor in monitors:
        for warning in _warnings(monitor):
            logger.warning("%s", warning)


def _warnings(monitor: str) -> Iterator[str]:
    try:
        response = httpx.get(f"{monitor}/jsz", timeout=_SECONDS, trust_env=False)
        config = response.raise_for_status().json()["config"]
        always, interval = config.get("sync_always", False), config.get("sync_interval", 0) / 1e9
    except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
        yield (
            f"the monitoring port {monitor} does not tell how its NATS server flushes: "
            f"{error or type(error).__name__}; give its `http` port, or leave it out"
        )
        return
    if not always:
        yield (
            f"the NATS server at {monitor} flushes its files every {interval:g} s: a loss of "
            "power of all its machines at once may take what was acknowledged since; set "
            "`sync_interval: always` in its jetstream settings"
        )
