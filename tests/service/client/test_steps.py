"""Steps without sockets: backoff, what answers mean, and calls over a server in memory."""

import json
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.faults import PretendModel
from wolfstream.service.client.errors import (
    AnswerLost,
    ClientError,
    NotDone,
    Refused,
    Unreachable,
    Unsuitable,
    may_pass,
)
from wolfstream.service.client.model_calls import ModelCalls
from wolfstream.service.client.sample_calls import SampleCalls
from wolfstream.service.client.steps import Backoff, Effect, Pause, Reply, Request, Retry, run
from wolfstream.service.client.wire import MSGPACK, check_url, decode_reply, tls_context

GET = Request("GET", "/v1/models/m")


def reply(status: int = 200, data: Any = None, kind: str = MSGPACK, **headers: str) -> Reply:
    content = msgpack.packb(data) if kind == MSGPACK else json.dumps(data).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, "Reason", {"content-type": kind, **named}, content)


def full(seconds: float | None = None) -> Refused:
    return Refused(503, {} if seconds is None else {"retry_after_seconds": seconds})


class TestBackoff:
    def pauses(self, backoff: Backoff, error: ClientError, count: int) -> list[float]:
        return [backoff.pause(error).seconds for _ in range(count)]

    def test_pauses_double_to_a_bound(self):
        pauses = self.pauses(Backoff(Retry(1e9), chance=lambda: 1.0), AnswerLost(), 8)
        assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])

    @given(st.floats(0, 1, exclude_max=True))
    def test_half_of_a_pause_is_chance(self, chance: float):
        for seconds, longest in zip(
            self.pauses(Backoff(Retry(1e9), chance=lambda: chance), Unreachable(), 3),
            (0.1, 0.2, 0.4),
            strict=True,
        ):
            assert longest / 2 <= seconds <= longest

    @given(st.floats(0, 30), st.floats(0, 1, exclude_max=True))
    def test_never_sooner_than_the_server_wants(self, asked: float, chance: float):
        (seconds,) = self.pauses(Backoff(Retry(1e9), chance=lambda: chance), full(asked), 1)
        assert max(0.05, asked) <= seconds <= max(0.05, asked) * 1.1

    def test_it_ends_some_time_after_the_first_failure(self):
        now = [0.0]
        backoff = Backoff(Retry(10.0), clock=lambda: now[0], chance=lambda: 0.0)
        now[0] = 100.0
        backoff.pause(full(4))
        now[0] = 105.9
        backoff.pause(full(4))
        now[0] = 106.1
        with pytest.raises(Refused):
            backoff.pause(full(4))
        now[0] = 200.0
        backoff.pause(full(4))

    def test_success_renews_it(self):
        now = [0.0]
        backoff = Backoff(Retry(1.0), clock=lambda: now[0], chance=lambda: 1.0)
        self.pauses(backoff, AnswerLost(), 3)
        backoff.reset()
        now[0] = 5.0
        assert backoff.pause(AnswerLost()).seconds == pytest.approx(0.1)

    @pytest.mark.parametrize(
        ("error", "passes"),
        [(Refused(s, {}), True) for s in (408, 429, 502, 503, 504)]
        + [(Refused(s, {}), False) for s in (400, 401, 404, 409, 413, 422, 500)]
        + [(Unreachable(), True), (AnswerLost(), True), (Unsuitable(), False)],
    )
    def test_what_may_pass(self, error: ClientError, passes: bool):
        assert may_pass(error) is passes
        if not passes:
            with pytest.raises(ClientError):
                Backoff(Retry(1e9)).pause(error)


