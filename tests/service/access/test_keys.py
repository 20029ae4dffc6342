"""Who may use a server, and over what: keys at rest, and against real servers."""

import hashlib
import json
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.service.process import ServerProcess
from wolfstream import Client, Refused
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.key_ring import KeyRing
from wolfstream.service.access.keys import KeysError, add_key, revoke_key
from wolfstream.service.access.scopes import Scope
from wolfstream.service.cli.main import main
from wolfstream.service.errors import Forbidden, Unauthenticated

SAMPLES = {"x": [[0.0], [1.0], [2.0], [3.0]], "y": ["a", "b", "a", "b"]}
SOON = 5.0
SCOPES: tuple[Scope, ...] = ("predict", "learn", "admin")


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def problem(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["type"].removeprefix("urn:wolfstream:")


def soon(what: Callable[[], bool]) -> bool:
    """Whether it becomes true within the time in which a server follows its keys."""
    deadline = time.monotonic() + SOON
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


# -- at rest ----------------------------------------------------------------------------


class TestAtRest:
    def test_a_key_is_recognised_and_has_160_random_bits(self, tmp_path: Path):
        one, other = (add_key(KeyFile(tmp_path), name, ("predict",)) for name in "ab")
        assert re.fullmatch(r"wfs_[0-9a-f]{8}_[0-9a-f]{40}", one)
        assert one[13:] != other[13:]

    def test_only_its_hash_is_kept_where_only_its_owner_reads(self, tmp_path: Path):
        key = add_key(KeyFile(tmp_path), "a", ("learn",), "p-")
        file = tmp_path / "keys.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert key.rpartition("_")[2] not in file.read_text()
        (kept,) = KeyFile(tmp_path).read() or []
        assert (kept.name, kept.scopes, kept.prefix) == ("a", ("learn",), "p-")
        assert kept.digest == hashlib.sha256(key.encode()).hexdigest()
        assert key.startswith(kept.id)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
    def test_what_root_adds_belongs_to_the_servers_user(self, tmp_path: Path):
        os.chown(tmp_path, 10001, 10002)
        add_key(KeyFile(tmp_path), "a", ("learn",))
        owner = (tmp_path / "keys.json").stat()
        assert (owner.st_uid, owner.st_gid) == (10001, 10002)

    def test_the_file_is_replaced_not_rewritten(self, tmp_path: Path):
        add_key(KeyFile(tmp_path), "a", ("learn",))
        with (tmp_path / "keys.json").open() as old:
            before = old.read()
            add_key(KeyFile(tmp_path), "b", ("learn",))
            old.seek(0)
            assert old.read() == before
        assert [file.name for file in tmp_path.iterdir()] == ["keys.json"]

    def test_a_write_that_fails_changes_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        add_key(KeyFile(tmp_path), "a", ("learn",))

        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", fail)
        with pytest.raises(KeysError, match="No space left"):
            revoke_key(KeyFile(tmp_path), "a")
        assert [key.name for key in KeyFile(tmp_path).read() or []] == ["a"]
        assert [file.name for file in tmp_path.iterdir()] == ["keys.json"]

    def test_commands_at_the_same_time_lose_nothing(self, tmp_path: Path):
        names = [f"k{i}" for i in range(12)]
        threads = [
            threading.Thread(target=add_key, args=(KeyFile(tmp_path), name, ("learn",), ""))
            for name in names
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(key.name for key in KeyFile(tmp_path).read() or []) == sorted(names)

    def test_a_name_is_taken_once(self, tmp_path: Path):
        add_key(KeyFile(tmp_path), "a", ("learn",))
        with pytest.raises(KeysError, match="revoke it first"):
            add_key(KeyFile(tmp_path), "a", ("admin",))
        with pytest.raises(KeysError, match="no key 'b'"):
            revoke_key(KeyFile(tmp_path), "b")

    @pytest.mark.parametrize("content", ["", "[", '{"keys": []}', '[{"name": "a"}]', "\x00"])
    def test_a_damaged_file_is_said(self, tmp_path: Path, content: str):
        (tmp_path / "keys.json").write_text(content)
        for use in (KeyFile.read, KeyRing, lambda keys: revoke_key(keys, "a")):
            with pytest.raises(KeysError, match=r"keys\.json is damaged"):
                use(KeyFile(tmp_path))


# -- the ring of a server ---------------------------------------------------------------


class TestRing:
    def test_without_a_file_everybody_may_do_everything(self, tmp_path: Path):
        ring = KeyRing(KeyFile(tmp_path))
        assert not ring.required
        ring.grant(None).check("admin")
        ring.grant(b"Bearer whatever").check_model("any")

    @pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
    def test_a_key_is_known_by_its_whole(self, tmp_path: Path, scheme: str):
        key = add_key(KeyFile(tmp_path), "a", ("predict",))
        ring = KeyRing(KeyFile(tmp_path))
        assert ring.required
        ring.grant(f"{scheme} {key}".encode()).check("predict")

    def test_nothing_else_is_a_key(self, tmp_path: Path):
        key = add_key(KeyFile(tmp_path), "a", ("predict",))
        add_key(KeyFile(tmp_path), "b", ("admin",))
        _, other = KeyFile(tmp_path).read() or []
        secret = key.rpartition("_")[2]
        ring = KeyRing(KeyFile(tmp_path))
        wrong = [
            None,
            b"",
            b"Bearer",
            b"Bearer ",
            key.encode(),
            f"Basic {key}".encode(),
            f"Bearer {key[:-1]}".encode(),
            f"Bearer {key}0".encode(),
            f"Bearer {key[:-1]}{'0' if key[-1] != '0' else '1'}".encode(),
            f"Bearer {other.id}_{secret}".encode(),
            f"Bearer {other.digest}".encode(),
            f"Bearer {other.id}_{other.digest}".encode(),
            b"Bearer \xff\xfe_\x00",
        ]
        for authorization in wrong:
            with pytest.raises(Unauthenticated):
                ring.grant(authorization)

    @pytest.mark.parametrize(
        ("given", "allowed"),
        [
            (("predict",), {"predict"}),
            (("learn",), {"predict", "learn"}),
            (("admin",), {"predict", "learn", "admin"}),
            (("predict", "learn"), {"predict", "learn"}),
        ],
    )
    def test_scopes_and_what_they_imply(
        self, tmp_path: Path, given: tuple[Scope, ...], allowed: set[str]
    ):
        key = add_key(KeyFile(tmp_path), "a", given)
        grant = KeyRing(KeyFile(tmp_path)).grant(b"Bearer " + key.encode())
        for scope in SCOPES:
            if scope in allowed:
                grant.check(scope)
            else:
                with pytest.raises(Forbidden, match=scope):
                    grant.check(scope)

    def test_it_follows_the_file(self, tmp_path: Path):
        ring = KeyRing(KeyFile(tmp_path))
        assert not ring.refresh()
        open_to_all = ring.grant(None)
        a = b"Bearer " + add_key(KeyFile(tmp_path), "a", ("learn",)).encode()
        assert ring.refresh()
        assert not ring.refresh()
        assert not ring.holds(open_to_all)
        grant = ring.grant(a)
        add_key(KeyFile(tmp_path), "b", ("learn",))
        assert ring.refresh()
        assert ring.grant(a) is grant
        assert ring.holds(grant)
        revoke_key(KeyFile(tmp_path), "a")
        assert ring.refresh()
        assert not ring.holds(grant)
        with pytest.raises(Unauthenticated):
            ring.grant(a)

    def test_without_its_last_key_it_lets_nobody_in(self, tmp_path: Path):
        add_key(KeyFile(tmp_path), "a", ("learn",))
        revoke_key(KeyFile(tmp_path), "a")
        assert KeyRing(KeyFile(tmp_path)).required

    def test_a_running_server_never_opens_by_accident(self, tmp_path: Path):
        key = b"Bearer " + add_key(KeyFile(tmp_path), "a", ("learn",)).encode()
        ring = KeyRing(KeyFile(tmp_path))
        (tmp_path / "keys.json").unlink()
        assert not ring.refresh()
        assert ring.required
        (tmp_path / "keys.json").write_text("[")
        with pytest.raises(KeysError, match="damaged"):
            ring.refresh()
        assert ring.required
        ring.grant(key)


# -- the command ------------------------------------------------------------------------


class TestCommand:
    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["keys", *arguments], prog_name="wolfstream")

    def test_add_prints_the_key_and_list_never_does(self, tmp_path: Path):
        data = str(tmp_path / "new")
        added = self.run("add", "--data", data, "--name", "a", "--scope", "learn")
        key = added.stdout.strip()
        assert added.exit_code == 0
        assert "cannot be shown again" in added.stderr
        more = (
            "--scope",
            "predict",
            "--scope",
            "admin",
            "--prefix",
            "p.",
            "--samples-per-second",
            "2.5",
        )
        assert self.run("add", "--data", data, "--name", "b", *more).exit_code == 0
        listed = self.run("list", "--data", data).stdout
        head, a, b = (line.split() for line in listed.splitlines())
        assert head == ["NAME", "KEY", "SCOPES", "MODELS", "SAMPLES/S", "CREATED"]
        assert a[:4] == ["a", f"{key[:12]}_...", "learn", "*"]
        assert (a[4], b[4]) == ("any", "2.5")
        assert (b[0], b[2], b[3]) == ("b", "predict,admin", "p.*")
        assert key.rpartition("_")[2] not in listed
        assert self.run("revoke", "--data", data, "a").exit_code == 0
        assert "learn" not in self.run("list", "--data", data).stdout

    def test_the_data_directory_is_also_a_variable(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("WOLFSTREAM_DATA", str(tmp_path))
        assert self.run("add", "--name", "a", "--scope", "learn").exit_code == 0
        assert (tmp_path / "keys.json").exists()

    def test_list_says_what_no_keys_mean(self, tmp_path: Path):
        assert "anyone who reaches it" in self.run("list", "--data", str(tmp_path)).stderr
        add_key(KeyFile(tmp_path), "a", ("learn",))
        revoke_key(KeyFile(tmp_path), "a")
        assert "no one" in self.run("list", "--data", str(tmp_path)).stderr

    @pytest.mark.parametrize(
        "arguments",
        [
            ["add", "--name", "a"],
            ["add", "--scope", "learn"],
            ["add", "--name", "a", "--scope", "all"],
            ["add", "--name", "", "--scope", "learn"],
            ["add", "--name", "a b", "--scope", "learn"],
            ["add", "--name", "a", "--scope", "learn", "--prefix", "a/"],
            ["add", "--name", "a", "--scope", "learn", "--samples-per-second", "0"],
            ["revoke"],
        ],
    )
    def test_wrong_usage(self, tmp_path: Path, arguments: list[str]):
        result = self.run(*arguments[:1], "--data", str(tmp_path), *arguments[1:])
        assert result.exit_code == 2
        assert not list(tmp_path.iterdir())

    def test_failures_are_one_line(self, tmp_path: Path):
        result = self.run("revoke", "--data", str(tmp_path), "nobody")
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: there is no key 'nobody'")
        (tmp_path / "file").touch()
        result = self.run(
            "add", "--data", str(tmp_path / "file"), "--name", "a", "--scope", "learn"
        )
        assert result.exit_code == 2


# -- a server ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A key of each scope, made before the first start, and one for a part of the models."""
    data = tmp_path_factory.mktemp("guarded") / "data"
    made = {scope: add_key(KeyFile(data), scope, (scope,)) for scope in SCOPES}
    made["part"] = add_key(KeyFile(data), "part", ("admin",), "part-")
    return made | {"data": str(data)}


@pytest.fixture(scope="module")
def guarded(keys: dict[str, str]) -> Iterator[ServerProcess]:
    """A server with keys and two models, m and part-m."""
    with closing(ServerProcess(Path(keys["data"]))) as server:
        server.start()
        with httpx.Client(headers=bearer(keys["admin"]), timeout=30) as client:
            for name in ("m", "part-m"):
                url = f"{server.url}/v1/models/{name}"
                client.put(url).raise_for_status()
                client.post(f"{url}/samples", json=SAMPLES).raise_for_status()
        yield server


@pytest.fixture
def http(guarded: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=guarded.url, timeout=30) as client:
        yield client


TENSORS = {"inputs": [{"name": "x", "shape": [1, 1], "datatype": "FP64", "data": [1.0]}]}
CALLS: list[tuple[str, str, Any, Scope]] = [
    ("GET", "/v1/models", None, "predict"),
    ("GET", "/v1/models/m", None, "predict"),
    ("POST", "/v1/models/m/predict", {"x": [[1.0]]}, "predict"),
    ("POST", "/v1/models/m/samples", SAMPLES, "learn"),
    ("POST", "/v1/models/m/asset", SAMPLES, "learn"),
    ("POST", "/v1/models/m/predict", {"x": [[1.0]], "ids": "auto"}, "learn"),
    ("POST", "/v1/models/m/labels", {"ids": ["a"], "y": ["b"]}, "learn"),
    ("POST", "/v1/models/absent/refit", {}, "learn"),
    ("GET", "/v1/models/m/jobs", None, "predict"),
    ("GET", "/v1/models/m/jobs/absent", None, "predict"),
    ("GET", "/metrics", None, "predict"),
    ("GET", "/v2", None, "predict"),
    ("GET", "/v2/models/m", None, "predict"),
    ("GET", "/v2/models/m/versions/1/ready", None, "predict"),
    ("POST", "/v2/models/m/infer", TENSORS, "predict"),
    ("POST", "/v2/models/m/versions/1/infer", TENSORS, "predict"),
    ("POST", "/v2/models/m/samples", SAMPLES, "admin"),
    ("PUT", "/v1/models/m", {}, "admin"),
    ("DELETE", "/v1/models/absent", None, "admin"),
    ("GET", "/v1/models/m/state", None, "admin"),  # it holds samples
    ("POST", "/v1/models/m/some-day", {}, "admin"),
]


class TestHttp:
    @pytest.mark.parametrize(("method", "path", "body", "needed"), CALLS)
    def test_each_call_needs_its_scope(
        self,
        http: httpx.Client,
        keys: dict[str, str],
        method: str,
        path: str,
        body: Any,
        needed: Scope,
    ):
        for scope in SCOPES:
            answer = http.request(method, path, json=body, headers=bearer(keys[scope]))
            if SCOPES.index(scope) >= SCOPES.index(needed):
                assert answer.status_code in (200, 404)
            else:
                assert answer.status_code == 403
                told = answer.json()
                assert repr(needed) in (told["error" if path.startswith("/v2") else "detail"])

    @pytest.mark.parametrize("given", [{}, {"Authorization": "Bearer wfs_0_0"}, {"X-Key": "a"}])
    @pytest.mark.parametrize(
        "path", ["/v1/models", "/v1/models/m/samples", "/metrics", "/v1", "/nothing", "//nothing"]
    )
    def test_without_a_known_key_nothing_is_told(
        self, http: httpx.Client, path: str, given: dict[str, str]
    ):
        # As a whole URL: of "//nothing" alone httpx would make the path "/", which is open.
        url = f"{str(http.base_url).rstrip('/')}{path}"
        for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
            answer = http.request(method, url, headers=given)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            if method != "HEAD":
                assert problem(answer) == (401, "unauthenticated")

    def test_what_is_refused_is_counted_under_its_route(
        self, http: httpx.Client, keys: dict[str, str]
    ):
        for path in ("/v1/models/m/predict", "/v1/models/n/predict"):
            assert http.post(path).status_code == 401
        labels = 'method="POST",route="/v1/models/{name}/predict",status="4xx"'
        told = http.get("/metrics", headers=bearer(keys["predict"])).text
        found = re.search(
            rf"^wolfstream_http_requests_total{{{re.escape(labels)}}} (.*)$", told, re.M
        )
        assert found
        assert float(found[1]) >= 2
        assert "/m/" not in told

    def test_a_key_in_the_url_is_none(self, http: httpx.Client, keys: dict[str, str]):
        for parameter in ("key", "access_token", "api_key"):
            answer = http.get("/v1/models", params={parameter: keys["admin"]})
            assert answer.status_code == 401

    @pytest.mark.parametrize(
        "path",
        ["/", "/livez", "/readyz", "/docs", "/openapi.json", "/v2/health/live", "/v2/health/ready"],
    )
    def test_health_and_interface_are_open(self, http: httpx.Client, path: str):
        assert http.get(path).status_code == 200

    def test_the_inference_protocol_has_its_own_form_of_refusals(
        self, http: httpx.Client, keys: dict[str, str]
    ):
        for head, status in (({}, 401), (bearer(keys["part"]), 403)):
            for path in ("/v2/models/m", "/v2/models/m/versions/1"):
                answer = http.post(f"{path}/infer", json=TENSORS, headers=head)
                assert answer.status_code == status
                assert answer.headers["content-type"] == "application/json"
                assert list(answer.json()) == ["error"]
        own = http.post("/v2/models/part-m/infer", json=TENSORS, headers=bearer(keys["part"]))
        assert own.status_code == 200
        assert http.get("/v2", headers=bearer(keys["part"])).status_code == 200
        assert http.get("/v2").headers["www-authenticate"].startswith("Bearer")

    def test_the_interface_says_how_a_key_is_sent(self, http: httpx.Client):
        told = http.get("/openapi.json").json()
        assert told["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
        assert {"401", "403"} <= told["paths"]["/v1/models/{name}/samples"]["post"][
            "responses"
        ].keys()


class TestPrefix:
    def test_only_its_models_are_listed(self, http: httpx.Client, keys: dict[str, str]):
        listed = {
            key: [
                m["model"]
                for m in http.get("/v1/models", headers=bearer(keys[key])).json()["models"]
            ]
            for key in ("admin", "part")
        }
        assert {"m", "part-m"} <= set(listed["admin"])
        assert listed["part"] == ["part-m"]

    def test_others_are_refused_whether_or_not_they_exist(
        self, http: httpx.Client, keys: dict[str, str]
    ):
        for name in ("m", "absent", "part", "Part-m", "part%2Dm/../../m"):
            for method, path in [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/predict")]:
                answer = http.request(
                    method, f"/v1/models/{name}{path}", headers=bearer(keys["part"]), json={}
                )
                assert problem(answer) == (403, "forbidden")

    def test_its_models_are_its_own(self, http: httpx.Client, keys: dict[str, str]):
        head = bearer(keys["part"])
        assert http.get("/v1/models/part-m", headers=head).status_code == 200
        assert http.get("/v1/models/part%2Dm", headers=head).status_code == 200
        assert http.put("/v1/models/part-new", headers=head).status_code == 201
        assert http.delete("/v1/models/part-new", headers=head).status_code == 204

    @pytest.mark.parametrize("path", ["/metrics", "/nothing", "/v1", "//v1/models/part-m"])
    def test_what_concerns_all_models_needs_a_key_for_all(
        self, http: httpx.Client, keys: dict[str, str], path: str
    ):
        assert problem(http.get(path, headers=bearer(keys["part"]))) == (403, "forbidden")
        told = 200 if path == "/metrics" else 404
        assert http.get(path, headers=bearer(keys["predict"])).status_code == told


class TestStream:
    @contextmanager
    def open(
        self, server: ServerProcess, key: str | None, name: str = "m"
    ) -> Iterator[ClientConnection]:
        url = server.url.replace("http", "ws", 1)
        head = bearer(key) if key else {}
        with connect(f"{url}/v1/models/{name}/stream", additional_headers=head) as stream:
            assert "hello" in json.loads(stream.recv(SOON))
            yield stream

    def ask(self, stream: ClientConnection, **frame: Any) -> dict[str, Any]:
        stream.send(json.dumps({"id": 1, **frame}))
        answer: dict[str, Any] = json.loads(stream.recv(SOON))
        return answer

    @pytest.mark.parametrize(
        ("key", "name", "status"),
        [(None, "m", 401), ("wfs_0_0", "m", 401), ("part", "m", 403), ("part", "absent", 403)],
    )
    def test_is_refused_before_it_opens(
        self,
        guarded: ServerProcess,
        keys: dict[str, str],
        key: str | None,
        name: str,
        status: int,
    ):
        given = keys.get(key, key) if key else None
        with pytest.raises(InvalidStatus) as refused, self.open(guarded, given, name):
            pass
        assert refused.value.response.status_code == status
        assert json.loads(refused.value.response.body or b"")["status"] == status
        if status == 401:
            assert refused.value.response.headers["WWW-Authenticate"].startswith("Bearer")

    def test_a_page_offers_its_key_as_a_subprotocol(
        self, guarded: ServerProcess, keys: dict[str, str]
    ):
        url = f"{guarded.url.replace('http', 'ws', 1)}/v1/models/m/stream"
        spoken = Subprotocol("wolfstream.v1.json")
        offered = [spoken, Subprotocol(f"wolfstream.key.{keys['predict']}")]
        with connect(url, subprotocols=offered) as stream:
            assert stream.subprotocol == spoken
            assert "hello" in json.loads(stream.recv(SOON))
        with (
            pytest.raises(InvalidStatus),
            connect(url, subprotocols=[spoken, Subprotocol("wolfstream.key.wfs_0_0")]),
        ):
            pass

    def test_each_frame_needs_its_scope(self, guarded: ServerProcess, keys: dict[str, str]):
        with self.open(guarded, keys["predict"]) as stream:
            for op in ("learn", "asset"):
                error = self.ask(stream, op=op, **SAMPLES)["error"]
                assert (error["status"], error["type"]) == (403, "urn:wolfstream:forbidden")
            assert "prediction" in self.ask(stream, op="predict", x=[[1.0]])
        with self.open(guarded, keys["learn"]) as stream:
            assert self.ask(stream, op="learn", **SAMPLES)["learned"] == 4
            assert "prediction" in self.ask(stream, op="predict", x=[[1.0]])

    def test_the_client_of_python_sends_its_key(self, guarded: ServerProcess, keys: dict[str, str]):
        with Client(guarded.url, keys["learn"]) as client, client.stream("m") as stream:
            at = client.learn("m", [[1.0]], ["a"]).sequence
            stream.learn([1.0], "b")
            assert [result.sequence for result in stream] == [at + 1]
            with pytest.raises(Refused, match="403"):
                client.create("m2")
        with Client(guarded.url) as client:
            with pytest.raises(Refused, match="401"):
                client.models()
            with pytest.raises(Refused, match="401"), client.stream("m"):
                pass

    def test_a_quota_slows_a_producer_and_costs_no_order(self, guarded: ServerProcess):
        key = add_key(KeyFile(guarded.data), "slow", ("admin",), "slow-", 10.0)
        head = bearer(key)
        assert soon(lambda: httpx.get(f"{guarded.url}/v1/models", headers=head).is_success)
        with Client(guarded.url, key) as client:
            client.create("slow-m")
            with client.stream("slow-m") as stream:
                samples = [([float(k)], "ab"[k % 2]) for k in range(16)]
                results = list(stream.learn_each(samples))
            assert [result.sequence for result in results] == list(range(1, 17))

    def test_a_revoked_key_ends_its_streams_with_1008_and_no_others(
        self, guarded: ServerProcess, keys: dict[str, str]
    ):
        key = add_key(KeyFile(guarded.data), "brief", ("learn",))
        head = bearer(key)
        assert soon(lambda: httpx.get(f"{guarded.url}/v1/models", headers=head).is_success)
        with self.open(guarded, key) as stream, self.open(guarded, keys["learn"]) as other:
            assert self.ask(stream, op="learn", **SAMPLES)["learned"] == 4
            revoke_key(KeyFile(guarded.data), "brief")
            with pytest.raises(ConnectionClosed) as closed:
                stream.recv(SOON)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008
            assert self.ask(other, op="learn", **SAMPLES)["learned"] == 4
        answer = httpx.get(f"{guarded.url}/v1/models", headers=head)
        assert problem(answer) == (401, "unauthenticated")


@pytest.mark.parametrize("transport", ["http", "websocket"])
def test_replay_takes_its_key_from_a_variable(
    guarded: ServerProcess,
    keys: dict[str, str],
    tmp_path: Path,
    transport: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,y\n1,0\n2,1\n")
    arguments = ["replay", str(file), "--url", guarded.url, "--model", f"r-{transport}"]
    arguments += ["--transport", transport]
    monkeypatch.delenv("WOLFSTREAM_KEY", raising=False)
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 1
    assert "401 A key is needed" in refused.stderr
    monkeypatch.setenv("WOLFSTREAM_KEY", keys["admin"])
    assert CliRunner().invoke(main, arguments).exit_code == 0


def test_a_server_without_keys_closes_to_strangers_with_the_first_key(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data").start()
    try:
        with httpx.Client(base_url=server.url) as client:
            client.put("/v1/models/m").raise_for_status()
            url = server.url.replace("http", "ws", 1)
            with connect(f"{url}/v1/models/m/stream") as stream:
                stream.recv(SOON)
                key = add_key(KeyFile(server.data), "first", ("predict",))
                with pytest.raises(ConnectionClosed) as closed:
                    stream.recv(SOON)
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == 1008
            assert client.get("/v1/models").status_code == 401
            assert client.get("/v1/models", headers=bearer(key)).status_code == 200
            assert key.rpartition("_")[2] not in server.log()
            (server.data / "keys.json").write_text("[")
            assert soon(lambda: "damaged" in server.log())
            assert client.get("/v1/models", headers=bearer(key)).status_code == 200
        server.terminate()
        with pytest.raises(RuntimeError, match=r"Error: .*keys\.json is damaged"):
            server.start()
    finally:
        server.close()
