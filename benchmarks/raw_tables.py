"""Public tables as their owners publish them: spec `{}` beside tools for raw and prepared tables.

    python -m benchmarks raw_tables --data FOLDER

Rows are in the order of the file, or shuffled where that is sorted. The default model gets them as
CSV in blocks of 64, decoded as a request with `label=` is, and predicts each block before it learns
it. The others are fitted to all rows so far after 250, 500, 1000, 2000, ... rows and predict those
up to the next fit; Vowpal Wabbit learns row by row. Rows from the 251st on count: AUC in % of two
classes, else right in %, or the mean absolute error; each with its standard error. The folder has a
CSV file for each table. It needs `make .venv/peers`.
"""

import csv
import io
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.datasets import MissingSet
from benchmarks.harness import Options, Study
from benchmarks.results import Figures, Results, markdown
from wolfstream.service.files.roles import Roles
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.settings import Settings
from wolfstream.service.spec.model import read_spec
from wolfstream.service.web.formats.body import samples_for
from wolfstream.service.web.formats.bounds import bounds_of
from wolfstream.service.web.formats.lines import decode_csv

BLOCK, FIRST, STEP, SEED, MOST_ROWS = 64, 250, 1000, 0, 3000
# Of CatBoost, whose default of 1,000 would take most of the benchmark's time.
_TREES = 200
_MOST_WORDS = 200
_NUMBER = re.compile(r"\d[\d,]*\.?\d*")
Hand = Literal["number", "numbers", "words", "time", "category"]
Said = NDArray[np.float64]


class Table(NamedTuple):
    """A table of the folder, FOLDER/NAME.csv.

    source: a public repository and the file there. without: columns that tell the label. sorted:
    whether the file is. hand: what a hand makes of columns, all others being numbers or categories.
    between: columns of moments whose difference it takes. tuning: whether rules were tried on it.
    """

    source: str
    label: str
    regression: bool
    hand: dict[str, Hand]
    without: tuple[str, ...] = ()
    sorted: bool = False
    between: tuple[str, str] | None = None
    tuning: bool = False


TABLES = {
    "used_cars": Table(
        "EhsanSamy/Used-Car-Price-Prediction: used_cars.csv", "price", True,
        {"milage": "number", "engine": "numbers", "model": "words", "transmission": "numbers"},
        tuning=True,
    ),
    "playstore": Table(
        "08carol/mlgoogleplay: googleplaystore.csv", "Rating", True,
        {"App": "words", "Size": "number", "Installs": "number", "Last Updated": "time"},
        sorted=True, tuning=True,
    ),
    "airline_tweets": Table(
        "Ramlah0/Twitter-US-Airline-Sentiment-Analysis: Tweets.csv", "airline_sentiment", False,
        {"text": "words", "tweet_created": "time"},
        without=("negativereason",), tuning=True,
    ),
    "taxis": Table(
        "mwaskom/seaborn-data: taxis.csv", "fare", True,
        {"pickup": "time", "dropoff": "time"},
        without=("total", "tip"), between=("pickup", "dropoff"), tuning=True,
    ),
    "employee_salaries": Table(
        "skrub-data/skrub-data-files: employee_salaries.zip", "current_annual_salary", True,
        {"employee_position_title": "words", "division": "words", "date_first_hired": "time"},
        tuning=True,
    ),
    "bengaluru": Table(
        "Kunal-optimus/Bangalore-House-Price-Prediction: Bengaluru_House_Data.csv", "price", True,
        {"size": "number", "total_sqft": "number"},
        tuning=True,
    ),
    "birdstrikes": Table(
        "vega/vega-datasets: data/birdstrikes.csv", "Phase of flight", False,
        {"Flight Date": "time", "Wildlife Species": "words", "Airport Name": "words"},
        tuning=True,
    ),
    "cardekho": Table(
        "AliHasan06/car-price-prediction-machine-learniing-model: Car details v3.csv",
        "selling_price", True,
        {"name": "words", "mileage": "number", "engine": "number", "max_power": "number",
         "torque": "numbers"},
    ),
    "laptops": Table(
        "Alaeddine1234/Web-Scraping-With-Pandas-: laptop_price.csv", "Price_euros", True,
        {"Product": "words", "ScreenResolution": "numbers", "Cpu": "numbers", "Ram": "number",
         "Memory": "numbers", "Gpu": "words", "Weight": "number"},
    ),
    "spam": Table(
        "Atharva1921/Spam_Message_Detection: spam.csv", "v1", False,
        {"v2": "words"},
    ),
    "airbnb": Table(
        "EswarAditya5/Project_Chicago_AirBNB: listings.csv", "price", True,
        {"name": "numbers", "last_review": "time"},
    ),
    "open_payments": Table(
        "skrub-data/skrub-data-files: open_payments.zip", "status", False,
        {"Physician_Specialty": "words"},
        sorted=True,
    ),
    "udemy": Table(
        "RamKedem/Datasets: udemy_courses.csv", "num_subscribers", True,
        {"course_title": "words", "published_timestamp": "time"},
        sorted=True,
    ),
    "toxicity": Table(
        "skrub-data/skrub-data-files: toxicity.zip", "is_toxic", False,
        {"text": "words"},
        sorted=True,
    ),
}  # fmt: skip


