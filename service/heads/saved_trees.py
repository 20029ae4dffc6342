"""Checks of the arrays of a saved bank's trees, before compiled code reads them."""

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.saved_arrays import (
    COUNT,
    FROM_ZERO,
    MAY_BE_MISSING,
    PLACE,
    POSITIVE,
    SHARE,
    SUM,
    Arrays,
    Bounds,
    Numbers,
    WrongArrays,
    check_names,
    check_weights,
    require,
)
from wolfstream.solver.adaptive.targets_before import COLUMNS
from wolfstream.solver.adaptive.tree_experts import MOST_CLASSES, MOST_COLUMNS, TreeExperts
from wolfstream.solver.prepare.bends import is_bend
from wolfstream.solver.prepare.words import MOST_CODES
from wolfstream.solver.trees.binning import EDGES
from wolfstream.solver.trees.boosting import Trees, outputs_of
from wolfstream.solver.trees.code_values import MOST_CODES as MOST_VALUED
from wolfstream.solver.trees.code_values import MOST_GROUPS, MOST_VALUES, CodeValues
from wolfstream.solver.trees.growing import LEAVES, NODES
from wolfstream.solver.trees.schedule import MOST_ROUNDS

PREFIX = "trees_"
_ROWS, _FOREST = f"{PREFIX}window_", f"{PREFIX}forest_"

TREE_NUMBERS: Bounds = (
    (r"trees_(losses_recent|window_X|window_words)", MAY_BE_MISSING),
    (r"trees_losses_count", COUNT),
    (r"trees_counts", PLACE),  # -1 if no fit is running
    (r"trees_window_weight", Numbers(POSITIVE.least, SUM.most)),
    # Numbers that are added up or squared, here or by the trees of the next fit.
    (r"trees_window_(y|base)", SUM),
    (r"trees_forest_(fresh|residual|past)_(leaf|start)", SUM),
    (r"trees_forest_bins_edges", Numbers(above=True)),
    (r"trees_forest_(fresh|residual|past)_right", Numbers(0.0, 2.0**64)),
    (r"trees_forest_(fresh|residual|past)_child", Numbers(-LEAVES, NODES)),
    (r"trees_forest_unit", POSITIVE),
    (r"trees_mixing_(curvature|labels)", POSITIVE),
    (r"trees_mixing_(apart_)?(square|memory|error|step|counts|gap)", FROM_ZERO),
    (r"trees_mixing_(apart_)?(weight|noise)", SHARE),
)


def check_trees(arrays: Arrays, columns: object, n_classes: int | None) -> None:
    """Raise WrongArrays unless the arrays of trees fit each other.

    Args:
        arrays: the arrays of the trees, with their prefix.
        columns: the number of columns of their rows, as read from the state.
        n_classes: the number of known classes; None for regression.
    """
    if isinstance(columns, bool) or not isinstance(columns, int):
        raise WrongArrays("its trees have no number of columns")
    if not 0 < columns <= MOST_COLUMNS:
        raise WrongArrays("its trees have an impossible number of columns")
    base = arrays.get(f"{_ROWS}base", np.empty(0))
    words = arrays.get(f"{_ROWS}words", np.empty((0, 0))).shape[1:]
    if words not in ((0,), (MOST_CODES,)):
        raise WrongArrays("its trees have an impossible number of words")
    # For regression, `base` may have a second column: the predictions with earlier targets.
    past = n_classes is None and base.ndim == 2 and base.shape[1] == 2
    trees = TreeExperts(columns, (), *words, regression=n_classes is None, past=past)
    blank = trees.state()
    forest = {name: array for name, array in arrays.items() if name.startswith(_FOREST)}
    check_names({name: arrays[name] for name in arrays.keys() - forest.keys()}, blank)
    for name, array in blank.items():
        shape = arrays[name].shape
        if name.startswith(_ROWS):
            shape = (0, *(shape[1:] if name != f"{_ROWS}base" else array.shape[1:]))
        same = arrays[name].dtype == array.dtype and shape == array.shape
        require(same, name, f"has the shape {arrays[name].shape} or another type")
    next_loss, recent = arrays[f"{PREFIX}losses_next"][0], arrays[f"{PREFIX}losses_recent"]
    require(0 <= next_loss <= len(recent), f"{PREFIX}losses_next", "is out of range")
    _check_window(arrays, trees, n_classes)
    if forest:
        known = int(arrays[f"{PREFIX}counts"][1])
        require(
            past or f"{_FOREST}past_feature" not in forest,
            f"{_ROWS}base",
            "does not fit the trees",
        )
        _check_forests(forest, columns, None if n_classes is None else known)


