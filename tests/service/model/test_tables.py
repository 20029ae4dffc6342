"""Rows by name as tables: what a learner makes of them, live, in replay and after a restart."""

from typing import Any, ClassVar

import numpy as np
import pytest

from wolfstream.service.errors import Invalid, InvalidSamples
from wolfstream.service.model.draft import MOST_SUGGESTIONS, MOST_TEXT_COLUMNS, Draft, Limits
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.saved_rows import preparing
from wolfstream.service.recovery.model_files import ModelFileError, fill_model
from wolfstream.service.samples.record import as_recorded, from_record, to_record
from wolfstream.service.samples.validation import Samples, read_rows, read_samples
from wolfstream.service.spec.model import read_spec
from wolfstream.service.storage.snapshot_format import State
from wolfstream.solver.prepare import column_facts
from wolfstream.solver.prepare.row_form import PreparationParameters, RowForm
from wolfstream.solver.prepare.schema import SETTLING, Schema

QUICK: dict[str, Any] = {"working_set": None, "asset": {"dimension": 16}, "serve": "adaptive"}
LIMITS = Limits(classes=100, features=1000)
CITIES = ["Rome", "Oslo", "Lima"]


def learner_of(**spec: Any) -> Learner:
    return Learner(Model(1, "rooms", read_spec(QUICK | spec)))


def rooms(n: int, seed: int = 0) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    return [
        {
            "warmth": float(20 + random.normal()),
            "city": CITIES[random.integers(3)],
            "open": bool(k % 2),
        }
        for k in range(n)
    ]


def labels(rows: list[dict[str, Any]]) -> list[str]:
    return ["hot" if (row["warmth"] > 20) != (row["city"] == "Oslo") else "cold" for row in rows]


def samples(rows: list[Any], y: list[Any] | None = None, **more: Any) -> Samples:
    y = labels(rows) if y is None else y
    return as_recorded(read_samples({"x": rows, "y": y, **more}, prepared=True))


def learn(learner: Learner, given: Samples, block: int = 1000) -> list[Any]:
    predicted: list[Any] = []
    for start in range(0, len(given.y), block):
        part = given.part(start, min(start + block, len(given.y)))
        Draft(learner, LIMITS).add("asset", part)
        recorded = from_record(to_record(part))
        predicted += learner.absorb("asset", recorded).prediction
    learner.publish()
    return predicted


def ask(learner: Learner, rows: Any, **more: Any) -> list[list[float]]:
    published = learner.model.published
    X = published.head_rows(read_rows({"x": rows, **more}, prepared=True))
    return published.predict("adaptive", X).decision


def restored(learner: Learner) -> Learner:
    other = Learner(Model(1, "rooms", learner.model.spec))
    other.restore(*learner.state())
    other.publish()
    return other


def test_a_spec_prepares_by_default_as_numerics_do():
    assert preparing(read_spec({}).prepare) == PreparationParameters()


def test_a_table_has_numbers_and_categories():
    learner = learner_of()
    learn(learner, samples(rooms(300)))
    told = learner.model.describe()
    assert (told["rows"], told["features"]) == ("table", 3)
    warmth, city, opened = told["columns"]
    assert [column["kind"] for column in told["columns"]] == ["number", "category", "boolean"]
    assert (city["distinct"], city["range"], city["missing"]) == (3, None, 0.0)
    assert set(city["examples"]) <= set(CITIES)
    assert warmth["range"][0] < 20 < warmth["range"][1]
    assert opened["range"] == [0.0, 1.0]


def test_texts_whose_numbers_come_again_and_again_keep_their_kind():
    chip, off, size = ("True", "False"), ("5.0%", "10.0%", "25.0%"), (36, 38, 40)
    rows = [{"chip": chip[k % 2], "off": off[k % 3], "size": size[k % 3]} for k in range(400)]
    learner = learner_of()
    learn(learner, samples(rows, ["ab"[k % 5 == 0] for k in range(400)]))
    kinds = {column["name"]: column["kind"] for column in learner.model.describe()["columns"]}
    assert kinds == {"chip": "boolean", "off": "number in text", "size": "code"}


