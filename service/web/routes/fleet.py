"""The route of the fleet: what this replica knows of the others and of itself."""

from fastapi import FastAPI, Request, Response

from service.replicas.director import Director
from service.web.formats.body import respond
from service.web.formats.wire import JSON


def add_fleet(app: FastAPI, director: Director) -> None:
    """Add the route, which needs a key for all models."""

    @app.get("/v1/fleet", include_in_schema=False)  # which describes every server
    async def describe_fleet(request: Request) -> Response:
        """The living replicas as this one hears them: what each leads, since when, and follows."""
        return respond(request, JSON, director.describe())
