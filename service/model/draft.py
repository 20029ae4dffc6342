"""Checks that a model can learn a request after those before it, before any of them is written."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from wolfstream.service.errors import InvalidSamples, NoSuchHead, Refusal, SampleError, refuse_all
from wolfstream.service.heads.online_learner import Batch
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.memory import ModelMemory, learning_bytes
from wolfstream.service.model.revision import Revision, check_revision
from wolfstream.service.model.saved_rows import not_fitting
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.tasks import Targets
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HEADS, HeadName
from wolfstream.solver.labels import LabelKey, key_of
from wolfstream.solver.prepare.cells import NO_TEXT, Cells
from wolfstream.solver.prepare.named_rows import NamedRows, NameTable, Rows
from wolfstream.solver.prepare.nearest_name import nearest_name
from wolfstream.solver.prepare.row_form import AnotherKind, RowForm, sparse_rows
from wolfstream.solver.prepare.schema import Misfit
from wolfstream.solver.prepare.table_rows import TableRows

_LONGEST_ECHO = 40
# A model of a table with this many takes 0.8 s of processor time to check and learn its first 127
# rows.
MOST_TEXT_COLUMNS = 1024
# How many names the requests of a group may have suggested instead of wrong ones.
MOST_SUGGESTIONS = 2
# A request of up to SMALL samples also takes the memory that the next _AHEAD samples need, if that
# is no more than _MOST_AHEAD_BYTES. Their growth is then not computed.
SMALL, _AHEAD, _MOST_AHEAD_BYTES = 16, 256, 1 << 18


class Limits(NamedTuple):
    """Bounds on one model.

    Attributes:
        classes: the number of its different labels.
        features: the number of its names of features.
        n_bytes: the memory of its feature map.
        memory: from which it takes what it grows by; None if it may grow freely.
    """

    classes: int
    features: int
    n_bytes: int = 1 << 62
    memory: ModelMemory | None = None


class NextForm(NamedTuple):
    """A form after more rows, which was computed before they are added to a draft.

    Attributes:
        before: the form.
        after: the form after the rows; `before` if they are refused.
        rows: by the form after them; None if they are refused.
        refusal: why they are refused.
    """

    before: RowForm
    after: RowForm
    rows: Rows | TableRows | None
    refusal: Misfit | AnotherKind | None = None


def next_form(form: RowForm, rows: Rows) -> NextForm:
    """Return the form after rows; for very many values it takes seconds."""
    try:
        form.check_room(rows)
        after, by_form = _after(form, rows)
    except (Misfit, AnotherKind) as error:
        return NextForm(form, form, None, error.with_traceback(None))
    _columns_of(after)  # what follows from many columns is computed once
    return NextForm(form, after, by_form)


class Draft:
    """A learner's state after requests that were checked, and are not written yet.

    Attributes:
        sequence: after all of them.
    """

    def __init__(self, learner: Learner, limits: Limits) -> None:
        self.sequence = learner.sequence
        self._grown = 0  # bytes that were taken for the requests
        self._suggestions = 0  # names that were suggested
        # The columns of rows for heads, and the texts of a row beside them.
        self._columns = _columns_of(learner.rows.form)
        self._learner = learner
        self._limits = limits
        self._form = learner.rows.form
        self._names: dict[str, None] = {}  # names of features that the requests bring, in order
        # Labels that the requests bring, for each head.
        self._labels: dict[HeadName, set[LabelKey]] = {name: set() for name in HEADS}

    def check(self, expected: Collection[Revision]) -> None:
        """Raise AnotherState unless the next request finds the model at one of these revisions."""
        check_revision(self._learner.model.name, self._learner.epoch, self.sequence, expected)

    def add(
        self,
        head: HeadName,
        samples: Samples,
        expected: Collection[Revision] = (),
        precomputed: NextForm | None = None,
    ) -> None:
        """Add the samples of another request, or refuse them.

        Args:
            head: that the samples were posted to.
            samples: of the request.
            expected: see `check`.
            precomputed: the form after the rows of the samples, if it was computed; it is used if
                the form is still the one before.

        Raises AnotherState, NoSuchHead, InvalidSamples, ModelsFull; the draft is then as it was
        before.
        """
        if expected:
            self.check(expected)
        heads, spec = self._learner.heads, self._learner.model.spec
        if head not in heads:
            name = self._learner.model.name
            raise NoSuchHead(f"the spec of model {name!r} has null for {head}")
        if spec.classes is not None:
            self._check_declared(spec.classes, samples.y)
        self._check_texts(columns_with_texts(samples.X))
        after_rows = precomputed
        if after_rows is None or after_rows.before is not self._form:
            after_rows = next_form(self._form, samples.X)
        form, rows = after_rows.after, after_rows.rows
        if rows is None:
            assert after_rows.refusal is not None
            raise not_fitting(samples.X, after_rows.refusal, suggest=self._may_suggest())
        if isinstance(rows, TableRows):
            rows = rows.cells if spec.prepare is not None else form.encoded(rows)
        samples = samples._replace(X=rows)
        labels = {
            name: heads[name].check(samples, self._labels[name], self._limits.classes)
            for name in self._learner.learning(head)
        }
        names = self._new_names(samples.X) if isinstance(samples.X, NamedRows) else []
        # Rows that do not change the form need no more memory for it.
        if form is not self._form and not self._form.settled:
            self._check_texts(_text_columns(form))
            if form.prepared_width is not None:
                self._check_bytes(form.prepared_width, named=False)
        memory, new = self._limits.memory, len(self._names) + len(names)
        if memory is not None and not self._is_steady(samples, form, labels, new):
            self._take(memory, samples, form, labels, new)
        self._names |= dict.fromkeys(names)
        self._form = form
        self._labels = self._labels | labels
        self.sequence += len(samples.y)

    def _is_steady(
        self,
        samples: Samples,
        form: RowForm,
        labels: Mapping[HeadName, set[LabelKey]],
        new_names: int,
    ) -> bool:
        """Return whether the memory for samples like these was taken before."""
        learner, rows = self._learner, len(samples.y)
        if rows > SMALL or new_names or form is not learner.rows.form or any(labels.values()):
            return False
        return self.sequence + rows <= learner.steady_until

    def _take(
        self,
        memory: ModelMemory,
        samples: Samples,
        form: RowForm,
        labels: Mapping[HeadName, set[LabelKey]],
        new_names: int,
    ) -> None:
        """Take the memory that the model needs once it has learned everything in the draft.

        Raises ModelsFull.
        """
        learner, heads = self._learner, self._learner.heads
        columns = self._columns if form is self._form else _columns_of(form)
        width, texts = columns
        features = width
        if isinstance(samples.X, NamedRows):
            met = 0 if learner.rows.names is None else len(learner.rows.names)
            width, features = len(samples.X.value) // max(len(samples.y), 1), met + new_names
        else:
            new_names = max(width - self._columns[0], 0)
        rows = len(samples.y)
        batch = Batch(
            self.sequence - learner.sequence + rows,
            max(rows, SMALL),
            width,
            features,
            new_names,
            form.sparse,
            texts,
            max(map(len, labels.values()), default=0),
            changing=form is not learner.rows.form and not form.settled,
        )
        growth = sum(heads[name].growth(batch) for name in labels)
        ahead = 0  # samples after these whose memory is taken with theirs
        if rows <= SMALL and form is learner.rows.form and form.settled:
            with_ahead = batch._replace(rows=batch.rows + _AHEAD)
            growth_ahead = sum(heads[name].growth(with_ahead) for name in labels)
            if growth_ahead <= _MOST_AHEAD_BYTES:
                growth, ahead = growth_ahead, _AHEAD
        memory.take(learner.model, growth - self._grown)
        self._grown, self._columns = max(growth, self._grown), columns
        if ahead:
            learner.steady_until, learner.ahead_bytes = self.sequence + rows + ahead, growth

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Undo all additions within the block if one of them is refused."""
        before, names = (self.sequence, self._form, self._labels), len(self._names)
        try:
            yield
        except Refusal:
            self.sequence, self._form, self._labels = before
            while len(self._names) > names:
                self._names.popitem()  # the last that was added
            raise

    def _check_declared(self, classes: list[Label], y: Targets) -> None:
        """Raise InvalidSamples for labels that are not among the classes of the spec."""
        declared = set(map(key_of, classes))
        if declared.issuperset(map(key_of, set(y))):
            return
        by_text = {str(label): label for label in classes}
        wrong: Iterator[SampleError] = (
            {
                "row": i,
                "pointer": f"/y/{i}",
                "detail": _not_declared(label, by_text, self._may_suggest()),
            }
            for i, label in enumerate(y)
            if key_of(label) not in declared
        )
        refuse_all("some labels are none of the classes that the model's spec declares", wrong)

    def _may_suggest(self) -> bool:
        """Return whether another name may be suggested for a wrong one.

        Each takes milliseconds of the writer's time, and a group may have thousands of requests.
        """
        self._suggestions += 1
        return self._suggestions <= MOST_SUGGESTIONS

    def _new_names(self, rows: NamedRows) -> list[str]:
        """Return the names in sparse rows that are new. Raises InvalidSamples for too many."""
        table = self._learner.rows.names or NameTable()
        new = table.unknown(rows.names, self._names)
        most, dimension = self._limits.features, len(table) + len(self._names) + len(new)
        if new and dimension > most:
            detail = (
                f"brings {len(new)} new names, {new[0][:40]!r} first, to the "
                f"{dimension - len(new)} that the model has met; {most} is the most "
                "(WOLFSTREAM_FEATURES)"
            )
            raise InvalidSamples(
                f"the model would meet more than {most} different names of features",
                [{"pointer": "/x", "detail": detail}],
            )
        if new:
            self._check_bytes(dimension, named=True)
        return new

    def _check_texts(self, columns: int) -> None:
        """Raise InvalidSamples for rows with too many columns of texts.

        columns: their number. A model of a file may have more, and keeps them.
        """
        if not has_too_many(columns, self._form):
            return
        detail = (
            f"has {columns} columns of texts, and a model takes {MOST_TEXT_COLUMNS} at most: leave "
            "some out, or send words as numbers, in rows by name of a model with "
            '"prepare": {"named": "sparse"}'
        )
        raise InvalidSamples(
            "the model would have too many columns of texts", [{"pointer": "/x", "detail": detail}]
        )

    def _check_bytes(self, features: int, named: bool) -> None:
        """Raise InvalidSamples for rows with more features than there is memory for."""
        spec, most = self._learner.model.spec, self._limits.n_bytes
        needed = learning_bytes(spec, features, named)
        if needed > most:
            detail = (
                f"has {features} features, for which the model would take {needed >> 20} MB, at "
                f"most {most >> 20} MB may (WOLFSTREAM_MODEL_BYTES); a smaller dimension of asset, "
                "or its features nystrom, take less"
            )
            raise InvalidSamples(
                "the model would take too much memory", [{"pointer": "/x", "detail": detail}]
            )