def test_categories_and_numbers_are_learned_together():
    learner, rows = learner_of(), rooms(1500)
    predicted = learn(learner, samples(rows), 64)
    assert np.mean([p == y for p, y in zip(predicted[500:], labels(rows)[500:], strict=True)]) > 0.9


def test_the_order_of_names_does_not_matter():
    learner, rows = learner_of(), rooms(200)
    learn(learner, samples(rows))
    turned = [dict(reversed(row.items())) for row in rows]
    table = [[row["city"], row["open"], row["warmth"]] for row in rows]
    expected = ask(learner, rows)
    assert ask(learner, turned) == expected
    assert ask(learner, table, names=["city", "open", "warmth"]) == expected
    assert ask(learner, [[row["warmth"], row["city"], row["open"]] for row in rows]) == expected


def test_rows_with_names_beside_them_and_objects_are_one_table():
    rows = rooms(200)
    by_object, by_table = learner_of(), learner_of()
    learn(by_object, samples(rows))
    table = [[row["warmth"], row["city"], row["open"]] for row in rows]
    learn(by_table, samples(table, labels(rows), names=["warmth", "city", "open"]))
    assert ask(by_table, rows) == ask(by_object, rows)


@pytest.mark.parametrize("learned", [4, 2 * SETTLING])
@pytest.mark.parametrize("name", ["warmt", "humidity"])
def test_an_unknown_name_is_refused_in_samples_and_in_predictions(name: str, learned: int):
    learner = learner_of(prepare={"names": "strict"})
    learn(learner, samples(rooms(learned)))
    before = learner.state()[0]
    row = {name: 20.0, "city": "Rome", "open": True}
    for refused in (
        lambda: Draft(learner, LIMITS).add("asset", samples([row], ["hot"])),
        lambda: ask(learner, [row]),
    ):
        with pytest.raises(InvalidSamples, match="does not fit") as error:
            refused()
        assert "no name that the model knows" in error.value.errors[0]["detail"]
        assert error.value.errors[0]["pointer"] == f"/x/0/{name}"
    assert learner.state()[0] == before


def test_a_text_in_an_array_that_is_no_number_is_missing():
    learner = learner_of()
    learn(learner, samples([[1.0, 2.0]] * 2 * SETTLING, labels(rooms(2 * SETTLING))))
    assert ask(learner, [[3.0, "4"]]) == ask(learner, [[3.0, 4.0]])
    assert ask(learner, [[3.0, "four"]]) == ask(learner, [[3.0, None]])


@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_a_missing_name_null_and_nan_are_the_same(missing: str):
    learner = learner_of(prepare={"missing": missing})
    learn(learner, samples(rooms(300)))
    row = {"city": "Rome", "open": True}
    answers = [ask(learner, {**row, **more}) for more in ({}, {"warmth": None}, {"warmth": np.nan})]
    assert answers[0] == answers[1] == answers[2]
    if missing == "indicator":
        assert answers[0] != ask(learner, {**row, "warmth": 20.0})


def test_without_preparation_a_header_still_puts_columns_right():
    spec = {"prepare": None, "adaptive": None, "serve": "asset"}
    learner = learner_of(**spec)
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 2))
    y = [int(v) for v in X[:, 0] > X[:, 1]]
    named = as_recorded(read_samples({"x": X.tolist(), "y": y, "names": ["a", "b"]}))
    learn(learner, named)
    published = learner.model.published
    right = published.head_rows(read_rows({"x": X.tolist(), "names": ["a", "b"]}))
    turned = published.head_rows(read_rows({"x": X[:, ::-1].tolist(), "names": ["b", "a"]}))
    np.testing.assert_array_equal(right.X, turned.X)
    with pytest.raises(InvalidSamples, match="does not fit"):
        published.head_rows(read_rows({"x": [[1.0]], "names": ["a"]}))