def _check_window(arrays: Arrays, trees: TreeExperts, n_classes: int | None) -> None:
    samples, classes, begins, due, following, begun_classes = arrays[f"{PREFIX}counts"].tolist()
    y, base, X = (arrays[f"{_ROWS}{name}"] for name in ("y", "base", "X"))
    counts, stopped = f"{PREFIX}counts", classes > MOST_CLASSES
    require(0 <= classes <= (n_classes or 0), counts, "does not have the number of classes")
    outputs = 1 + trees.past_trees if n_classes is None else 0 if stopped else classes
    require(len(X) == len(y) <= samples, f"{_ROWS}X", "has more rows than samples, or fewer than y")
    require(len(y) <= trees.window.most, f"{_ROWS}X", "has too many rows")
    require(
        base.ndim == 2 and base.shape == (len(y), outputs),
        f"{_ROWS}base",
        "has another number of rows",
    )
    check_weights(f"{_ROWS}weight", arrays, len(y))
    words = arrays[f"{_ROWS}words"]
    require(len(words) == len(y), f"{_ROWS}words", "has another number of rows")
    for name in ("X", "words"):
        require(not np.isinf(arrays[f"{_ROWS}{name}"]).any(), f"{_ROWS}{name}", "is not finite")
    require(bool(np.isfinite(base).all()), f"{_ROWS}base", "has numbers that are not finite")
    later = 0
    if begins < 0:
        require(samples < following, counts, "has no next fit")
    else:
        later = samples - begins
        ordered = 0 < begins <= samples < due <= following and 0 <= later < len(y)
        require(ordered and not stopped, counts, "has a fit that cannot continue")
        _check_units(f"{PREFIX}units", arrays)
        most = 0 if n_classes is None else min(classes, MOST_CLASSES)
        require(
            min(most, 2) <= begun_classes <= most,
            counts,
            "has a fit with another number of classes",
        )
    require(bool(np.isfinite(y).all()), f"{_ROWS}y", "has numbers that are not finite")
    if n_classes is not None:
        fitted = y[: len(y) - later]
        named = _are_codes(y, classes) and (begins < 0 or _are_codes(fitted, begun_classes))
        require(named, f"{_ROWS}y", "names an unknown class")


def _are_codes(y: NDArray[np.float64], classes: int) -> bool:
    return bool(((y >= 0.0) & (y < classes) & (y == np.floor(y))).all())


def _check_forests(arrays: Arrays, columns: int, n_classes: int | None) -> None:
    """Check fitted trees: their splits and leaves, bins and units."""
    fields = list(Trees._fields)
    own = ("counts", "units", "unit", "texts", "columns", "bins_edges", "bins_categories")
    wanted = {f"{_FOREST}{name}" for name in own}
    wanted |= {f"{_FOREST}values_{field}" for field in CodeValues._fields}
    past = n_classes is None and f"{_FOREST}past_feature" in arrays
    kinds = ["fresh", "residual", *(["past"] if past else [])]
    wanted |= {f"{_FOREST}{kind}_{field}" for kind in kinds for field in fields}
    if differing := arrays.keys() ^ wanted:
        name = min(differing)
        raise WrongArrays(f"its array {name} is {'missing' if name in wanted else 'unknown'}")
    _check_form(f"{_FOREST}counts", arrays, (1,), np.int64)
    classes = int(arrays[f"{_FOREST}counts"][0])
    most = 0 if n_classes is None else min(n_classes, MOST_CLASSES)
    known = min(most, 2) <= classes <= most
    require(known, f"{_FOREST}counts", "does not have the number of classes")
    _check_units(f"{_FOREST}units", arrays)
    _check_form(f"{_FOREST}unit", arrays, (1,), np.float64)
    unit = arrays[f"{_FOREST}unit"][0]
    require(bool(np.isfinite(unit)) and unit > 0.0, f"{_FOREST}unit", "is not a unit")
    own_columns = columns + _check_encoding(arrays, columns, outputs_of(classes))
    seen = {"fresh": own_columns, "residual": own_columns + (n_classes is None)}
    seen["past"] = width = seen["residual"] + (COLUMNS if past else 0)
    _check_form(f"{_FOREST}bins_edges", arrays, (width, EDGES), np.float64)
    _check_form(f"{_FOREST}bins_categories", arrays, (width,), np.bool_)
    require(not np.isnan(arrays[f"{_FOREST}bins_edges"]).any(), f"{_FOREST}bins_edges", "has NaN")
    for kind in kinds:
        name, below = f"{_FOREST}{kind}", seen[kind]
        feature, trees = arrays[f"{name}_feature"], len(arrays[f"{name}_right"])
        require(0 < trees <= MOST_ROUNDS, f"{name}_right", "has too many trees, or none")
        _check_form(f"{name}_feature", arrays, (trees, NODES), np.int32)
        _check_form(f"{name}_right", arrays, (trees, NODES), np.uint64)
        _check_children(f"{name}_child", arrays, trees)
        inside = bool(((feature >= 0) & (feature < below)).all())
        require(inside, f"{name}_feature", "names a missing column")
        outputs = outputs_of(classes)
        _check_form(f"{name}_leaf", arrays, (trees, LEAVES, outputs), np.float64)
        _check_form(f"{name}_start", arrays, (outputs,), np.float64)
        for field in ("leaf", "start"):
            finite = bool(np.isfinite(arrays[f"{name}_{field}"]).all())
            require(finite, f"{name}_{field}", "has numbers that are not finite")


