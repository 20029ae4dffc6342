"""The error tree: every refusal has a name of its own and a status."""

import re

import pytest

from wolfstream.service import errors
from wolfstream.service.errors import Refusal, StartupError, Unavailable, WolfstreamError
from wolfstream.service.web.formats.problems import problem_of
from wolfstream.service.web.formats.wire import problem

STATUS = {
    "unreadable": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "foreign-host": 403,
    "foreign-origin": 403,
    "unknown-model": 404,
    "unknown-job": 404,
    "unknown-snapshot": 404,
    "too-many-models": 409,
    "model-exists": 409,
    "state-exists": 409,
    "id-taken": 409,
    "follows": 409,
    "not-following": 409,
    "unusable-state": 422,
    "unusable-snapshot": 409,
    "no-such-head": 409,
    "untrained": 409,
    "too-slow": 408,
    "another-state": 412,
    "not-leader": 421,
    "too-large": 413,
    "head-too-large": 431,
    "unsupported-format": 415,
    "invalid": 422,
    "idempotency-key-reused": 422,
    "invalid-samples": 422,
    "refit-failed": 422,
    "quota-exceeded": 429,
    "unavailable": 503,
    "too-many-connections": 503,
    "queue-full": 503,
    "memory-full": 503,
    "jobs-full": 503,
    "refit-stopped": 503,
    "not-ready": 503,
    "not-reached": 503,
    "lags-behind": 503,
    "storage-failed": 503,
    "in-doubt": 503,
    "answer-missing": 503,
    "server-failed": 503,
    "not-yet-learned": 503,
    "snapshot-failed": 503,
    "model-broken": 503,
    "models-full": 507,
    "out-of-memory": 503,
}


def below(kind: type[Refusal]) -> list[type[Refusal]]:
    return [c for child in kind.__subclasses__() for c in (child, *below(child))]


# Those of the program; a test elsewhere may define one for itself.
ALL = [kind for kind in below(Refusal) if kind.__module__ == errors.__name__]
each_refusal = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)


def test_the_table_of_statuses_is_complete():
    assert {kind.slug for kind in ALL} == set(STATUS)


def test_every_refusal_is_imported_from_the_package():
    assert [kind for kind in ALL if getattr(errors, kind.__name__, None) is not kind] == []


def test_what_became_of_the_samples_is_said():
    outcomes = {kind.slug: kind.outcome for kind in ALL if kind.outcome != "not-learned"}
    assert outcomes == {
        "in-doubt": "unknown",
        "out-of-memory": "unknown",
        "answer-missing": "durable",
        "not-yet-learned": "durable",
    }
    assert problem_of(errors.QueueFull("full"))["outcome"] == "not-learned"


def test_no_two_refusals_share_a_slug_or_a_title():
    assert len({kind.slug for kind in [Refusal, *ALL]}) == len(ALL) + 1
    assert len({kind.title for kind in [Refusal, *ALL]}) == len(ALL) + 1


@each_refusal
def test_slug_and_title_are_its_own(kind: type[Refusal]):
    assert {"slug", "title"} <= vars(kind).keys()
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.slug)
    assert kind.title[0].isupper()


@each_refusal
def test_status(kind: type[Refusal]):
    assert problem_of(kind("detail"))["status"] == STATUS[kind.slug]


@each_refusal
def test_only_what_may_succeed_later_says_when_to_try(kind: type[Refusal]):
    says_when = "retry_after_seconds" in problem(kind("detail"), 400)
    assert says_when == issubclass(kind, Unavailable) == (STATUS[kind.slug] in (421, 429, 503))
    if issubclass(kind, Unavailable):
        assert kind.retry_after_seconds >= 1


@each_refusal
def test_carries_its_detail_and_errors(kind: type[Refusal]):
    wrong: list[errors.SampleError] = [{"row": 3, "pointer": "/x/3/7", "detail": "is NaN"}]
    assert str(kind("what happened")) == kind("what happened").detail == "what happened"
    assert kind("what happened").errors == []
    assert kind("what happened", wrong).errors == wrong


@each_refusal
def test_stands_in_the_tree_of_the_module(kind: type[Refusal]):
    assert re.search(rf"[├└]── {kind.__name__}\b", errors.__doc__ or "")


def test_the_tree_names_nothing_else():
    named = set(re.findall(r"[├└]── (\w+)", errors.__doc__ or ""))
    assert named == {kind.__name__ for kind in [StartupError, Refusal, *ALL]}


def test_a_failed_start_is_not_a_refusal():
    assert issubclass(StartupError, WolfstreamError)
    assert not issubclass(StartupError, Refusal)