def test_arrays_adopt_names_of_header():
    learner = learner_of()
    X = np.random.default_rng(0).normal(size=(300, 2)).tolist()
    y = [int(a > b) for a, b in X]
    learn(learner, samples(X[:200], y[:200]))
    with pytest.raises(InvalidSamples, match="are arrays of numbers"):
        ask(learner, {"a": 1.0, "b": 2.0})
    learn(learner, samples(X[200:], y[200:], names=["a", "b"]))
    assert learner.model.describe()["rows"] == "table"
    assert ask(learner, [[b, a] for a, b in X], names=["b", "a"]) == ask(learner, X)


class TestFirstSamples:
    def test_widening_row_as_if_always_wide(self):
        rows = rooms(60)
        narrow = [{k: v for k, v in row.items() if k != "open"} for row in rows[:30]]
        learner, wide = learner_of(), learner_of()
        y = labels(rows)
        learn(learner, samples([*narrow, *rows[30:]], y), 7)
        learn(wide, samples([*({**row, "open": None} for row in narrow), *rows[30:]], y), 60)
        np.testing.assert_allclose(ask(learner, rows), ask(wide, rows), atol=1e-6)

    def test_what_was_predicted_of_them_is_what_counts(self):
        rows = rooms(60)
        learner = learner_of()
        first = learn(
            learner, samples([{"warmth": row["warmth"]} for row in rows[:30]], labels(rows)[:30])
        )
        counted = learner.model.published.heads["adaptive"].stats["prequential"]
        after = learn(learner, samples(rows[30:31], labels(rows)[30:31]))
        told = learner.model.published.heads["adaptive"].stats["prequential"]
        right = sum(p == y for p, y in zip([*first, *after], labels(rows), strict=False))
        assert counted != told
        assert told["accuracy"] == pytest.approx(
            right / sum(p is not None for p in [*first, *after])
        )

    def test_sparse_rows_are_found_out_and_learned_from_the_first_one(self):
        rows = [{"sun": 1}, {"sun": 2, "wind": 1}, {"rain": 1, "fog": 1}, {"rain": 2}] * 5
        y = ["dry", "dry", "wet", "wet"] * 5
        learner, sparse = learner_of(), learner_of(prepare={"named": "sparse"})
        learn(learner, samples(rows, y), 1)
        learn(sparse, samples(rows, y), 20)
        told = learner.model.describe()
        assert (told["rows"], told["features"], told["columns"]) == ("named", 4, None)
        np.testing.assert_allclose(ask(learner, rows), ask(sparse, rows), atol=1e-6)

    @pytest.mark.parametrize("stop", [1, 45, SETTLING + 20])
    def test_a_restart_at_any_time_changes_no_bit(self, stop: int):
        rows = rooms(SETTLING + 80)
        rows[50]["new"] = 1.0
        for row in rows[51:]:
            row["new"] = None
        y = labels(rows)
        whole, first = learner_of(), learner_of()
        learn(whole, samples(rows[:stop], y[:stop]))
        learn(first, samples(rows[:stop], y[:stop]))
        second = restored(first)
        assert learn(second, samples(rows[stop:], y[stop:])) == learn(
            whole, samples(rows[stop:], y[stop:])
        )
        assert ask(second, rows) == ask(whole, rows)
        a, b = second.state(), whole.state()
        assert a[0] == b[0]
        for name in a[1]:
            np.testing.assert_array_equal(a[1][name], b[1][name])


def test_few_names_of_a_group_are_compared_with_the_known_ones():
    learner = learner_of(prepare={"names": "strict"})
    learn(learner, samples(rooms(SETTLING)))
    draft, details = Draft(learner, LIMITS), list[str]()
    for _ in range(2 * MOST_SUGGESTIONS):
        with pytest.raises(InvalidSamples) as error:
            draft.add("asset", samples([{"warmt": 1.0}], ["hot"]))
        details += [wrong["detail"] for wrong in error.value.errors]
    assert sum("did you mean 'warmth'" in detail for detail in details) == MOST_SUGGESTIONS
    assert all("'warmt' is no name" in detail for detail in details)


def test_unknown_names_refused_in_one_look(
    monkeypatch: pytest.MonkeyPatch,
):
    learner = learner_of(prepare={"names": "strict"})
    learn(learner, samples(rooms(SETTLING)))
    looks, names = list[None](), Schema.names.fget
    monkeypatch.setattr(Schema, "names", property(lambda s: (looks.append(None), names(s))[1]))
    row = {f"n{k}": 1.0 for k in range(1000)}
    with pytest.raises(InvalidSamples):
        Draft(learner, LIMITS).add("asset", samples([row], ["hot"]))
    assert len(looks) < 20


