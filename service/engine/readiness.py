"""What requests wait for: the server's readiness, and the code that their rows run."""

import asyncio

from wolfstream.service.engine.phase import Phase
from wolfstream.service.engine.warm_up import WarmUp
from wolfstream.service.errors import NotReady
from wolfstream.service.model.live import Model
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.prepare.named_rows import Rows
from wolfstream.solver.prepare.row_form import AnotherKind
from wolfstream.solver.prepare.schema import Misfit


class Readiness:
    """Requests that the server has accepted wait here until it can work on them.

    Used on the event loop.
    """

    def __init__(self, phase: Phase, warm_up: WarmUp) -> None:
        self._phase = phase
        self._warm_up = warm_up
        # Ready, or never to be.
        self._settled = asyncio.Event()

    @property
    def reached(self) -> bool:
        """Whether requests are handled at once: all is recovered, the default model compiled."""
        return self._phase.ready

    @property
    def complete(self) -> bool:
        """Whether nothing is left to compile, so that no request waits for it."""
        return self._phase.ready and self._warm_up.ended

    @property
    def progress(self) -> str:
        """How much of the code for all kinds of models is compiled; empty once all is."""
        return self._warm_up.progress

    def settle(self) -> None:
        """Let go those who wait: the server is ready, or it ends."""
        self._settled.set()

    async def wait(self) -> None:
        """Wait until the server is ready. Raises NotReady."""
        self._phase.check()
        await self._settled.wait()
        self._phase.check()

    async def compiled(self, model: Model, rows: Rows | None, seconds: float | None = None) -> None:
        """Wait until what a model runs on rows of this kind is compiled.

        It is to be called before such rows are learned or predicted. rows: None for those of the
        kind that the model has learned. Raises NotReady, also after
        so many seconds.
        """
        if self.complete:
            return
        known = model.published.rows.form.sparse
        sparse = known if rows is None else become_sparse(model, rows)
        await self.compiled_for(model.spec, sparse, seconds)

    async def compiled_for(
        self, spec: ModelSpec, sparse: bool, seconds: float | None = None
    ) -> None:
        """Wait until what models of a spec run is compiled; see `compiled`.

        sparse: whether they run it on sparse rows, too.
        """
        if self.complete:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._settled.wait()
                await self._warm_up.wait_for(spec, sparse)
        except TimeoutError:
            raise NotReady(
                f"the server is compiling what this model needs ({self.progress}); try again"
            ) from None
        self._phase.check_readable()


def become_sparse(model: Model, rows: Rows) -> bool:
    """Return whether heads get the rows sparse, as far as is known before they have their turn."""
    try:
        return model.published.rows.form.after(rows).sparse
    except (Misfit, AnotherKind):  # they will be refused
        return False
