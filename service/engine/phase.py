"""The phases of a server: recovering, ready, then draining or broken."""

from service.errors import NotReady


class Phase:
    """The phase of one server. One thread at a time changes it; any thread may read it.

    text: what the server is doing: "ready", or what keeps it from that.
    accepting: whether requests are taken: everything is recovered, and nothing has ended it.
    """

    def __init__(self) -> None:
        self.text = "starting"
        self.accepting = False
        self._ended = False

    def report(self, text: str) -> None:
        """Name what is being done before requests are taken."""
        if not self._ended:
            self.text = text

    def open(self) -> None:
        """Take requests from now on, unless the end has come before."""
        if not self._ended:
            self.text, self.accepting = "ready", True

    def end(self, text: str) -> None:
        """Take no requests any more; the first reason counts."""
        self.accepting = False
        if not self._ended:
            self.text, self._ended = text, True

    def check(self) -> None:
        """Raise NotReady unless requests are taken."""
        if not self.accepting:
            raise NotReady(f"the server is {self.text}")