def test_what_is_refused_in_part_leaves_no_labels_and_names_behind():
    learner = learner_of(prepare={"named": "sparse"})
    draft = Draft(learner, Limits(classes=2, features=3))
    draft.add("asset", samples([{"a": 1}], ["one"]))

    def refused() -> None:
        with draft.whole():
            draft.add("asset", samples([{"b": 1}], ["two"]))
            draft.add("asset", samples([{"c": 1}], ["three"]))

    with pytest.raises(InvalidSamples):
        refused()
    draft.add("asset", samples([{"c": 1}, {"d": 1}], ["three", "one"]))
    assert draft.sequence == 3


def test_first_rows_lack_later_names():
    form = RowForm(preparing(read_spec(QUICK).prepare))
    rows = [{"city": "Rome"}] * 3 + [{f"n{k}": 1.0 for k in range(200)}]
    schema = form.after(read_rows({"x": rows}, prepared=True)).schema
    assert schema is not None
    assert [row.names for row in schema.head.rows[:3]] == [("city",)] * 3


def test_text_in_sparse_rows_is_refused():
    learner = learner_of(prepare={"named": "sparse"})
    learn(learner, samples([{"a": 1}, {"b": 2}], [0, 1]))
    with pytest.raises(InvalidSamples, match="no text"):
        Draft(learner, LIMITS).add("asset", samples([{"a": "one"}], [0]))


def test_requests_of_all_forms_follow_each_other():
    learner, rows = learner_of(), rooms(40)
    y = labels(rows)
    learn(learner, samples(rows[:20], y[:20]))
    table = [[row["open"], row["city"], row["warmth"]] for row in rows]
    learn(learner, samples(table[20:30], y[20:30], names=["open", "city", "warmth"]))
    learn(learner, samples([row[::-1] for row in table[30:]], y[30:]))
    assert learner.sequence == 40


class TestDeclaredClasses:
    SPEC: ClassVar[dict[str, Any]] = {"classes": ["dry", "humid", True]}

    @pytest.mark.parametrize(
        ("label", "hint"),
        [("humdi", "did you mean 'humid'"), (2, "its classes are dry, humid, True")],
    )
    def test_another_label_is_refused_where_it_stands(self, label: Any, hint: str):
        learner = learner_of(**self.SPEC)
        given = samples([[1.0], [2.0], [3.0]], ["dry", label, "humid"])
        with pytest.raises(InvalidSamples) as error:
            Draft(learner, LIMITS).add("asset", given)
        (wrong,) = error.value.errors
        assert (wrong["row"], wrong["pointer"]) == (1, "/y/1")
        assert hint in wrong["detail"]

    def test_few_labels_of_a_group_are_compared_with_the_classes(self):
        learner = learner_of(**self.SPEC)
        draft, details = Draft(learner, LIMITS), list[str]()
        for _ in range(MOST_SUGGESTIONS):
            with pytest.raises(InvalidSamples) as error:
                draft.add("asset", samples([[1.0], [2.0]], ["humdi", "humdi"]))
            details += [wrong["detail"] for wrong in error.value.errors]
        assert sum("did you mean" in detail for detail in details) == MOST_SUGGESTIONS
        assert all("is no class" in detail for detail in details)

    def test_the_declared_ones_are_learned(self):
        learner = learner_of(**self.SPEC)
        learn(learner, samples([[1.0], [2.0], [3.0]], ["dry", True, "humid"]))
        assert learner.model.describe()["warning"] is None

    @pytest.mark.parametrize("declared", [None, ["dry", "humid", "humdi"]])
    def test_a_description_warns_of_labels_that_came_seldom(self, declared: Any):
        learner = learner_of(classes=declared)
        y = ["dry", "humid"] * 600
        y[700] = "humdi"
        learn(learner, samples([[float(len(label))] for label in y], y))
        warning = learner.model.describe()["warning"]
        assert warning is None if declared else "humdi" in warning

    @pytest.mark.parametrize(
        "spec",
        [{"task": "regression", "classes": [1, 2]}, {"classes": ["a", "a"]}, {"classes": ["a"]}],
    )
    def test_what_cannot_be_declared(self, spec: dict[str, Any]):
        with pytest.raises(Invalid) as error:
            read_spec(spec)
        assert error.value.errors[0]["pointer"] == "/classes"


