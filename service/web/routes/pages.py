"""The pages of a server: the console at `/`, and the OpenAPI document as HTML at `/docs`.

Programs that ask for `/` get a list of addresses. The usual viewers of such documents are a
megabyte of scripts, mostly loaded from a host that closed networks cannot reach; this page only has
to show the document, without scripts or external files.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import Any, NamedTuple

from fastapi import FastAPI, HTTPException, Request, Response

from wolfstream.service.web.formats.body import respond_json
from wolfstream.service.web.formats.paths import CONSOLE, DOCS, OPENAPI

INDEX = "index.html"
_MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_ROOT = {
    "name": "wolfstream",
    "version": version("wolfstream"),
    "documentation": DOCS,
    "openapi": OPENAPI,
    "health": "/readyz",
    "models": "/v1/models",
}
# The page only loads its own files and only talks to this server, and no page can embed it.
_CONSOLE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


class File(NamedTuple):
    """A file's bytes, their media type, and an entity tag of them."""

    content: bytes
    media_type: str
    tag: str


def read_files() -> dict[str, File]:
    """Return the files of the console, `service/console`, by name."""
    return {
        entry.name: _file(entry.name, entry.read_bytes())
        for entry in files("wolfstream.service").joinpath("console").iterdir()
        if entry.name.rpartition(".")[2] in _MEDIA_TYPES
    }


def _file(name: str, content: bytes) -> File:
    digest = hashlib.sha256(content).hexdigest()[:16]
    return File(content, _MEDIA_TYPES[name.rpartition(".")[2]], f'"{digest}"')


def add_console(app: FastAPI) -> None:
    """Add the routes. They need no key: the page asks the user for one if the server has keys."""
    served = read_files()
    index = served.pop(INDEX)

    async def root(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return _respond(request, index)
        answer = respond_json(_ROOT)
        answer.headers["Vary"] = "Accept"
        return answer

    async def console_file(request: Request) -> Response:
        file = served.get(request.path_params["file"])
        if file is None:
            raise HTTPException(404)
        return _respond(request, file)

    app.add_route("/", root)
    app.add_route(f"{CONSOLE}/{{file}}", console_file)


def _respond(request: Request, file: File) -> Response:
    """Return a file, or 304 if the browser has it."""
    headers = {**_CONSOLE_HEADERS, "ETag": file.tag, "Vary": "Accept"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.media_type)


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc }
pre { background: #f4f4f4; padding: .6rem; overflow-x: auto; white-space: pre-wrap }
code, pre { font: 14px/1.4 ui-monospace, monospace }
summary { cursor: pointer; padding: .3rem 0 }
details details { margin-left: 1.5rem }
.method { display: inline-block; min-width: 4.5rem; font-weight: bold; text-transform: uppercase }
table { border-collapse: collapse } td, th { text-align: left; padding: .2rem 1rem .2rem 0 }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #1a1a1a } pre { background: #2a2a2a } a { color: #8bf }
}
"""
# Whatever the document contains, the page loads and runs nothing, and no page can embed it.
_DOCS_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
}


def add_docs(app: FastAPI) -> None:
    """Add the routes of the page and of the document itself.

    Each is generated only once, because anybody may request it. This takes a second, so it is done
    on another thread, one at a time.
    """
    lock = asyncio.Lock()
    cache: dict[str, bytes] = {}  # path -> content

    async def once(name: str, make: Callable[[], bytes]) -> bytes:
        async with lock:
            if name not in cache:
                cache[name] = await asyncio.to_thread(make)
            return cache[name]

    async def docs(_: Request) -> Response:
        content = await once(DOCS, lambda: page(app.openapi()).encode())
        return Response(content, headers=_DOCS_HEADERS, media_type="text/html")

    async def openapi(_: Request) -> Response:
        content = await once(OPENAPI, lambda: bytes(respond_json(app.openapi()).body))
        return Response(content, media_type="application/json")

    app.add_route(DOCS, docs)
    app.add_route(OPENAPI, openapi)


def page(openapi: dict[str, Any]) -> str:
    """Return an OpenAPI document as HTML."""
    info = openapi["info"]
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width, initial-scale=1'>",
        f"<title>{escape(info['title'])}</title><style>{_STYLE}</style>",
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>",
        *(f"<p>{_prose(text)}</p>" for text in info.get("description", "").split("\n\n")),
        "<p>This document for programs: <a href=openapi.json>openapi.json</a>.</p>",
    ]
    for tag in openapi.get("tags", []):
        parts.append(f"<h2>{escape(tag['name'])}</h2><p>{_prose(tag['description'])}</p>")
        for path, operations in openapi["paths"].items():
            for method, operation in operations.items():
                if tag["name"] in operation["tags"]:
                    parts += _operation(method, path, operation)
    parts.append("<h2>Schemas</h2>")
    for name, schema in openapi["components"]["schemas"].items():
        parts.append(f"<details id='{escape(name)}'><summary><code>{escape(name)}</code></summary>")
        parts.append(f"{_json(schema)}</details>")
    return "\n".join(parts)


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    summary = operation.get("description") or operation["summary"]
    yield f"<details><summary><span class=method>{method}</span> <code>{escape(path)}</code>"
    yield f" {_prose(summary)}</summary>"
    if operation.get("parameters"):
        yield "<table><tr><th>parameter<th>in<th>description"
        for parameter in operation["parameters"]:
            text = parameter.get("description", parameter["schema"].get("description", ""))
            name, place = escape(parameter["name"]), escape(parameter["in"])
            allowed = " or ".join(map(str, parameter["schema"].get("enum", [])))
            yield f"<tr><td><code>{name}</code><td>{place}<td>{_prose(text)} {escape(allowed)}"
        yield "</table>"
    body = operation.get("requestBody", {})
    for media_type, content in body.get("content", {}).items():
        yield from _content(f"request, {media_type}", content)
    for status, response in operation["responses"].items():
        title = f"{status} {response['description']}"
        if not response.get("content"):
            yield f"<details><summary>{_prose(title)}</summary></details>"
        for media_type, content in response.get("content", {}).items():
            yield from _content(f"{title} {media_type}", content)
    yield "</details>"


def _content(title: str, content: dict[str, Any]) -> Iterator[str]:
    """Yield the HTML of one media type of a request or response: its schema and its examples."""
    schema = content.get("schema", {})
    yield f"<details><summary>{_prose(title)}</summary>"
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        yield f"<p>Schema: <a href='#{name}'>{name}</a></p>"
    elif "description" in schema:
        yield f"<p>{_prose(schema['description'])}</p>"
    if "example" in content:
        yield _json(content["example"])
    for example in content.get("examples", {}).values():
        yield f"<p>{_prose(example['summary'])}</p>" if "summary" in example else ""
        yield _json(example["value"])
    yield "</details>"


def _json(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return f"<pre>{escape(text)}</pre>"


def _prose(text: str) -> str:
    """Return text as HTML, with the parts in `backticks` as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
