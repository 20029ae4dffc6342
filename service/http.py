"""HTTP: the routes, and what they are described to answer."""

import asyncio
from functools import partial
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response, WebSocket
from starlette.datastructures import QueryParams

from service import api
from service.bodies import decoded, decoded_tensors, read_body, receive, respond
from service.docs_page import add_docs
from service.engine import Engine
from service.errors import Invalid, NotReady, Refusal
from service.exposition import add_metrics
from service.guard import Guard
from service.history_routes import add_history
from service.idempotency import header_key, read_producer
from service.inference_routes import add_inference
from service.keys import Grant, KeyRing
from service.names import n_rows
from service.openapi import (
    DESCRIPTION,
    MIN_SEQUENCE,
    NO_BODY,
    TAGS,
    answers,
    completed,
    problems,
    spec_body,
)
from service.prefer import acknowledged, read_preference
from service.problems import add_problems, problem_of, problem_response
from service.refits import Job
from service.requests import Observer, Requests
from service.samples import read_rows, read_samples
from service.settings import Settings
from service.shortcut import Endpoint, Shortcut
from service.stream import Session, Streams
from service.wire import JSON, format_of_body

# A spec is a few hundred bytes.
_SPEC_BYTES = 1 << 16
# Parsing an empty query takes as long as decoding a row.
_NO_QUERY = QueryParams()


class Application(FastAPI):
    """FastAPI, with the routes that it does not serve itself in its OpenAPI."""

    def openapi(self) -> dict[str, Any]:
        """The whole interface."""
        return self.openapi_schema or completed(super().openapi())