def test_timestamps_are_learned_as_hours_and_days():
    learner = learner_of(prepare={"timestamps": ["at"]})
    rows = [{"at": f"2026-05-{1 + k // 24:02}T{k % 24:02}:00:00Z", "x": 1.0} for k in range(600)]
    y = ["day" if 6 <= k % 24 < 18 else "night" for k in range(600)]
    predicted = learn(learner, samples(rows, y), 50)
    assert np.mean([p == given for p, given in zip(predicted[300:], y[300:], strict=True)]) > 0.9
    learn(learner, samples([{"at": "noon", "x": 1.0}], ["day"]))
    (*_, notice) = learner.take_notices()
    assert notice.message.startswith("`at` is a time; sample 601 has 'noon'")


@pytest.mark.parametrize("named", [False, True])
def test_too_many_columns_of_texts_are_refused_before_they_are_written(named: bool):
    learner, width = learner_of(), MOST_TEXT_COLUMNS + 1
    more: dict[str, Any] = {"names": [f"c{j}" for j in range(width)]} if named else {}
    draft = Draft(learner, LIMITS)
    with pytest.raises(InvalidSamples, match="too many columns of texts") as refused:
        draft.add("asset", samples([["a"] * width], ["x"], **more))
    assert refused.value.errors[0]["pointer"] == "/x"
    assert "1025 columns of texts, and a model takes 1024 at most" in str(refused.value.errors)
    draft.add("asset", samples([["a"] * (width - 1) + [1.0]], ["x"], **more))
    with pytest.raises(InvalidSamples, match="too many columns of texts"):
        draft.add("asset", samples([[None] * (width - 1) + ["a"]], ["x"], **more))
    assert draft.sequence == 1