class Rows(NamedTuple):
    """Rows of a table as texts. y: targets, or the numbers of labels in their order."""

    table: Table
    header: list[str]
    texts: list[list[str]]
    y: NDArray[np.float64]
    classes: list[str]

    @property
    def label_place(self) -> int:
        """The place of the label."""
        return self.header.index(self.table.label)

    def frame(self) -> pd.DataFrame:
        """Return the features as pandas reads them."""
        text = io.StringIO(newline="")
        csv.writer(text).writerows([self.header, *self.texts])
        text.seek(0)
        return pd.read_csv(text, low_memory=False).drop(columns=self.table.label)


def load(name: str, options: Options) -> Rows:
    """Return the rows of a table that have a label, at most 3,000. Raises MissingSet."""
    table, path = TABLES[name], options.folder / f"{name}.csv"
    if not path.exists():
        raise MissingSet(f"{path} is missing; it is {table.source}")
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        header, *texts = csv.reader(file)
    kept = [j for j, column in enumerate(header) if column not in table.without]
    header = [header[j] for j in kept]
    place = header.index(table.label)
    texts = [[row[j] for j in kept] for row in texts if len(row) > max(kept)]
    texts = [row for row in texts if row[place].strip() not in ("", "NaN", "nan")]
    if table.sorted:
        np.random.default_rng(SEED).shuffle(texts)
    texts = texts[: options.rows or MOST_ROWS]
    labels = [row[place] for row in texts]
    if table.regression:
        return Rows(table, header, texts, np.array([_amount(y) for y in labels]), [])
    classes = sorted(set(labels))
    return Rows(table, header, texts, np.array([classes.index(y) for y in labels], float), classes)


def _amount(text: str) -> float:
    return float(re.sub(r"[^\d.eE+-]", "", text))


def default_model(rows: Rows) -> Said:
    """What spec `{}` says of rows that come as CSV; of two classes the decision for the second."""
    task = {"task": "regression"} if rows.table.regression else {}
    learner, said = Learner(Model(1, "raw", read_spec(task))), list[Any]()
    roles, bounds = Roles(label=rows.table.label), bounds_of(Settings())
    for start in range(0, len(rows.texts), BLOCK):
        body = io.StringIO(newline="")
        csv.writer(body).writerows([rows.header, *rows.texts[start : start + BLOCK]])
        fields = decode_csv(body.getvalue().encode(), True, bounds, roles)
        samples = samples_for(learner.model.spec, fields)
        answers = learner.absorb("asset" if rows.table.regression else "working_set", samples)
        said += answers.decision if len(rows.classes) == 2 else answers.prediction
    if rows.table.regression:
        return np.array([np.nan if value is None else value for value in said], np.float64)
    if len(rows.classes) == 2:
        learner.publish()
        classes = learner.model.published.heads["adaptive"].classes
        assert classes is not None
        sign = 1.0 if str(classes[-1]) == rows.classes[1] else -1.0
        return sign * np.array([value if isinstance(value, float) else 0.0 for value in said])
    return np.array(
        [rows.classes.index(str(value)) if value is not None else -1 for value in said], float
    )


def refitted(fit: Callable[[Rows, pd.DataFrame], Callable[[int, int, int], Said]]) -> "Contender":
    """Return a contender that is fitted again and again. fit: gives a function (stop, from, to)."""

    def run(rows: Rows) -> Said:
        n, said = len(rows.y), np.full(len(rows.y), np.nan)
        learn = fit(rows, rows.frame())
        ends = [FIRST, 2 * FIRST, *range(STEP, n, STEP)]
        for start, stop in zip(ends, [*ends[1:], n], strict=True):
            if start < min(stop, n):
                said[start:stop] = learn(start, start, min(stop, n))
        return said

    return run


Contender = Callable[[Rows], Said]


