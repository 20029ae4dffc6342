"""Pages of another site in a real browser, and the site that they come from."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ATTACK = Path(__file__).with_name("attack.js").read_text()
# Every name leads to this machine, as that of an attacker would after a rebinding. The server must
# not depend on what newer browsers do themselves against pages that look for it.
FLAGS = (
    "--host-resolver-rules=MAP * 127.0.0.1",
    "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests",
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


class _Handler(BaseHTTPRequestHandler):
    """A page without content; and redirections that keep the method and the body."""

    victim = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>attack</title><body>")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        model = self.path.rpartition("/")[2]
        self.send_response(307)
        self.send_header("location", f"{self.victim}/v1/models/{model}/samples")
        self.send_header("access-control-allow-origin", "*")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def foreign_site(victim: str) -> Iterator[int]:
    """A site on this machine; its port. victim: where its redirections lead."""
    handler = type("Handler", (_Handler,), {"victim": victim})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            yield site.server_port
        finally:
            site.shutdown()
            thread.join()
