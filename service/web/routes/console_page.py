"""Serves the console at `/` and its files; programs that ask for `/` get a list of addresses."""

from importlib.metadata import version

from fastapi import FastAPI, HTTPException, Request, Response

from wolfstream.service.console.files import INDEX, File, read_files
from wolfstream.service.web.formats.body import respond_json
from wolfstream.service.web.formats.paths import CONSOLE, DOCS, OPENAPI

_ROOT = {
    "name": "wolfstream",
    "version": version("wolfstream"),
    "documentation": DOCS,
    "openapi": OPENAPI,
    "health": "/readyz",
    "models": "/v1/models",
}
# The page only loads its own files and only talks to this server, and no page can embed it.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def add_console(app: FastAPI) -> None:
    """Add the routes. They need no key: the page asks the user for one if the server has keys."""
    files = read_files()
    index = files.pop(INDEX)

    async def root(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return _respond(request, index)
        answer = respond_json(_ROOT)
        answer.headers["Vary"] = "Accept"
        return answer

    async def console_file(request: Request) -> Response:
        file = files.get(request.path_params["file"])
        if file is None:
            raise HTTPException(404)
        return _respond(request, file)

    app.add_route("/", root)
    app.add_route(f"{CONSOLE}/{{file}}", console_file)


def _respond(request: Request, file: File) -> Response:
    """Return a file, or 304 if the browser has it."""
    headers = {**_HEADERS, "ETag": file.tag, "Vary": "Accept"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.media_type)
