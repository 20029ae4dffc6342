"""The defaults of a spec are those of the default model in process."""

import pytest

from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.stream.parameters import AssetParameters, SetParameters


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_spec_and_the_library_have_the_same_defaults(task: str):
    spec = ModelSpec.model_validate({"task": task})
    asset = AssetParameters()._asdict()
    if task == "classification":
        asset["epsilon"] = None
        assert spec.working_set is not None
        given = spec.working_set.model_dump(exclude={"class_weight", "epsilon"})
        assert given == SetParameters()._asdict()
    assert spec.asset is not None
    assert spec.asset.model_dump(exclude={"class_weight"}) == asset
