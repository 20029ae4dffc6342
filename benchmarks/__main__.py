"""Measure: python -m benchmarks NAME [--only TEXT] [--write-table].

Results are kept in `benchmarks/results/NAME.jsonl`, and what is there is not measured again.
"""

import argparse
import signal
import sys
from importlib import import_module
from pathlib import Path

from benchmarks import harness, results
from benchmarks.harness import Options, RunRequest, Study
from benchmarks.studies import STUDIES
from wolfstream.solver.compile_cache import use_compile_cache


def study_of(name: str) -> Study:
    """Import the module of a study."""
    study: Study = import_module(f"benchmarks.{STUDIES[name]}").STUDIES[name]
    return study


def written(page: str, name: str) -> str:
    """Return a page with a study's table."""
    study = study_of(name)
    return results.written(page, name, study.table(harness.read(study, name)))


def main() -> None:
    """Measure, print the table, and write it where that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=STUDIES)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of sets")
    parser.add_argument("--only", default="", help="pairs `contender on data` that have this text")
    parser.add_argument("--rows", type=int, help="a bound on the size of the data, for short runs")
    parser.add_argument("--seeds", help="with commas between")
    parser.add_argument("--limit-seconds", type=float, help="of the processor, for a contender")
    parser.add_argument("--again", action="store_true", help="measure what is kept, too")
    parser.add_argument("--results", type=Path, default=results.FOLDER, help="where to keep them")
    parser.add_argument("--write-table", action="store_true", help="into the page that has it")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    # SIGTERM would end this process without the servers that it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    use_compile_cache()  # numba itself would run code of before an edit of another file
    study = study_of(arguments.name)
    seeds = [int(seed) for seed in arguments.seeds.split(",")] if arguments.seeds else study.seeds
    options = Options(arguments.data, arguments.rows, seeds[0], arguments.limit_seconds)
    with harness.one_thread():
        if arguments.one:
            harness.run_one(study, (arguments.one[0], arguments.one[1]), options)
            return
        request = RunRequest(
            arguments.name, options, seeds, arguments.only, arguments.again, arguments.results
        )
        measured = harness.run(study, request)
    if not measured.results:
        return
    print(f"\n{study.table(measured)}")
    if arguments.rows is None:
        study.draw(measured)
    if arguments.write_table:
        study.page.write_text(written(study.page.read_text(), arguments.name))
        results.forget_typed(arguments.name)


if __name__ == "__main__":
    main()
