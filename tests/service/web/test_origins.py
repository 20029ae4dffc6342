"""Pages of other sites: what a browser that has one open can do to a server."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from starlette.responses import PlainTextResponse
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.service.access.test_keys import problem
from tests.service.process import ServerProcess
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.key_ring import KeyRing
from wolfstream.service.access.keys import add_key
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.problems import problem_response
from wolfstream.service.web.transport.origins import Origins

PAGE = "https://app.example"


def ask(
    data: Path,
    method: str = "POST",
    path: str = "/v1/models",
    *,
    headers: Mapping[str, str] = {},
    **settings: Any,
) -> httpx.Response:
    """A request to an application that answers everything, behind the layer."""
    ring = KeyRing(KeyFile(data))
    layer = Origins(PlainTextResponse("done"), Settings(**settings), ring, problem_response)

    async def with_headers(scope: Any, receive: Any, send: Any) -> None:
        scope["state"] = {"headers": dict(scope["headers"])}
        await layer(scope, receive, send)

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(with_headers)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000") as to:
            return await to.request(method, path, headers=headers)

    return asyncio.run(send())


class TestHost:
    @pytest.mark.parametrize(
        "host",
        ["localhost", "LOCALHOST:8000", "a.localhost", "127.0.0.1:8000", "[::1]:8000", "10.1.2.3"],
    )
    def test_this_machine_and_addresses_are_known(self, tmp_path: Path, host: str):
        assert ask(tmp_path, headers={"Host": host}).status_code == 200

    @pytest.mark.parametrize(
        "host",
        [
            *("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[", "a@b"),
            *("evil.example.", "EVIL.example:8000", "xlocalhost", "127.0.0.1.", "0x7f000001"),
            *("localhost@evil.example", "evil.example@localhost", "evil.example:80@localhost"),
            *("localhost/evil", "localhost?evil", "localhost#evil", "localhost:8000:evil", ":80"),
            *(
                "[::1].evil.example",
                "[::1",
                "::1]",
                "[evil.example]",
                "localhost\\evil",
                "loc alhost",
            ),
        ],
    )
    @pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
    def test_another_name_is_refused(self, tmp_path: Path, method: str, host: str):
        answer = ask(tmp_path, method, headers={"Host": host})
        assert problem(answer) == (403, "foreign-host")

    def test_names_can_be_added(self, tmp_path: Path):
        known = {"hosts": "models.example, server", "host": "bound.example"}
        for host in ("models.example:443", "Server", "bound.example"):
            assert ask(tmp_path, headers={"Host": host}, **known).status_code == 200
        assert ask(tmp_path, headers={"Host": "evil.example"}, **known).status_code == 403

    def test_with_keys_it_is_checked_where_names_are_set(self, tmp_path: Path):
        add_key(KeyFile(tmp_path), "ops", ("admin",))
        assert ask(tmp_path, headers={"Host": "any.example"}).status_code == 200
        refused = ask(tmp_path, headers={"Host": "any.example"}, hosts="models.example")
        assert problem(refused) == (403, "foreign-host")

    @pytest.mark.parametrize("path", ["/livez", "/readyz"])
    def test_health_is_told_to_all(self, tmp_path: Path, path: str):
        assert ask(tmp_path, "GET", path, headers={"Host": "any.example"}).status_code == 200


class TestOrigin:
    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://localhost:3000"},
            {"Origin": "https://localhost:8000"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ],
        ids=["site", "null", "port", "scheme", "cross", "same"],
    )
    def test_of_another_page_is_refused(self, tmp_path: Path, method: str, headers: dict[str, str]):
        assert problem(ask(tmp_path, method, headers=headers)) == (403, "foreign-origin")

    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"Origin": "http://localhost:8000", "Sec-Fetch-Site": "same-origin"},
            {"Sec-Fetch-Site": "none"},
        ],
        ids=["curl", "own page", "no page"],
    )
    def test_of_others_is_not(self, tmp_path: Path, headers: dict[str, str]):
        assert ask(tmp_path, headers=headers).status_code == 200

    def test_a_page_may_send_a_get_but_not_read_the_answer(self, tmp_path: Path):
        answer = ask(tmp_path, "GET", headers={"Origin": "https://evil.example"})
        assert answer.status_code == 200
        assert "access-control-allow-origin" not in answer.headers

    @pytest.mark.parametrize("dest", ["empty", "iframe", "script", "image", "object"])
    @pytest.mark.parametrize("site", ["cross-site", "same-site"])
    def test_another_page_may_link_to_it_and_nothing_else(
        self, tmp_path: Path, site: str, dest: str
    ):
        """A script's element would tell whether a model exists, and events hold a connection."""
        headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Dest": dest}
        assert problem(ask(tmp_path, "GET", headers=headers)) == (403, "foreign-origin")
        linked = headers | {"Sec-Fetch-Dest": "document"}
        assert ask(tmp_path, "GET", headers=linked).status_code == 200
        named = headers | {"Origin": PAGE}
        assert ask(tmp_path, "GET", headers=named, origins=PAGE).status_code == 200
        own = headers | {"Sec-Fetch-Site": "same-origin"}
        assert ask(tmp_path, "GET", headers=own).status_code == 200
        assert ask(tmp_path, "GET", "/livez", headers=headers).status_code == 200

    def test_of_a_page_that_the_settings_name(self, tmp_path: Path):
        headers = {"Origin": PAGE, "Sec-Fetch-Site": "cross-site"}
        answer = ask(tmp_path, headers=headers, origins=PAGE)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == PAGE
        for other in ("https://app.example.evil.example", "http://app.example", f"{PAGE}:444"):
            refused = ask(tmp_path, headers={"Origin": other}, origins=PAGE)
            assert problem(refused) == (403, "foreign-origin")

    def test_such_a_page_may_ask_before_it_sends(self, tmp_path: Path):
        asking = {
            "Origin": PAGE,
            "Access-Control-Request-Method": "DELETE",
            "Access-Control-Request-Headers": "authorization,content-type",
        }
        answer = ask(tmp_path, "OPTIONS", headers=asking, origins=PAGE)
        assert answer.status_code == 200
        assert "DELETE" in answer.headers["access-control-allow-methods"]
        assert "authorization" in answer.headers["access-control-allow-headers"]

    @pytest.mark.parametrize("wrong", ["*", "app.example", "https://app.example/", "null"])
    def test_the_setting_names_sites_exactly(self, wrong: str):
        with pytest.raises(ValidationError):
            Settings(origins=wrong)


def test_over_sockets(server: ServerProcess, client: httpx.Client, name: str):
    client.put(f"/v1/models/{name}").raise_for_status()
    rebound = client.delete(f"/v1/models/{name}", headers={"Host": "evil.example:8000"})
    assert problem(rebound) == (403, "foreign-host")
    foreign = client.post(
        f"/v1/models/{name}/samples",
        content='{"x": [1], "y": 1}',
        headers={"Origin": "https://evil.example", "Content-Type": "text/plain"},
    )
    assert problem(foreign) == (403, "foreign-origin")
    stream = f"{server.url.replace('http', 'ws', 1)}/v1/models/{name}/stream"
    for origin in ("https://evil.example", "null"):
        with pytest.raises(InvalidStatus) as refused, connect(stream, origin=origin):
            pass
        assert refused.value.response.status_code == 403
    with connect(stream, origin=server.url) as own:
        assert json.loads(own.recv(10))["hello"]["sequence"] == 0
