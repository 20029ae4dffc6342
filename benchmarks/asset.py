"""ASSET beside its paper and its peers: test error against time, cost per sample, a stream.

    python -m benchmarks.asset --data FOLDER

Each contender learns in a process of its own, one after another, on one thread, from the same
rows in the same order. Prints Markdown; draws the curves of each set into `--figures`.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.asset_contenders import CONTENDERS, Curve, Result, seconds_to
from benchmarks.asset_figure import draw
from benchmarks.asset_flat import KINDS
from benchmarks.asset_problems import P5_PROBLEMS, P5Problem
from benchmarks.asset_stream import SET, STREAM_CONTENDERS, StreamResult
from benchmarks.contest import enter
from benchmarks.datasets import MissingSet, load
from benchmarks.machine import machine_line

PARTS = ("batch", "flat", "stream")
PEER, LIBSVM, OURS = "sk_nystroem", "libsvm", "nystrom"
COLUMNS = (
    "", "test error %", "s to P5's error", "of Nystroem + SGD", "s to P5's error + {near}",
    "of Nystroem + SGD", "all passes, s", "columns", "peak MB",
)  # fmt: skip
NOTES = """\
One process a contender, one thread, rows in the same order pass after pass. Seconds are CPU
seconds without compiling, loading and measuring the test error, which is that of the model after
the last pass. All contenders with features make them once, as the first pass comes to their rows,
and keep them. Columns: features, or LIBSVM's support vectors. *Nystroem + SGD* is scikit-learn's
`Nystroem` and `SGDClassifier` with `average`, on float64 rows as they come from the file or on
float32 ones: of 6 settings the one that is first at P5's error, in the other column the one that is
first there, with the seconds of the others not counted. P5's seconds are of its own machine."""


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--sets", nargs="+", choices=P5_PROBLEMS, default=tuple(P5_PROBLEMS))
    parser.add_argument("--features", nargs="+", type=int, choices=(512, 1024), default=(512, 1024))
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=tuple(CONTENDERS))
    parser.add_argument("--figures", type=Path, default=Path(__file__).parent / "figures")
    parser.add_argument("--limit-seconds", type=int, default=600)
    arguments = parser.parse_args()
    print(f"{machine_line()}\n", flush=True)
    if "batch" in arguments.parts:
        print(f"{NOTES}\n", flush=True)
        for name in arguments.sets:
            batch(name, arguments)
    if "flat" in arguments.parts:
        flat()
    if "stream" in arguments.parts:
        stream(arguments)


def said_by(module: str, *words: object, limit: int | None = None) -> tuple[list[Any], str]:
    """The lines of JSON that a contender printed within the limit, and what stands for the rest."""
    output = enter(module, *words, limit_seconds=limit)
    return [json.loads(line) for line in output.lines if line.endswith("}")], output.instead


def batch(name: str, arguments: argparse.Namespace) -> None:
    """A set's tables, one for each number of features, and its figure."""
    problem = P5_PROBLEMS[name]
    try:
        load(arguments.data, problem.file)
    except MissingSet as missing:
        print(f"### {name}\n\nSkipped: {missing}\n", flush=True)
        return
    print(
        f"### {name} ({problem.about})\n\n{problem.n_train:,} rows to learn, "
        f"{problem.epochs} passes; gamma {problem.gamma:g}, lambda {problem.lam:.3g}\n",
        flush=True,
    )
    curves: dict[int, dict[str, Curve]] = {}
    exact: tuple[Result | None, str] | None = None
    for s in arguments.features:
        results: dict[str, tuple[Result | None, str]] = {}
        for contender in arguments.contenders:
            if contender != LIBSVM or exact is None:
                words = (name, contender, s, "--data", arguments.data)
                lines, instead = said_by("asset_contenders", *words, limit=arguments.limit_seconds)
                results[contender] = (result_of(lines[-1]) if lines else None, instead)
            if contender == LIBSVM:
                exact = exact or results[contender]
                results[contender] = exact
        print(table(results, problem, s), flush=True)
        curves[s] = {CONTENDERS[n][0]: r.curve for n, (r, _) in results.items() if r}
        draw(arguments.figures / f"asset-{name}.svg", name, problem, curves)


def result_of(line: dict[str, Any]) -> Result:
    """Return a contender's last word."""
    return Result(**line | {"curve": Curve(**line["curve"])})


