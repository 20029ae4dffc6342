"""Who is to lead a model: spread evenly, and where a replica leaves its own models move."""

import pytest

from tests.service.nats import MISSING

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from service.fleet.members import Replica, ranked

LIVING = [Replica(f"http://10.0.0.{number}:8000", True, {}, {}) for number in range(1, 4)]
NAMES = [f"model-{number}" for number in range(300)]


def leaders(living: list[Replica]) -> dict[str, str]:
    return {name: ranked(name, living)[0].url for name in NAMES}


def test_models_are_spread_evenly():
    counts = [list(leaders(LIVING).values()).count(one.url) for one in LIVING]
    assert all(75 <= count <= 125 for count in counts)


def test_a_replica_that_leaves_moves_its_own_models_to_those_who_stood_by():
    before, after = leaders(LIVING), leaders(LIVING[1:])
    for name in NAMES:
        first, second, *_ = ranked(name, LIVING)
        stays = before[name] == first.url != LIVING[0].url
        assert after[name] == (first.url if stays else second.url)


def test_one_that_takes_no_models_leads_none():
    leaving = [LIVING[0]._replace(ready=False), *LIVING[1:]]
    assert leaders(leaving) == leaders(LIVING[1:])
