"""A fitted estimator as a model file and back: the same answers, and the same learning after it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError

import wolfstream
from tests.service.specs import PAPERS, read_papers_spec
from tests.service.streams import three_classes
from wolfstream import (
    AssetClassifier,
    AssetRegressor,
    EnclosingBall,
    FrankWolfeClassifier,
    SemiparametricSVR,
    SFWClassifier,
    SFWRegressor,
    StreamClassifier,
    StreamRegressor,
)
from wolfstream.service.heads.kinds import fit_window
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.offline.conversion import NoCounterpart
from wolfstream.service.recovery.model_files import ModelFileError, load_model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec
from wolfstream.service.storage.snapshot_format import State, write_state
from wolfstream.solver.prepare.named_rows import named_rows

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(160, 4))
ASKED = RANDOM.normal(size=(40, 4))
Y = np.where(X[:, 0] > 0.3, "damp", np.where(X[:, 1] > 0.0, "dry", "hot"))
MORE = np.where(ASKED[:, 0] > 0.0, "dry", "cold")
CLASSIFIERS = {
    "SFWClassifier": lambda: SFWClassifier(random_state=0, C=2.0, class_weight={"dry": 3.0}),
    "SFWClassifier, sfw": lambda: SFWClassifier("sfw", kernel="polynomial", max_size=64),
    "AssetClassifier": lambda: AssetClassifier(dimension=16, random_state=1, epochs=2),
    "AssetClassifier, Fourier": lambda: AssetClassifier(features="fourier", dimension=16, epochs=1),
    "AssetClassifier, linear": lambda: AssetClassifier(
        "asset*", features="identity", kernel="linear", average=False, epochs=1
    ),
    "StreamClassifier": lambda: StreamClassifier(seed=4),
    "StreamClassifier, ASSET": lambda: StreamClassifier(head="asset", missing="indicator"),
    "StreamClassifier, temporal": lambda: StreamClassifier(temporal=True),
}
REGRESSORS = {
    "AssetRegressor": lambda: AssetRegressor(dimension=16, random_state=1, epochs=2, epsilon=0.05),
    "AssetRegressor, horizon": lambda: AssetRegressor(features="fourier", horizon=50, epochs=1),
    "SFWRegressor": lambda: SFWRegressor(random_state=0, C=2.0, epsilon=0.02, epochs=2),
    "SFWRegressor, sfw": lambda: SFWRegressor("sfw", kernel="polynomial", max_size=64),
    "StreamRegressor": lambda: StreamRegressor(seed=4),
}
FORMS = {"dense": np.asarray, "sparse": csr_matrix}


def answers(model: Any, rows: Any) -> NDArray[Any]:
    decide = getattr(model, "decision_function", model.predict)
    return np.asarray(decide(rows))


def saved_and_loaded(estimator: Any, path: Path) -> Any:
    wolfstream.save(estimator, path)
    return wolfstream.load(path)


def served(path: Path, rows: Any) -> Any:
    """What a server that has loaded the file says."""
    model = load_model(path).model
    return model.published.predict(model.spec.serve, model.published.head_rows(rows))


class TestRoundTrip:
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("kind", CLASSIFIERS)
    def test_a_classifier_answers_and_learns_as_before(self, kind: str, form: str, tmp_path: Path):
        estimator, of = CLASSIFIERS[kind](), FORMS[form]
        estimator.fit(of(X), Y)
        again = saved_and_loaded(estimator, tmp_path / "a.model")
        assert type(again) is type(estimator)
        assert again.classes_.tolist() == estimator.classes_.tolist()
        assert again.n_features_in_ == 4
        np.testing.assert_array_equal(answers(again, of(ASKED)), answers(estimator, of(ASKED)))
        for each in (estimator, again):
            each.partial_fit(of(ASKED), MORE)
        np.testing.assert_array_equal(answers(again, of(X)), answers(estimator, of(X)))

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("kind", REGRESSORS)
    def test_a_regressor_answers_and_learns_as_before(self, kind: str, form: str, tmp_path: Path):
        estimator, of = REGRESSORS[kind](), FORMS[form]
        estimator.fit(of(X), X[:, 0] + 100.0)
        again = saved_and_loaded(estimator, tmp_path / "a.model")
        assert type(again) is type(estimator)
        np.testing.assert_array_equal(answers(again, of(ASKED)), answers(estimator, of(ASKED)))
        for each in (estimator, again):
            each.partial_fit(of(ASKED), ASKED[:, 1])
        np.testing.assert_array_equal(answers(again, of(X)), answers(estimator, of(X)))

    @pytest.mark.parametrize(
        "labels", [np.array([3, -1]), np.array([False, True]), np.array(["b", "a"])]
    )
    def test_labels_keep_their_types(self, labels: NDArray[Any], tmp_path: Path):
        y = labels[(X[:, 0] > 0.0).astype(int)]
        for estimator in (SFWClassifier(), StreamClassifier()):
            again = saved_and_loaded(estimator.fit(X, y), tmp_path / "a.model")
            assert again.classes_.dtype == estimator.classes_.dtype
            np.testing.assert_array_equal(again.predict(X), estimator.predict(X))

    def test_classes_that_were_declared_stay_the_only_ones(self, tmp_path: Path):
        estimator = StreamClassifier().partial_fit(X, Y, classes=["hot", "dry", "damp", "wet"])
        again = saved_and_loaded(estimator, tmp_path / "a.model")
        np.testing.assert_array_equal(again.predict_proba(ASKED), estimator.predict_proba(ASKED))
        with pytest.raises(ValueError, match="outside classes"):
            again.partial_fit(ASKED, MORE)

    def test_the_first_samples_of_a_table_may_still_change_its_columns(self, tmp_path: Path):
        rows = [{"a": float(a), "b": "x" if b > 0 else "y"} for a, b in X[:20, :2]]
        estimator = StreamClassifier().partial_fit(rows, Y[:20])
        again = saved_and_loaded(estimator, tmp_path / "a.model")
        more = [{"a": 1.0, "b": "z", "c": 2.0}, {"a": -1.0, "b": "x", "c": 0.5}]
        for each in (estimator, again):
            each.partial_fit(more, ["hot", "cold"])
        np.testing.assert_array_equal(again.predict_proba(rows), estimator.predict_proba(rows))
        assert again.feature_names_in_.tolist() == ["a", "b", "c"]

    @pytest.mark.parametrize("learned", [60, 1200])
    @pytest.mark.parametrize("codes", ["crossed", "numbers"])
    def test_numbers_that_are_codes_stay_so(self, codes: Any, learned: int, tmp_path: Path):
        """Before they are found among the first samples, and after."""
        rows = np.column_stack([np.arange(1600) % 24, RANDOM.normal(size=1600)])
        y = np.where(rows[:, 0] % 5 < 2, "busy", "quiet")
        own = StreamClassifier().partial_fit(rows[:10], y[:10])
        own.model.__setstate__(own.model.__getstate__() | {"codes": codes})
        own.partial_fit(rows[10:learned], y[10:learned])
        other = saved_and_loaded(own, tmp_path / "of.model")
        for one in (own, other):
            one.partial_fit(rows[learned:], y[learned:])
        assert np.array_equal(own.predict_proba(rows), other.predict_proba(rows))

    def test_sparse_rows_by_name_stay_so(self, tmp_path: Path):
        rows = [{f"word{i % 50}": 1.0, f"word{i % 7}": 2.0} for i in range(300)]
        y = ["even" if i % 2 else "odd" for i in range(300)]
        estimator = StreamClassifier().partial_fit(rows, y)
        again = saved_and_loaded(estimator, tmp_path / "a.model")
        np.testing.assert_array_equal(again.predict_proba(rows), estimator.predict_proba(rows))

    def test_a_model_of_one_class_waits_for_another(self, tmp_path: Path):
        estimator = SFWClassifier().partial_fit(X[:5], ["a"] * 5)
        again = saved_and_loaded(estimator, tmp_path / "a.model")
        for each in (estimator, again):
            each.partial_fit(X[5:9], ["b"] * 4)
        np.testing.assert_array_equal(answers(again, X), answers(estimator, X))


class TestServed:
    @pytest.mark.parametrize("kind", ["StreamClassifier", "StreamClassifier, ASSET"])
    def test_the_default_model_has_the_same_bits(self, kind: str, tmp_path: Path):
        estimator = CLASSIFIERS[kind]().fit(X, Y)
        wolfstream.save(estimator, tmp_path / "a.model")
        said = served(tmp_path / "a.model", ASKED)
        assert said.prediction == estimator.predict(ASKED).tolist()
        classes = load_model(tmp_path / "a.model").model.published.heads["adaptive"].classes
        order = [classes.index(label) for label in estimator.classes_.tolist()]
        probability = np.asarray(said.head_answer.probability)[:, order]
        np.testing.assert_array_equal(probability, estimator.predict_proba(ASKED))

    def test_it_goes_on_in_the_same_bits(self, tmp_path: Path):
        """In blocks of the same lengths, as the estimator's calls."""
        estimator = StreamClassifier().fit(X, Y)
        wolfstream.save(estimator, tmp_path / "a.model")
        learner = load_model(tmp_path / "a.model").learner
        learner.absorb("working_set", Samples(ASKED, MORE.tolist()))
        learner.publish()
        estimator.partial_fit(ASKED, MORE)
        assert learner.sequence == 200
        published = learner.model.published
        said = published.predict("adaptive", published.head_rows(X))
        order = [published.heads["adaptive"].classes.index(k) for k in estimator.classes_.tolist()]
        np.testing.assert_array_equal(
            np.asarray(said.head_answer.probability)[:, order], estimator.predict_proba(X)
        )

    @pytest.mark.parametrize("kind", [k for k in CLASSIFIERS if k.startswith("Asset")])
    def test_asset_has_the_same_bits(self, kind: str, tmp_path: Path):
        estimator = CLASSIFIERS[kind]().fit(X, Y)
        wolfstream.save(estimator, tmp_path / "a.model")
        said = served(tmp_path / "a.model", ASKED)
        np.testing.assert_array_equal(said.decision, estimator.decision_function(ASKED))

    @pytest.mark.parametrize("kind", [k for k in REGRESSORS if not k.startswith("SFW")])
    def test_numbers_have_the_same_bits(self, kind: str, tmp_path: Path):
        estimator = REGRESSORS[kind]().fit(X, X[:, 0])
        wolfstream.save(estimator, tmp_path / "a.model")
        assert served(tmp_path / "a.model", ASKED).prediction == estimator.predict(ASKED).tolist()

    @pytest.mark.parametrize("kind", ["SFWClassifier", "SFWClassifier, sfw", "FrankWolfe"])
    def test_a_set_answers_with_its_own_rounding(self, kind: str, tmp_path: Path):
        """A server's kernel values have the precision that learning needs."""
        made = {**CLASSIFIERS, "FrankWolfe": lambda: FrankWolfeClassifier(C=4.0, tol=1e-3)}
        estimator = made[kind]().fit(X, np.where(Y == "dry", "dry", "other"))
        wolfstream.save(estimator, tmp_path / "a.model")
        said = served(tmp_path / "a.model", ASKED)
        assert said.prediction == estimator.predict(ASKED).tolist()
        np.testing.assert_allclose(
            said.decision, estimator.decision_function(ASKED), rtol=1e-5, atol=1e-6
        )

    @pytest.mark.parametrize("kind", ["SFWRegressor", "SFWRegressor, sfw"])
    def test_a_set_of_numbers_answers_with_its_own_rounding(self, kind: str, tmp_path: Path):
        estimator = REGRESSORS[kind]().fit(X, X[:, 0])
        wolfstream.save(estimator, tmp_path / "a.model")
        np.testing.assert_allclose(
            served(tmp_path / "a.model", ASKED).prediction,
            estimator.predict(ASKED),
            rtol=1e-5,
            atol=1e-6,
        )

    def test_a_solution_goes_on_as_a_working_set(self, tmp_path: Path):
        estimator = FrankWolfeClassifier(C=4.0, tol=1e-3).fit(X, Y)
        again = saved_and_loaded(estimator, tmp_path / "a.model")
        assert isinstance(again, SFWClassifier)
        np.testing.assert_array_equal(again.predict(ASKED), estimator.predict(ASKED))
        again.partial_fit(ASKED, MORE)
        assert "cold" in again.classes_

    def test_columns_of_a_frame_keep_their_names(self, tmp_path: Path):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
        estimator = SFWClassifier().fit(frame, Y)
        wolfstream.save(estimator, tmp_path / "a.model")
        rows = named_rows([dict(zip("dcba", row[::-1], strict=True)) for row in ASKED.tolist()])
        asked = pandas.DataFrame(ASKED, columns=["a", "b", "c", "d"])
        expected = estimator.predict(asked).tolist()
        assert served(tmp_path / "a.model", rows).prediction == expected
        assert wolfstream.load(tmp_path / "a.model").predict(asked).tolist() == expected

    def test_the_sequence_counts_what_was_learned(self, tmp_path: Path):
        wolfstream.save(SFWClassifier(epochs=2).fit(X, Y), tmp_path / "a.model")
        assert load_model(tmp_path / "a.model").model.published.sequence == 320