def create_app(engine: Engine, settings: Settings, streams: Streams, ring: KeyRing) -> FastAPI:
    """The ASGI application over an engine that someone else starts and stops."""
    app = Application(
        title="wolfstream",
        version=version("wolfstream"),
        description=DESCRIPTION,
        license_info={"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        openapi_tags=TAGS,
        generate_unique_id_function=lambda route: route.name,
        docs_url=None,
        redoc_url=None,
    )
    requests: Requests = {}
    calls = _calls(engine, settings)
    app.add_middleware(Shortcut, calls=calls)
    app.add_middleware(Guard, ring=ring, refuse=problem_response)
    app.add_middleware(
        Observer,
        requests=requests,
        which=settings.log_requests,
        is_model=lambda name: engine.is_model(name),
    )
    add_problems(app)
    for call, endpoint in calls.items():
        app.add_route(f"/v1/models/{{name}}/{call}", endpoint, methods=["POST"])
    _add_refits(app, engine)
    _add_health(app, engine)
    add_metrics(app, engine, settings, streams, requests)
    _add_models(app, engine, settings)
    add_history(app, engine)
    _add_stream(app, engine, settings, streams)
    add_docs(app)
    add_inference(app, engine, partial(decoded_tensors, settings))
    return app


def _add_health(app: FastAPI, engine: Engine) -> None:
    status = answers("Status", "Yes.", (JSON.media_type,))

    @app.get("/livez", tags=["health"], responses={200: status})
    async def livez() -> dict[str, str]:
        """200 while the process answers at all."""
        return {"status": "alive"}

    @app.get("/readyz", tags=["health"], responses={200: status, **problems(503)})
    async def readyz() -> dict[str, str]:
        """200 once models are recovered and compiled, until the server stops; else why not."""
        if not engine.accepting:
            raise NotReady(f"the server is {engine.phase}")
        return {"status": "ready"}


def _add_models(app: FastAPI, engine: Engine, settings: Settings) -> None:
    described = answers("Model", "The model.")
    listed = answers("Models", "All models by name.")

    @app.get("/v1/models", tags=["models"], responses={200: listed})
    async def list_models(request: Request) -> Response:
        """All models with their sequences."""
        return respond(request, JSON, api.list_models(engine, request.state.grant.prefix))

    @app.get(
        "/v1/models/{name}",
        tags=["models"],
        openapi_extra={"parameters": [MIN_SEQUENCE]},
        responses={200: described, **problems(404, 422, 503)},
    )
    async def describe_model(request: Request, name: str) -> Response:
        """A model: spec, sequence, and how each head stands: classes, size, steps, gap, scores."""
        min_sequence = api.read_min_sequence(request.query_params.get("min_sequence"))
        model = engine.model(name)
        if min_sequence is not None:
            await engine.reached(model, min_sequence)
        return respond(request, JSON, model.describe())

    @app.put(
        "/v1/models/{name}",
        tags=["models"],
        status_code=201,
        openapi_extra=spec_body(),
        responses={
            200: answers("Model", "It exists with this spec."),
            201: answers("Model", "It is new."),
            **problems(400, 409, 413, 415, 422),
        },
    )
    async def create_model(request: Request, name: str) -> Response:
        """Create a model of a task, a kernel and heads; `{}` is a spec with every default."""
        data = await read_body(request, min(settings.body_bytes, _SPEC_BYTES))
        body_format = format_of_body(request.headers.get("content-type") if data else None)
        body = body_format.decode(data) if data else {}
        description, new = await api.create(engine, name, body)
        return respond(request, body_format, description, 201 if new else 200)

    @app.delete(
        "/v1/models/{name}",
        tags=["models"],
        status_code=204,
        responses=problems(404),
    )
    async def delete_model(name: str) -> Response:
        """Forget a model and everything that it learned."""
        await engine.delete(name)
        return Response(status_code=204)


def _calls(engine: Engine, settings: Settings) -> dict[str, Endpoint]:
    """The calls that carry the traffic, without FastAPI's work on each request around them.

    They read their bodies themselves in any case; `service.openapi` describes them.
    """

    def learning(call: api.LearningCall) -> Endpoint:
        async def learn(request: Request) -> Response:
            grant: Grant = request.state.grant
            key = header_key(request.headers.getlist("idempotency-key"), grant.key_id)
            preference = read_preference(request.headers.getlist("prefer"), settings.wait_seconds)
            body_format, data = await receive(request, settings.body_bytes, labelled=True)
            model = engine.model(request.path_params["name"])
            samples = await decoded(
                request,
                body_format,
                data,
                settings,
                lambda body: read_samples(body, model.spec.task),
            )
            grant.check_quota()
            durable = asyncio.get_running_loop().create_future() if preference else None
            waiting = api.learn(engine, model, call, samples, key, durable)
            grant.spend(len(samples.y))
            answer, status, headers = await acknowledged(waiting, durable, preference)
            response = respond(request, body_format, answer, status)
            response.headers.update(headers)
            return response

        return learn

    async def predict(request: Request) -> Response:
        model_name = request.path_params["name"]
        query = request.query_params if request.scope["query_string"] else _NO_QUERY
        grant: Grant = request.state.grant
        min_sequence = api.read_min_sequence(query.get("min_sequence"))
        body_format, data = await receive(request, settings.body_bytes, labelled=False)
        rows = await decoded(request, body_format, data, settings, read_rows)
        grant.check_quota()
        model = engine.model(model_name)
        grant.spend(n_rows(rows))
        answer = await api.predict(engine, model, query.get("head"), min_sequence, rows)
        return respond(request, body_format, answer)

    return {"samples": learning("samples"), "asset": learning("asset"), "predict": predict}


def _add_refits(app: FastAPI, engine: Engine) -> None:
    one, several = answers("Job", "The job."), answers("Jobs", "The jobs.")

    @app.post(
        "/v1/models/{name}/refit",
        tags=["refitting"],
        status_code=202,
        openapi_extra=NO_BODY,
        responses={
            202: answers("Job", "It is queued, or runs."),
            **problems(400, 404, 409, 413, 415, 422),
        },
    )
    async def refit(request: Request, name: str) -> Response:
        """Fit the semiparametric head to the model's window of recent samples, as a job.

        The window is taken when the job begins to run. While a refit of the model is queued or
        runs, it is the answer to further requests. The body is empty.
        """
        if await read_body(request, _SPEC_BYTES) not in (b"", b"{}"):
            raise Invalid("a refit takes no body; what it fits is in the model's spec")
        answer = _told(api.refit(engine, engine.model(name)))
        response = respond(request, JSON, answer, 202)
        response.headers["Location"] = answer["href"]
        return response

    @app.get(
        "/v1/models/{name}/jobs", tags=["refitting"], responses={200: several, **problems(404)}
    )
    async def list_jobs(request: Request, name: str) -> Response:
        """The model's refits that are remembered, newest first."""
        jobs = engine.refits.jobs(engine.model(name))
        return respond(request, JSON, {"jobs": [_told(job) for job in jobs]})

    @app.get(
        "/v1/models/{name}/jobs/{job}",
        tags=["refitting"],
        responses={200: one, **problems(404)},
    )
    async def describe_job(request: Request, name: str, job: str) -> Response:
        """A refit: how far it is, and how it ended."""
        return respond(request, JSON, _told(engine.refits.job(engine.model(name), job)))


def _told(job: Job) -> dict[str, Any]:
    return api.describe_job(job, problem_of)


def _add_stream(app: FastAPI, engine: Engine, settings: Settings, streams: Streams) -> None:
    @app.websocket("/v1/models/{name}/stream")
    async def stream(websocket: WebSocket, name: str) -> None:
        """Learn, asset and predict over one connection."""
        try:
            model = engine.model(name)
            producer = read_producer(websocket.query_params.get("producer"))
        except Refusal as error:
            await websocket.send_denial_response(problem_response(error, websocket.url.path))
            return
        await streams.serve(
            Session(
                websocket,
                engine,
                model,
                websocket.state.grant,
                settings,
                problem_of,
                producer,
            )
        )
