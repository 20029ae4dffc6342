"""Models that learn parts of a stream side by side become one."""

import copy

import numpy as np
import pytest

from tests.solver.streams import clusters, sparse
from wolfstream.solver.prepare.row_form import PreparationParameters
from wolfstream.solver.stream.merge import merge, sibling
from wolfstream.solver.stream.model import StreamModel

FIRST, ALL = 200, 1000


def samples():
    X, codes = clusters(58, ALL + 400, n_features=4, n_classes=3, noise=0.0, apart=3.0)
    return X, [f"class {code}" for code in codes]


def model(head="working_set", task="classification", temporal=False):
    return StreamModel(task, head, preparing=PreparationParameters(), temporal=temporal, seed=0)


def parts(head="working_set", kind=np.asarray):
    """Two models: all of the first samples, and in turn the others."""
    X, y = samples()
    first = model(head)
    first.absorb(kind(X[:FIRST]), y[:FIRST])
    second = sibling(first)
    for one, start in ((first, FIRST), (second, FIRST + 1)):
        one.absorb(kind(X[start:ALL:2]), y[start:ALL:2])
    return [first, second]


def share_right(one, kind=np.asarray):
    X, y = samples()
    answer = one.view().predict(kind(X[ALL:]))
    return np.mean([answer.classes[k] for k in answer.prediction] == np.array(y[ALL:]))


@pytest.mark.parametrize("kind", [np.asarray, sparse], ids=["dense", "sparse"])
@pytest.mark.parametrize("head", ["working_set", "asset"])
def test_the_merged_model_predicts_about_as_one_of_all_samples(head, kind):
    X, y = samples()
    one = model(head)
    one.absorb(kind(X[:ALL]), y[:ALL])
    merged = merge(parts(head, kind))
    assert share_right(merged, kind) >= share_right(one, kind) - 0.01


def test_it_learns_on_and_is_saved_and_the_parts_stay():
    X, y = samples()
    each = parts()
    before = [one.view().predict(X).probability for one in each]
    merged = merge(each)
    other = copy.deepcopy(merged)
    for one in (merged, other):
        one.absorb(X[ALL:], y[ALL:])
    found = [one.view().predict(X).probability for one in (merged, other)]
    np.testing.assert_array_equal(*found)
    for one, answers in zip(each, before, strict=True):
        np.testing.assert_array_equal(one.view().predict(X).probability, answers)


def test_a_part_that_learned_nothing_has_no_part_in_it():
    first = parts()[0]
    merged = merge([first, sibling(first)])
    assert share_right(merged) >= share_right(first) - 0.01


def test_its_scores_count_the_samples_of_all():
    each = parts()
    judged = [
        one.view().heads["adaptive"].confidence.summary["samples"] for one in (*each, merge(each))
    ]
    assert judged[2] == judged[0] + judged[1] > 0


def test_a_new_class_of_one_part_is_a_class_of_the_merged_model():
    X, _ = samples()
    each = parts()
    each[1].absorb(X[:50] + 30.0, ["new"] * 50)
    answer = merge(each).view().predict(X[50:60] + 30.0)
    assert {answer.classes[k] for k in answer.prediction} == {"new"}


def test_models_that_cannot_be_merged_say_why():
    X, y = samples()
    values = model("asset", "regression")
    values.absorb(X[:300], X[:300, 0])
    with pytest.raises(ValueError, match="targets"):
        sibling(values)
    temporal = model(temporal=True)
    temporal.absorb(X[:300], y[:300])
    with pytest.raises(ValueError, match="labels before a row"):
        sibling(temporal)
    with pytest.raises(ValueError, match="learn more"):
        sibling(model())
    with pytest.raises(ValueError, match="none of the models"):
        merge([model(), model()])
    others = [model(), model("asset")]
    for one in others:
        one.absorb(X[:300], y[:300])
    with pytest.raises(ValueError, match="parameters differ"):
        merge(others)


def test_asset_that_has_not_settled_has_no_sibling():
    X, y = samples()
    early = StreamModel(
        "classification",
        "asset",
        preparing=PreparationParameters(codes="numbers"),
        temporal=False,
        seed=0,
    )
    early.absorb(X[:100], y[:100])
    with pytest.raises(ValueError, match="still choosing"):
        sibling(early)