class TestSemiparametric:
    BASIS = ("constant", {"type": "sin", "feature": 1, "period": 2.0})

    def fitted(self, of: Any = np.asarray, **parameters: Any) -> SemiparametricSVR:
        model = SemiparametricSVR(self.BASIS, **({"gamma": 0.5, "epsilon": 0.02} | parameters))
        return model.fit(of(X), 50.0 * np.sin(X[:, 0]), np.linspace(0.5, 2.0, len(X)))

    def test_it_answers_as_before(self, tmp_path: Path):
        estimator = self.fitted()
        again = saved_and_loaded(estimator, tmp_path / "a.model")
        assert isinstance(again, SemiparametricSVR)
        np.testing.assert_array_equal(again.predict(ASKED), estimator.predict(ASKED))
        assert served(tmp_path / "a.model", ASKED).prediction == estimator.predict(ASKED).tolist()
        for name in ("beta_", "dual_coef_", "support_vectors_"):
            np.testing.assert_array_equal(getattr(again, name), getattr(estimator, name))
        for name in ("C", "epsilon", "tol", "gamma_", "n_iter_", "kkt_violation_"):
            assert getattr(again, name) == pytest.approx(getattr(estimator, name), rel=1e-12)

    def test_a_second_round_changes_nothing(self, tmp_path: Path):
        again = saved_and_loaded(self.fitted(), tmp_path / "a.model")
        last = saved_and_loaded(again, tmp_path / "b.model")
        np.testing.assert_array_equal(last.predict(ASKED), again.predict(ASKED))
        for mine, other in zip(last.samples_, again.samples_, strict=True):
            np.testing.assert_array_equal(mine, other)

    def test_a_server_refits_it_from_the_same_samples(self, tmp_path: Path):
        estimator = self.fitted(tol=1e-7)
        wolfstream.save(estimator, tmp_path / "a.model")
        learner = load_model(tmp_path / "a.model").learner
        learner.adopt("semiparametric", fit_window(learner.window(), "a refit", lambda _: None))
        learner.publish()
        published = learner.model.published
        said = published.predict("semiparametric", published.head_rows(ASKED)).prediction
        assert learner.sequence == len(X)
        np.testing.assert_allclose(said, estimator.predict(ASKED), rtol=1e-4, atol=1e-3)

    def test_what_no_server_fits(self, tmp_path: Path):
        own = SemiparametricSVR([lambda rows: np.abs(rows[:, 0])]).fit(X, X[:, 0])
        with pytest.raises(NoCounterpart, match=r"is a function: only bases given by name"):
            wolfstream.save(own, tmp_path / "a.model")
        with pytest.raises(NoCounterpart, match="its rows are sparse"):
            wolfstream.save(self.fitted(csr_matrix), tmp_path / "a.model")
        with pytest.raises(ValueError, match="/semiparametric/tol"):
            wolfstream.save(self.fitted(tol=1e-12, max_iter=10_000), tmp_path / "a.model")
        assert not list(tmp_path.iterdir())

    def test_a_head_without_a_fit_is_no_estimator(self, tmp_path: Path):
        spec = read_papers_spec(
            {"task": "regression", "working_set": None, "asset": None, "semiparametric": {}}
        )
        learner = Learner(Model(1, "m", spec))
        learner.absorb("semiparametric", Samples(X, X[:, 0].copy()))
        write_state(tmp_path / "a.model", State(*learner.state()))
        with pytest.raises(NoCounterpart, match="has not been fitted yet"):
            wolfstream.load(tmp_path / "a.model")