def _check_children(name: str, arrays: Arrays, trees: int) -> None:
    """Check that the children of each node are later nodes or leaves."""
    _check_form(name, arrays, (trees, NODES, 2), np.int8)
    child = arrays[name]
    later = (child > np.arange(NODES)[:, None]) & (child < NODES)
    leaf = (child < 0) & (child >= -LEAVES)
    require(bool((later | leaf).all()), name, "has a child that is neither a later node nor a leaf")


def _check_encoding(arrays: Arrays, columns: int, targets: int) -> int:
    """Check how codes are encoded as numbers; return the number of columns that this adds."""
    texts, encoded = (arrays[f"{_FOREST}{name}"] for name in ("texts", "columns"))
    _check_form(f"{_FOREST}texts", arrays, texts.shape[:1], np.float64)
    _check_form(f"{_FOREST}columns", arrays, encoded.shape[:1], np.int64)
    inside = bool(((encoded >= 0) & (encoded < columns)).all())
    require(inside, f"{_FOREST}columns", "names a missing column")
    groups = len(texts) + len(encoded)
    few = groups <= MOST_GROUPS and groups * targets <= MOST_VALUES
    require(few, f"{_FOREST}texts", "has too many columns")
    code, begin, value, start = (arrays[f"{_FOREST}values_{name}"] for name in CodeValues._fields)
    _check_form(f"{_FOREST}values_code", arrays, (len(code),), np.float64)
    _check_form(f"{_FOREST}values_begin", arrays, (groups + 1,), np.int64)
    _check_form(f"{_FOREST}values_value", arrays, (len(code), targets if groups else 0), np.float64)
    _check_form(f"{_FOREST}values_start", arrays, (groups, targets if groups else 0), np.float64)
    require(len(code) <= MOST_VALUED, f"{_FOREST}values_code", "has too many codes")
    ends = begin[0] == 0 and begin[-1] == len(code) and bool((np.diff(begin) >= 0).all())
    require(ends, f"{_FOREST}values_begin", "does not divide the codes")
    for name, array in (("texts", texts), ("values_value", value), ("values_start", start)):
        require(bool(np.isfinite(array).all()), f"{_FOREST}{name}", "is not finite")
    require(not np.isnan(code).any(), f"{_FOREST}values_code", "has NaN")
    return groups * targets


def _check_units(name: str, arrays: Arrays) -> None:
    _check_form(name, arrays, (5,), np.float64)
    units = arrays[name]
    sound = bool(np.isfinite(units).all()) and units[1] > 0.0
    require(sound and (units[2] == 0.0 or is_bend(float(units[2]))), name, "is not a unit")


def _check_form(name: str, arrays: Arrays, shape: tuple[int, ...], of_type: type) -> None:
    given = arrays[name]
    same = given.shape == shape and given.dtype == of_type
    require(same, name, f"has the shape {given.shape} or another type")
