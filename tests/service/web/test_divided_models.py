"""The calls of models with several learners: which partition learns, and what is refused."""

from typing import Any

import pytest

from wolfstream.service.errors import Divided
from wolfstream.service.storage.partitions import partition_names, partitioned_model
from wolfstream.service.web.layers.divided_models import DividedModels


class Fleet:
    """A director that knows one model with four learners."""

    def partitions(self, name: str) -> list[str]:
        return partition_names(name, 4) if name == "hot" else []

    def partitioned_model(self, name: str) -> str | None:
        return partitioned_model(name)


@pytest.fixture
def divided() -> DividedModels:
    return DividedModels(Fleet())  # type: ignore[arg-type]


def call(path: str, method: str = "POST", **headers: str) -> dict[str, Any]:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"method": method, "path": path, "raw_path": path.encode(), "headers": raw}


class TestRouted:
    def test_takes_turns_without_a_key(self, divided: DividedModels):
        names = [divided.routed("hot", call("/v1/models/hot/samples"))[0] for _ in range(8)]
        assert sorted(names) == sorted(2 * partition_names("hot", 4))

    def test_goes_by_the_key_in_either_notation(self, divided: DividedModels):
        found = {}
        for number in range(40):
            keys = f"key-{number}", f'"key-{number}"'
            sent = [call("/v1/models/hot/asset", idempotency_key=key) for key in keys]
            first, again = (divided.routed("hot", one)[0] for one in sent)
            assert first == again
            found[first] = number
        assert sorted(found) == partition_names("hot", 4)

    def test_sends_the_call_as_one_of_the_partition(self, divided: DividedModels):
        name, scope = divided.routed("hot", call("/v1/models/hot/samples"))
        assert scope["path"] == f"/v1/models/{name}/samples"
        assert scope["raw_path"] == scope["path"].encode()

    @pytest.mark.parametrize(
        ("name", "path", "method"),
        [
            ("hot", "/v1/models/hot/predict", "POST"),
            ("hot", "/v1/models/hot", "GET"),
            ("cold", "/v1/models/cold/samples", "POST"),
            ("hot:1", "/v1/models/hot:1/samples", "POST"),
        ],
    )
    def test_leaves_other_calls_alone(
        self, divided: DividedModels, name: str, path: str, method: str
    ):
        scope = call(path, method)
        assert divided.routed(name, scope) == (name, scope)


class TestCheck:
    @pytest.mark.parametrize(
        "refused",
        [
            call("/v1/models/hot/labels"),
            call("/v1/models/hot/stream", "GET"),
            call("/v1/models/hot/samples", if_match='"a:1"'),
        ],
        ids=["labels", "stream", "if-match"],
    )
    def test_refuses_what_is_about_one_learner(self, divided: DividedModels, refused: Any):
        with pytest.raises(Divided):
            divided.check("hot", refused)
        divided.check("cold", refused)

    def test_lets_clients_only_look_at_partitions(self, divided: DividedModels):
        divided.check_sent("hot:0", call("/v1/models/hot:0", "GET"))
        with pytest.raises(Divided, match="send calls to 'hot'"):
            divided.check_sent("hot:0", call("/v1/models/hot:0/samples"))
