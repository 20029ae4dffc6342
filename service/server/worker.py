"""Runs a worker: `python -m wolfstream.service.server.worker CHANNEL LISTENER`.

The arguments are the file descriptors of two inherited sockets. The process ends with its leader,
even if the leader is killed.
"""

import ctypes
import signal
import socket
import sys

from wolfstream.solver.compile_cache import use_compile_cache

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve until SIGTERM, or until the leader is gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    use_compile_cache()
    # Imported only now: numba reads the cache's location when it is imported.
    from wolfstream.service.cluster.processes import read_settings
    from wolfstream.service.diagnostics.logging_setup import set_up_logging
    from wolfstream.service.server.worker_server import serve_worker

    channel, listener = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    settings, forward, keys = read_settings(channel)
    set_up_logging(settings.log_format)
    serve_worker(settings, channel, listener, forward, keys)


if __name__ == "__main__":
    main()