def _after(form: RowForm, rows: Rows) -> tuple[RowForm, Rows | TableRows]:
    """Return the form after some rows, and the rows in this form. Raises Misfit, AnotherKind.

    A settled table still learns facts of its columns, but no check depends on them, so its cells
    are not read here.
    """
    if form.schema is not None and form.settled:
        return form, form.checked(rows)
    form = form.after(rows)
    if form.sparse:
        return form, sparse_rows(rows)
    return form, rows if form.schema is None else form.table(rows)


def _columns_of(form: RowForm) -> tuple[int, int]:
    """Return the number of columns of dense rows for heads, and of texts of a row beside them."""
    if form.schema is None:
        missing = form.prepare is not None and form.prepare.missing == "indicator"
        return (form.width or 0) * (1 + missing), len(form.coded)
    return form.prepared_width or 0, len(form.crossed_columns)


def columns_with_texts(rows: Rows) -> int:
    """Return how many columns of a table have any text; cheap, so that it can be checked first."""
    if not isinstance(rows, Cells) or not rows.texts:
        return 0
    return int((rows.text != NO_TEXT).any(axis=0).sum())


def has_too_many(columns: int, form: RowForm) -> bool:
    """Return whether a model of this form refuses this many columns of texts."""
    return columns > MOST_TEXT_COLUMNS and columns > _text_columns(form)


def _text_columns(form: RowForm) -> int:
    """Return how many columns of a form have had texts."""
    return 0 if form.schema is None else sum(column.slots > 0 for column in form.schema.columns)


def _not_declared(label: Label, by_text: Mapping[str, Label], suggest: bool) -> str:
    text = str(label)[:_LONGEST_ECHO]
    similar = nearest_name(text, by_text) if suggest else None
    if similar is not None:
        return f"{text!r} is no class of the model; did you mean {by_text[similar]!r}?"
    return f"{text!r} is no class of the model; its classes are {', '.join(by_text)[:200]}"
