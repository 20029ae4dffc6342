"""The phases of a server: recovering, compiling, ready, then draining or broken."""

from wolfstream.service.errors import ModelBroken, NotReady
from wolfstream.service.model.live import Model


class Phase:
    """The phase of one server. One thread at a time changes it; any thread may read it.

    Attributes:
        text: "ready", or the reason why the server is not.
        accepting: whether requests are accepted: all models are recovered, and the server is not
            ending.
        ready: whether they are handled at once, because what they run is compiled as well.
        failed: whether the writer has failed: predictions go on, but nothing is learned.
    """

    def __init__(self) -> None:
        self.text = "starting"
        self.accepting = False
        self.ready = False
        self.failed = False
        self._ended = False  # `text` is final

    def report(self, text: str) -> None:
        """Set the text, unless the server is ending."""
        if not self._ended:
            self.text = text

    def accept(self) -> None:
        """Accept requests, which may have to wait for `open`; do nothing after `end`."""
        self.accepting = not self._ended

    def open(self) -> None:
        """Handle requests at once from now on; do nothing after `end`."""
        if not self._ended:
            self.text, self.accepting, self.ready = "ready", True, True

    def end(self, text: str) -> None:
        """Accept no more requests. The first reason stays."""
        self.accepting = self.ready = self.failed = False
        if not self._ended:
            self.text, self._ended = text, True

    def fail(self, text: str) -> None:
        """Stop learning, but keep answering predictions until the end."""
        if not self._ended:
            self.accepting, self.ready, self.failed, self.text = False, False, True, text

    @property
    def recovering(self) -> bool:
        """Whether models are being recovered, after which requests will be accepted."""
        return not (self.accepting or self.failed or self._ended)

    def check(self) -> None:
        """Raise NotReady unless requests are accepted."""
        if not self.accepting:
            raise NotReady(f"the server is {self.text}")

    def check_usable(self, model: Model) -> None:
        """Raise NotReady unless requests are accepted, ModelBroken if the model cannot learn."""
        self.check()
        if model.broken:
            raise ModelBroken(f"model {model.name!r}: {model.broken}")

    def check_readable(self) -> None:
        """Raise NotReady unless predictions are answered."""
        if not self.failed:
            self.check()