def test_a_settled_model_with_more_columns_of_texts_goes_on():
    """As a model file may have them."""
    learner, width = learner_of(), MOST_TEXT_COLUMNS + 1
    given = samples([["a"] * width] * SETTLING, ["x", "y"] * (SETTLING // 2))
    learner.absorb("asset", given)
    Draft(learner, LIMITS).add("asset", given)


def cars(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return rows with prices, numbers before units in texts, and a few very large numbers."""
    random = np.random.default_rng(seed)
    return [
        {
            "paid": f"${np.exp(random.normal(4.0, 2.0)):,.2f}",
            "miles": float(np.exp(random.normal(0.0, 2.0))),
            "engine": f"{random.integers(90, 400)}.0HP {random.integers(10, 60) / 10}L V6",
            "city": CITIES[random.integers(3)],
        }
        for _ in range(n)
    ]


def prices(rows: list[dict[str, Any]]) -> list[float]:
    return [
        float(row["engine"].partition(".")[0]) * (1 + (row["city"] == "Oslo")) * row["miles"] ** 0.5
        for row in rows
    ]


class TestSkewedNumbers:
    def learned(self, rows: list[dict[str, Any]]) -> Learner:
        learner = learner_of(task="regression")
        learn(learner, self.samples(rows))
        return learner

    def samples(self, rows: list[dict[str, Any]]) -> Samples:
        body = {"x": rows, "y": prices(rows)}
        return as_recorded(read_samples(body, "regression", prepared=True))

    def test_logarithms_and_units_are_learned(self):
        learner = self.learned(cars(SETTLING))
        assert [place for place, _ in learner.rows.form.bent] == [0, 1]
        schema = learner.rows.form.schema
        assert schema is not None
        assert schema.columns[2].reading.units == ("hp", "l")
        later = cars(300, seed=1)
        said = learn(learner, self.samples(later), 64)
        errors = np.abs(np.array(said) - prices(later))
        assert errors[100:].mean() < 0.3 * np.std(prices(later))

    @pytest.mark.parametrize("stop", [5, 100, SETTLING, SETTLING + 20])
    def test_model_file_continues_with_same_bits(self, stop: int):
        rows = cars(SETTLING + 80)
        first = self.learned(rows[:stop])
        state = State(*first.state())
        fill_model(Model(1, "rooms", first.model.spec), state, "it")
        second = restored(first)
        rest = self.samples(rows[stop:])
        assert learn(second, rest) == learn(first, rest)
        for name, array in first.state()[1].items():
            np.testing.assert_array_equal(array, second.state()[1][name])

    @pytest.mark.parametrize("bend", [1e-300, np.inf, -1.0, np.nan])
    def test_logarithms_that_no_rows_make_are_refused(self, bend: float):
        learner = self.learned(cars(SETTLING))
        plain, arrays = learner.state()
        units = arrays["adaptive.target_units"].copy()
        units[2] = bend
        forged = State(plain, {**arrays, "adaptive.target_units": units})
        with pytest.raises(ModelFileError, match="target_units"):
            fill_model(Model(1, "rooms", learner.model.spec), forged, "it")
        forged = State({**plain, "bent": [[0, bend]]}, arrays)
        with pytest.raises(ModelFileError, match="logarithms that no rows make"):
            fill_model(Model(1, "rooms", learner.model.spec), forged, "it")


def test_a_part_of_a_request_reads_its_own_texts_alone(monkeypatch: pytest.MonkeyPatch):
    """Else a request of n rows, which is learned in parts, would cost n^2."""
    rows = [
        {"note": f"the room {k} is warm", "when": f"2025-03-01 {k % 24:02}:00"} for k in range(600)
    ]
    given = samples(rows, ["hot", "cold"] * 300)
    learner, read = learner_of(), list[str]()
    learn(learner, given.part(0, 200))
    of_column = column_facts.code_of

    def counted(text: str) -> float:
        read.append(text)
        return of_column(text)

    monkeypatch.setattr(column_facts, "code_of", counted)
    learner.absorb("asset", given.part(200, 208))
    assert len(read) <= 16


COLOURS = ["red", "green", "blue", "teal"]
# What a column has at first, what it has later, and the warning about that, if any, given a number
# in [0, 1) that the label depends on.
CHANGES: dict[str, tuple[Any, Any, str | None]] = {
    "categories become numbers": (
        lambda u: "low" if u < 0.5 else "high",
        lambda u: round(u, 4),
        "its last 64 values are others",
    ),
    "categories become sentences": (
        lambda u: COLOURS[int(4 * u)],
        lambda u: f"the {COLOURS[int(4 * u)]} thing is number {int(1e4 * u)} here",
        "its last 64 values are others",
    ),
    "numbers get a currency": (lambda u: round(100 * u, 2), lambda u: f"${100 * u:.2f}", None),
    "numbers become categories": (
        lambda u: float(int(4 * u)),
        lambda u: COLOURS[int(4 * u)],
        "its last 64 values are others",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_column_whose_values_change_kind_is_learned_again(change: str):
    before, after, warning = CHANGES[change]
    random = np.random.default_rng(5)
    u = random.random(1200).tolist()
    values = [*map(before, u[:400]), *map(after, u[400:])]
    rows = [{"a": value, "z": float(random.normal())} for value in values]
    given = samples(rows, ["low" if each < 0.5 else "high" for each in u])
    learner, replayed = learner_of(), learner_of()
    predicted = learn(learner, given, block=40)
    for part, least in ((slice(200, 400), 0.95), (slice(900, 1200), 0.95)):
        right = np.mean([a == b for a, b in zip(predicted[part], given.y[part], strict=True)])
        assert right >= least, (change, part)
    facts = learner.model.describe()["columns"]
    said = next(column for column in facts if column["name"] == "a")
    assert (said["revised"] is not None) == (warning is not None)
    learn(replayed, given, block=40)
    states = [one.state()[1] for one in (learner, replayed)]
    for name, array in states[0].items():
        np.testing.assert_array_equal(array, states[1][name], err_msg=name)
