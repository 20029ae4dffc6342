"""The phases of a server: recovering, compiling, ready, then draining or broken."""

from service.errors import ModelBroken, NotReady
from service.model.live import Model


class Phase:
    """The phase of one server. One thread at a time changes it; any thread may read it.

    text: what the server is doing: "ready", or what keeps it from that.
    accepting: whether requests are taken: everything is recovered, and nothing has ended it.
    ready: whether they are worked on at once: what they need is compiled as well.
    failed: whether the writer has ended by an error: predictions go on, nothing is learned.
    """

    def __init__(self) -> None:
        self.text = "starting"
        self.accepting = False
        self.ready = False
        self.failed = False
        self._ended = False

    def report(self, text: str) -> None:
        """Name what is being done before requests are taken."""
        if not self._ended:
            self.text = text

    def accept(self) -> None:
        """Take requests from now on, which may wait until `open`; unless the end came before."""
        self.accepting = not self._ended

    def open(self) -> None:
        """Work on requests from now on, unless the end came before."""
        if not self._ended:
            self.text, self.accepting, self.ready = "ready", True, True

    def end(self, text: str) -> None:
        """Take no requests any more; the first reason counts."""
        self.accepting = self.ready = self.failed = False
        if not self._ended:
            self.text, self._ended = text, True

    def fail(self, text: str) -> None:
        """Learn nothing any more; what is published goes on being served until the end."""
        if not self._ended:
            self.accepting, self.ready, self.failed, self.text = False, False, True, text

    def check(self) -> None:
        """Raise NotReady unless requests are taken."""
        if not self.accepting:
            raise NotReady(f"the server is {self.text}")

    def check_usable(self, model: Model) -> None:
        """Raise NotReady unless requests are taken, ModelBroken if the model does not learn."""
        self.check()
        if model.broken:
            raise ModelBroken(f"model {model.name!r}: {model.broken}")

    def check_readable(self) -> None:
        """Raise NotReady unless what is published is served."""
        if not self.failed:
            self.check()
