"""Exit with 0 where the server of this container is ready, with 1 where it is not."""

import http.client
import os
import ssl
import sys

_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # a server on all addresses is asked on this one


def main() -> int:
    """Ask /readyz where the environment says that the server listens."""
    host = os.environ.get("WOLFSTREAM_HOST", "127.0.0.1")
    port = int(os.environ.get("WOLFSTREAM_PORT", "8000"))
    connection: http.client.HTTPConnection
    if os.environ.get("WOLFSTREAM_TLS_CERT"):
        # The certificate names the server as others see it; this is the same container.
        unchecked = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(
            _LOOPBACK.get(host, host), port, timeout=4, context=unchecked
        )
    else:
        connection = http.client.HTTPConnection(_LOOPBACK.get(host, host), port, timeout=4)
    try:
        connection.request("GET", "/readyz")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        print(f"no answer from {host}:{port}: {error}")
        return 1
    print(f"/readyz answers {status}")
    return 0 if status == 200 else 1


if __name__ == "__main__":
    sys.exit(main())