class TestAnswers:
    def test_success(self):
        assert decode_reply(GET, reply(data={"a": 1})) == {"a": 1}
        assert decode_reply(GET, reply(data={"a": 1}, kind="application/json")) == {"a": 1}
        response = decode_reply(GET, reply(data={"a": 1}, idempotency_replayed="true"))
        assert response == {"a": 1, "replayed": True}
        assert decode_reply(GET, Reply(204, "", {}, b"")) == {}

    def test_a_refusal_has_its_problem_and_when_to_come_again(self):
        problem = {"type": "urn:wolfstream:queue-full", "title": "Full", "detail": "wait"}
        with pytest.raises(Refused, match="503 Full: wait") as caught:
            decode_reply(GET, reply(503, problem, "application/problem+json", retry_after="7"))
        assert (caught.value.slug, caught.value.retry_after) == ("queue-full", 7.0)

    def test_wrong_places_are_named(self):
        wrong = [{"pointer": f"/x/{k}", "detail": "is NaN"} for k in range(5)]
        with pytest.raises(Refused, match=r"/x/0 is NaN; /x/1 is NaN; /x/2 is NaN; \.\.\."):
            decode_reply(GET, reply(422, {"title": "t", "errors": wrong}, "application/json"))

    @pytest.mark.parametrize("errors", [["upstream"], {"a": 1}, "upstream", 3, None])
    def test_problem_of_a_proxy_is_refused(self, errors: Any):
        with pytest.raises(Refused, match="502"):
            decode_reply(GET, reply(502, {"errors": errors}, "application/json"))

    @pytest.mark.parametrize("content", [b"", b"<html>", b"\xff\xff", b'"text"', b"[1]"])
    @pytest.mark.parametrize("kind", ["text/html", "application/json", MSGPACK, ""])
    def test_refusals_of_whatever_form(self, content: bytes, kind: str):
        with pytest.raises(Refused, match="502"):
            decode_reply(GET, Reply(502, "Bad Gateway", {"content-type": kind}, content))

    def test_what_cannot_be_read_is_lost(self):
        with pytest.raises(AnswerLost, match="cannot be read"):
            decode_reply(GET, Reply(200, "OK", {"content-type": MSGPACK}, b"\xc1"))
        with pytest.raises(ClientError, match="is this wolfstream"):
            decode_reply(GET, Reply(200, "OK", {"content-type": "text/html"}, b"<html>"))

    @pytest.mark.parametrize("host", ["a..b", "a" * 64, ".de", ""], ids=str)
    def test_impossible_hosts_are_refused(self, host: str):
        with pytest.raises(ClientError, match="is not the URL of a server"):
            check_url(f"http://{host}:8000")

    @pytest.mark.parametrize("host", ["a.de.", "[::1]", "127.0.0.1", "a" * 63, "ä.de"], ids=str)
    def test_possible_hosts_are_taken(self, host: str):
        assert check_url(f"http://{host}:8000/") == f"http://{host}:8000"

    def test_scheme_may_be_in_capitals(self):
        assert check_url("HTTPS://a.de/") == "https://a.de"

    def test_tls_is_for_https(self):
        assert tls_context("http://example.com", verify=True) is False
        context = tls_context("https://example.com", verify=False)
        assert context
        assert tls_context("https://example.com", verify=context) is context

    def test_missing_certificates_are_named(self):
        with pytest.raises(FileNotFoundError, match="missing"):
            tls_context("https://example.com", verify="missing.pem")


class InMemory:
    """Does the steps of calls over a pretend model; faults fall as the script says."""

    def __init__(self, model: PretendModel) -> None:
        self.model = model
        self.slept = 0.0
        self.asked: list[Request] = []

    def __call__(self, effect: Effect) -> Any:
        if isinstance(effect, Pause):
            self.slept += effect.seconds
            return None
        assert isinstance(effect, Request)
        self.asked.append(effect)
        fault = self.model.fault()
        if fault == "unreachable":
            raise Unreachable
        if fault in ("busy", "gateway"):
            return reply(503, {"title": "Full"}, "application/problem+json", retry_after="0")
        body, key = msgpack.unpackb(effect.body or b""), effect.headers["idempotency-key"]
        if fault == "too large" and len(body["y"]) > 1 and not self.model.knows(key):
            return reply(413, {"title": "Too large"}, "application/problem+json")
        answer = self.model.learn(key, body)
        if fault == "lost":
            raise AnswerLost
        return Reply(200, "OK", {"content-type": MSGPACK}, msgpack.packb(answer))


faults = st.lists(st.sampled_from(["", "unreachable", "lost", "busy", "too large"]), max_size=40)