class TestRefused:
    @pytest.mark.parametrize("make", [*CLASSIFIERS.values(), *REGRESSORS.values()])
    def test_what_is_not_fitted(self, make: Any, tmp_path: Path):
        with pytest.raises(NotFittedError):
            wolfstream.save(make(), tmp_path / "a.model")
        assert not list(tmp_path.iterdir())

    def test_another_estimator_is_told_what_can_be_saved(self, tmp_path: Path):
        ball = EnclosingBall().fit(X)
        with pytest.raises(TypeError, match="EnclosingBall cannot be saved: StreamClassifier, "):
            wolfstream.save(ball, tmp_path / "a.model")

    def test_labels_that_no_server_takes(self, tmp_path: Path):
        estimator = SFWClassifier().fit(X, np.where(X[:, 0] > 0.0, "a" * 300, "b"))
        with pytest.raises(ValueError, match=r"the label 'a+ is longer.* y\.astype\(str\)"):
            wolfstream.save(estimator, tmp_path / "a.model")

    def test_parameters_that_no_server_takes(self, tmp_path: Path):
        estimator = SFWClassifier(corrective_steps=500).fit(X, Y)
        with pytest.raises(ValueError, match="/working_set/corrective_steps"):
            wolfstream.save(estimator, tmp_path / "a.model")
        assert not list(tmp_path.iterdir())

    def test_weights_that_the_solution_does_not_say(self, tmp_path: Path):
        estimator = FrankWolfeClassifier(class_weight="balanced").fit(X, Y)
        with pytest.raises(NoCounterpart, match="says no weights"):
            wolfstream.save(estimator, tmp_path / "a.model")

    def learned(self, spec: Any, calls: Any) -> Learner:
        learner = Learner(Model(1, "m", spec))
        for head in calls:
            samples = three_classes(40)
            learner.absorb(head, samples)
        return learner

    @pytest.mark.parametrize(
        ("given", "calls", "said"),
        [
            ({}, (), "learned nothing"),
            ({}, ("working_set", "asset"), "both learned"),
            ({"kernel": {"type": "rbf", "gamma": 2.0}}, ("asset",), "default spec"),
            ({"adaptive": {"horizons": []}}, ("asset",), "default spec"),
            ({**PAPERS}, ("working_set",), "working_set and asset"),
            ({**PAPERS, "asset": None}, ("working_set",), "gamma is still being found"),
            ({"prepare": {}, "adaptive": None, "asset": None}, ("working_set",), "prepare"),
        ],
    )
    def test_models_that_are_no_estimator(self, given: Any, calls: Any, said: str, tmp_path: Path):
        learner = self.learned(read_spec(given), calls)
        write_state(tmp_path / "a.model", State(*learner.state()))
        with pytest.raises(NoCounterpart, match=said) as caught:
            wolfstream.load(tmp_path / "a.model")
        assert str(tmp_path / "a.model") in str(caught.value)

    def test_a_damaged_file(self, tmp_path: Path):
        wolfstream.save(SFWClassifier().fit(X, Y), tmp_path / "a.model")
        content = bytearray((tmp_path / "a.model").read_bytes())
        content[-100] ^= 1
        (tmp_path / "a.model").write_bytes(content)
        with pytest.raises(ModelFileError, match="does not match its checksum"):
            wolfstream.load(tmp_path / "a.model")

    def test_a_served_set_of_names_has_no_arrays(self, tmp_path: Path):
        spec = read_papers_spec({"asset": None, "kernel": {"type": "linear"}})
        learner = Learner(Model(1, "m", spec))
        rows = named_rows([{"wet": 1.0}, {"dry": 2.0}])
        learner.absorb("working_set", Samples(rows, ["a", "b"]))
        write_state(tmp_path / "a.model", State(*learner.state()))
        with pytest.raises(NoCounterpart, match="sparse and have names"):
            wolfstream.load(tmp_path / "a.model")