def _score_of(model: Any, rows: Rows, X: Any) -> Said:
    """Return targets, the share of the second of two classes, or the numbers of classes."""
    if rows.table.regression:
        return np.asarray(model.predict(X), np.float64)
    if len(rows.classes) == 2:
        if len(model.classes_) < 2:
            return np.full(len(X), float(model.classes_[0]))
        return np.asarray(model.predict_proba(X), np.float64)[:, 1]
    return np.asarray(model.predict(X), np.float64).reshape(-1)


def skrub(rows: Rows, frame: pd.DataFrame) -> Callable[[int, int, int], Said]:
    """skrub's vectoriser of raw tables before HistGradientBoosting, with their defaults."""
    from skrub import tabular_pipeline

    def learn(stop: int, start: int, end: int) -> Said:
        model = tabular_pipeline("regressor" if rows.table.regression else "classifier")
        model.fit(frame[:stop], rows.y[:stop])
        return _score_of(model, rows, frame[start:end])

    return learn


def catboost(rows: Rows, frame: pd.DataFrame) -> Callable[[int, int, int], Said]:
    """CatBoost on raw values, 200 trees: texts as texts, other words as categories."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    words = [name for name in frame if frame[name].dtype.kind not in "iufb"]
    frame = frame.copy()
    frame[words] = frame[words].fillna("").astype(str)
    texts = [name for name in words if rows.table.hand.get(name) in ("words", "numbers")]
    others = [name for name in words if name not in texts]

    def learn(stop: int, start: int, end: int) -> Said:
        kind = CatBoostRegressor if rows.table.regression else CatBoostClassifier
        model = kind(
            iterations=_TREES,
            cat_features=others,
            text_features=texts,
            verbose=False,
            thread_count=1,
            allow_writing_files=False,
            random_seed=SEED,
        )
        model.fit(frame[:stop], rows.y[:stop])
        return _score_of(model, rows, frame[start:end])

    return learn


def lightgbm(rows: Rows, frame: pd.DataFrame) -> Callable[[int, int, int], Said]:
    """LightGBM, with its defaults, on what a hand makes of columns, and on log(1 + y) of prices."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    log = rows.table.regression and rows.y.min() >= 0.0

    def learn(stop: int, start: int, end: int) -> Said:
        X = by_hand(rows.table, frame, stop)
        y = np.log1p(rows.y) if log else rows.y
        kind = LGBMRegressor if rows.table.regression else LGBMClassifier
        model = kind(n_jobs=1, verbose=-1, random_state=SEED)
        model.fit(X[:stop], y[:stop])
        said = _score_of(model, rows, X[start:end])
        return np.expm1(said) if log else said

    return learn


def by_hand(table: Table, frame: pd.DataFrame, stop: int) -> pd.DataFrame:
    """Return columns as a hand prepares them, by the rows before `stop`."""
    parts = dict[str, Any]()
    for k, name in enumerate(frame):
        values, kind = frame[name], table.hand.get(str(name), "category")
        texts = values.fillna("").astype(str)
        if kind == "time":
            at = pd.to_datetime(values, errors="coerce", utc=True, format="mixed")
            parts |= {f"{k} hour": at.dt.hour, f"{k} day": at.dt.dayofweek}
            parts |= {f"{k} year": at.dt.year + at.dt.dayofyear / 366.0}
        elif kind in ("number", "numbers"):
            each = [_NUMBER.findall(text) for text in texts]
            for j in range(3 if kind == "numbers" else 1):
                numbers = [float(e[j].replace(",", "")) if len(e) > j else np.nan for e in each]
                parts[f"{k} number {j}"] = numbers
        elif values.dtype.kind not in "iufb":
            levels = values[:stop].dropna().unique()
            parts[f"{k}"] = pd.Categorical(values.where(values.isin(levels)), categories=levels)
        else:
            parts[f"{k}"] = values
        if kind in ("words", "numbers"):
            each = [re.findall(r"\w+", text.casefold()) for text in texts]
            counts = pd.Series([word for row in each[:stop] for word in set(row)]).value_counts()
            for j, word in enumerate(counts.index[:_MOST_WORDS]):
                parts[f"{k} word {j}"] = [float(word in row) for row in each]
    if table.between is not None:
        a, b = (pd.to_datetime(frame[name], errors="coerce") for name in table.between)
        parts["between"] = (b - a).dt.total_seconds()
    return pd.DataFrame(parts, index=frame.index)


