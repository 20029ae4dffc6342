"""The endpoint of websocket streams, and the set of a server's open streams."""

import asyncio

from fastapi import WebSocket

from wolfstream.service.access.key_ring import KeyRing
from wolfstream.service.calls.table import BY_NAME
from wolfstream.service.engine.idempotency import read_producer
from wolfstream.service.engine.serving import ServingEngine
from wolfstream.service.errors import Refusal
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.formats.problems import problem_response
from wolfstream.service.web.formats.query import check_query
from wolfstream.service.web.routes.endpoints import Endpoints, by_name
from wolfstream.service.web.routes.session import GOING_AWAY, NOT_ALLOWED, Session


class Streams:
    """The open sessions of a server, which it can end."""

    def __init__(self) -> None:
        self._open: set[Session] = set()

    def __len__(self) -> int:
        return len(self._open)

    async def serve(self, session: Session) -> None:
        """Run a session to its end."""
        self._open.add(session)
        try:
            await session.run()
        finally:
            self._open.discard(session)

    def end_revoked(self, ring: KeyRing) -> None:
        """Close with 1008 the sessions whose key is no longer in force."""
        for session in self._open:
            if not ring.holds(session.grant):
                session.end(NOT_ALLOWED, "the key is no longer in force")

    async def drain(self) -> None:
        """Read no more frames, answer those that were read, and close all sessions with 1001."""
        sessions = list(self._open)
        for session in sessions:
            session.end(GOING_AWAY, "the server is shutting down")
        await asyncio.gather(*(session.ended.wait() for session in sessions))


def stream_endpoints(
    engine: ServingEngine, settings: Settings, streams: Streams, memory: MemoryBudget
) -> Endpoints:
    """Return the endpoint of streams."""

    async def stream(websocket: WebSocket, name: str) -> None:
        """Learn and predict over one connection."""
        try:
            check_query(websocket.scope["query_string"], BY_NAME["stream"].query)
            model = engine.model(name)
            producer = read_producer(websocket.query_params.get("producer"))
        except Refusal as error:
            await websocket.send_denial_response(problem_response(error, websocket.url.path))
            return
        grant = websocket.state.grant
        await streams.serve(Session(websocket, engine, model, grant, settings, memory, producer))

    return by_name(stream)