class TestCalls:
    @given(faults, st.integers(1, 40), st.integers(1, 12), st.booleans())
    def test_each_sample_is_learned_once_in_order(
        self, script: list[str], samples: int, batch: int, iterated: bool
    ):
        server = InMemory(PretendModel(script))
        y = list(range(samples))
        X: Any = np.zeros((samples, 1))
        result = run(
            SampleCalls(Retry(60)).learn(
                "m", iter(X) if iterated else X, y, batch=batch, idempotency_key="k"
            ),
            server,
        )
        assert server.model.learned == y
        assert (result.learned, result.sequence) == (samples, samples)
        assert result.predictions.tolist() == y
        assert all(len(msgpack.unpackb(r.body or b"")["y"]) <= batch for r in server.asked)
        before = len(server.model.keys)
        again = run(SampleCalls(Retry(60)).learn("m", X, y, batch=batch), server)
        assert again.sequence == 2 * samples
        assert not set(server.model.keys[before:]) & set(server.model.keys[:before])

    def test_without_patience_the_first_failure_is_told(self):
        server = InMemory(PretendModel(["", "lost"]))
        with pytest.raises(AnswerLost) as caught:
            run(
                SampleCalls(Retry(0)).learn("m", np.zeros((4, 1)), [0, 1, 2, 3], batch=2),
                server,
            )
        assert (caught.value.acknowledged, server.slept) == (2, 0.0)
        assert server.model.learned == [0, 1, 2, 3]

    def test_samples_that_end_in_an_error_say_how_far_they_came(self):
        server = InMemory(PretendModel())
        with pytest.raises(ValueError, match="different lengths") as caught:
            run(
                SampleCalls(Retry(60)).learn(
                    "m",
                    iter(np.zeros((9, 1))),
                    iter([0, 1]),
                    head="asset",
                    batch=1,
                    idempotency_key="k",
                ),
                server,
            )
        assert caught.value.__notes__ == ["2 samples were acknowledged, under idempotency key 'k'"]

    def test_a_rollback_whose_answer_was_lost_is_not_asked_for_again(self):
        asked: list[Effect] = []

        def lose(effect: Effect) -> Any:
            asked.append(effect)
            raise AnswerLost

        with pytest.raises(AnswerLost):
            run(ModelCalls(Retry(60)).rollback("m", 5), lose)
        assert len(asked) == 1

    def test_a_second_attempt_to_delete_may_find_nothing(self):
        replies = [AnswerLost(), reply(404, {}, "application/problem+json")]

        def answer(effect: Effect) -> Any:
            if isinstance(effect, Pause):
                return None
            response = replies.pop(0)
            if isinstance(response, ClientError):
                raise response
            return response

        run(ModelCalls(Retry(60)).delete("m"), answer)
        replies.append(reply(404, {}, "application/problem+json"))
        with pytest.raises(Refused, match="404"):
            run(ModelCalls(Retry(60)).delete("m"), answer)

    def test_a_job_that_goes_on_is_said_to(self):
        job = {"job": "a", "status": "running", "error": None}

        def answer(effect: Effect) -> Any:
            return None if isinstance(effect, Pause) else reply(202, job)

        with pytest.raises(NotDone, match="still running") as caught:
            run(ModelCalls(Retry(60)).refit("m", wait_seconds=1.0), answer)
        assert caught.value.job == job

    def test_new_class_restarts_predictions(self):
        classes: list[list[str]] = [["a", "b"], ["a", "b", "c"], ["a", "b", "c"], ["a", "b", "c"]]
        sizes: list[int] = []

        def answer(effect: Effect) -> Any:
            assert isinstance(effect, Request)
            n = msgpack.unpackb(effect.body or b"")["x"]["shape"][0]
            if not sizes:
                sizes.append(n)
                return reply(413, {"title": "Too large"}, "application/problem+json")
            sizes.append(n)
            known = classes.pop(0)
            decision = [[0.0] * 3] * n if len(known) > 2 else [0.0] * n
            response = {"sequence": 9 - n, "head": "asset", "classes": known}
            return reply(data={**response, "prediction": ["a"] * n, "decision": decision})

        said = run(SampleCalls(Retry(60)).predict("m", np.zeros((5, 2))), answer)
        assert sizes == [5, 3, 2, 3, 2]
        assert (said.decisions.shape, said.sequence) == ((5, 3), 6)