def vowpal_wabbit(rows: Rows) -> Said:
    """Vowpal Wabbit, with its defaults, row by row on each raw value and each of its words."""
    from vowpalwabbit import Workspace

    kinds = f"--oaa {len(rows.classes)} --probabilities" if rows.classes else ""
    if len(rows.classes) == 2:
        kinds = "--loss_function logistic"
    vw, said, place = Workspace(f"--quiet -b 22 {kinds}"), list[float](), rows.label_place
    for row, y in zip(rows.texts, rows.y.tolist(), strict=True):
        features = list[str]()
        for j, text in enumerate(row):
            if j == place or not text.strip():
                continue
            words = re.findall(r"[^\s:|]+", text.casefold())
            features += [f"{j}_{word}" for word in [*words, "=".join(words)]]
            if re.fullmatch(r"-?\d+(\.\d+)?", text.strip()):
                features.append(f"{j}:{float(text):.9g}")
        features_text = " ".join(features)
        if len(rows.classes) == 2:
            target = str(int(2 * y - 1))
        else:
            target = str(int(y) + 1) if rows.classes else f"{y:.9g}"
        answer = vw.predict(f"| {features_text}")
        said.append(float(np.argmax(answer)) if isinstance(answer, list) else float(answer))
        vw.learn(f"{target} | {features_text}")
    vw.finish()
    return np.array(said)


def majority_or_median(rows: Rows) -> Said:
    """What learns nothing: the most frequent label, or the median of the numbers so far."""
    said = np.full(len(rows.y), np.nan)
    for i in range(FIRST, len(rows.y)):
        if i % BLOCK == 0 or i == FIRST:
            past = rows.y[:i]
            plain = np.bincount(past.astype(int)).argmax() if rows.classes else np.median(past)
        said[i] = plain
    return said


CONTENDERS: dict[str, Contender] = {
    "ours": default_model,
    "skrub": refitted(skrub),
    "CatBoost": refitted(catboost),
    "Vowpal Wabbit": vowpal_wabbit,
    "LightGBM by hand": refitted(lightgbm),
    "majority or median": majority_or_median,
}


def score(rows: Rows, said: Said) -> tuple[float, float]:
    """Return the score of the rows that count, and its standard error."""
    said, y = said[FIRST:], rows.y[FIRST:]
    if rows.table.regression:
        errors = np.abs(said - y)
        return float(errors.mean()), float(errors.std() / np.sqrt(len(errors)))
    if len(rows.classes) > 2:
        share = float((said == y).mean())
        return 100.0 * share, 100.0 * float(np.sqrt(share * (1.0 - share) / len(y)))
    from sklearn.metrics import roc_auc_score

    # Its standard error is that of Hanley and McNeil (1982).
    area, many, few = float(roc_auc_score(y, said)), (y == 1.0).sum(), (y == 0.0).sum()
    q_1, q_2 = area / (2.0 - area), 2.0 * area**2 / (1.0 + area)
    square = area * (1 - area) + (many - 1) * (q_1 - area**2) + (few - 1) * (q_2 - area**2)
    return 100.0 * area, 100.0 * float(np.sqrt(square / (many * few)))


def measure(contender: Contender, rows: Rows, options: Options) -> Figures:
    """Return the score, its standard error and the seconds."""
    del options
    began = time.process_time()
    value, error = score(rows, contender(rows))
    seconds = time.process_time() - began
    kind = "MAE" if rows.table.regression else "AUC" if len(rows.classes) == 2 else "right"
    return {"measure": kind, "score": value, "error": error, "seconds": seconds}


# How the columns of earlier versions are called, whose results are kept.
FORMER = {"ours, without trees": "without trees", "ours, trees": "trees", "ours": "now"}


def table(kept: Results) -> str:
    """Return scores with their standard errors, first of the tables that rules were tried on."""
    rows = list[list[str]]()
    for name in kept.data:
        if not TABLES[name].tuning and rows and TABLES[kept.data[len(rows) - 1]].tuning:
            rows.append(["*kept from tuning*", *[""] * (1 + len(kept.contenders))])
        of = [kept.of(contender, name) for contender in kept.contenders]
        kind = next(figures[0]["measure"] for figures in of if figures)
        rows.append([name, kind, *map(_cell, of)])
    heads = ["table", "measure", *(FORMER.get(name, name) for name in kept.contenders)]
    return markdown(heads, rows)


def _cell(figures: list[Figures]) -> str:
    if not figures:
        return ""
    value, error = figures[0]["score"], figures[0]["error"]
    digits = 0 if value >= 1000.0 else 1 if value >= 10.0 else 3
    return f"{value:,.{digits}f} ± {error:,.{digits}f}"


STUDIES = {
    "raw_tables": Study(
        CONTENDERS,
        {name: partial(load, name) for name in TABLES},
        measure,
        table,
    )
}