def table(results: dict[str, tuple[Result | None, str]], problem: P5Problem, s: int) -> str:
    """Markdown, one row a contender; below it what the peers were given and P5's figures."""
    targets = (problem.paper.error[s], problem.paper.error[s] + problem.near)
    peer = results.get(PEER, (None, ""))[0]
    columns = [column.format(near=problem.near) for column in COLUMNS]
    lines = [columns, ["---", *("---:" for _ in columns[1:])]]
    given = []
    for name, (result, instead) in results.items():
        title = CONTENDERS[name][0]
        if result is None:
            lines.append([title, instead, *("-" for _ in columns[2:])])
            continue
        curve = result.curve
        cells = [f"{curve.error[-1]:.2f}"]
        for target in targets:
            reached, of_peer = (seconds_of(each, target, problem, s) for each in (result, peer))
            cells.append(f"{reached:.2f}" if reached else f"not ({min(curve.error):.2f})")
            cells.append(share(reached, of_peer))
        total = f"{curve.seconds[-1]:.2f}{', then ' + instead if instead else ''}"
        cells += [total, f"{result.dimension:,}", f"{result.peak_bytes / 1e6:,.0f}"]
        lines.append([title, *cells])
        if result.tried > 1:
            given.append(f"{title}: {curve.setting}")
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    settings = f"\n\nThe best of each grid. {'; '.join(given)}." if given else ""
    return f"#### {s} features\n\n{table}{settings}\n\n{of_paper(results, problem, s)}\n"


def seconds_of(result: Result | None, target: float, problem: P5Problem, s: int) -> float | None:
    """CPU seconds to a test error: of a peer's best setting for it."""
    if result is None:
        return None
    if target > problem.paper.error[s] and result.near_seconds:
        return result.near_seconds
    return seconds_to(result.curve, target)


def share(seconds: float | None, of_peer: float | None) -> str:
    """Seconds as a share or a multiple of the peer's."""
    if seconds is None or of_peer is None:
        return "-"
    ratio = seconds / of_peer
    return f"{ratio:.1f}" if ratio >= 0.95 else f"1/{1.0 / ratio:.1f}"


def of_paper(results: dict[str, tuple[Result | None, str]], problem: P5Problem, s: int) -> str:
    """P5's figures in a sentence, beside the same ratio of ours."""
    paper = problem.paper
    factor = paper.svm_light_seconds / paper.asset_seconds[s]
    sentence = (
        f"P5: {paper.error[s]}% in {paper.asset_seconds[s]:g} s, SVM-Light {factor:.0f} times that"
    )
    ours, (exact, _) = results.get(OURS, (None, ""))[0], results.get(LIBSVM, (None, ""))
    reached = seconds_to(ours.curve, paper.error[s] + problem.near) if ours else None
    if exact is None or reached is None:
        return f"{sentence}."
    times = exact.curve.seconds[-1] / reached
    return (
        f"{sentence}. LIBSVM here takes {times:.0f} times what ASSET takes to P5's error + "
        f"{problem.near}."
    )


def flat() -> None:
    """Samples a second for each 100,000 of a million."""
    columns = []
    for kind in KINDS:
        lines, instead = said_by("asset_flat", kind)
        if instead:
            print(f"### Cost of a sample\n\n{kind}: {instead}\n", flush=True)
            return
        columns.append(lines)
    print("### Cost of a sample, from the first to the millionth\n")
    heads = [f"{kind}, {word}" for kind in KINDS for word in ("samples/s", "peak MB")]
    print(f"| samples | {' | '.join(heads)} |\n| ---: {'| ---: ' * len(heads)}|")
    for at in zip(*columns, strict=True):
        cells = [f"{line['rate']:,.0f} | {line['peak_bytes'] / 1e6:.1f}" for line in at]
        print(f"| {at[0]['samples']:,} | {' | '.join(cells)} |", flush=True)
    print()


def stream(arguments: argparse.Namespace) -> None:
    """Prequential accuracy and speed on elec2."""
    try:
        y = load(arguments.data, SET).y
    except MissingSet as missing:
        print(f"### {SET}\n\nSkipped: {missing}\n", flush=True)
        return
    print(
        f"### {SET}, {len(y):,} samples in order of time\n\n"
        f"Saying the last label again is right {100.0 * (y[1:] == y[:-1]).mean():.2f}% of the "
        "time.\n\n"
        "| | prequential accuracy % | samples/s |\n| --- | ---: | ---: |",
        flush=True,
    )
    for name, (title, _) in STREAM_CONTENDERS.items():
        lines, instead = said_by(
            "asset_stream", name, "--data", arguments.data, limit=arguments.limit_seconds
        )
        if not lines:
            print(f"| {title} | {instead} | - |", flush=True)
            continue
        result = StreamResult(**lines[-1])
        print(f"| {title} | {result.accuracy:.2f} | {result.n / result.seconds:,.0f} |", flush=True)
    print()


if __name__ == "__main__":
    main()
