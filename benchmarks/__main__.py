"""python -m benchmarks [name ...] [--page FILE]: exit code 0 if every target was met.

Each benchmark is a module with a `main()` that prints tables. It runs in a subprocess with a time limit. The summary
counts the verdicts in the last columns of the tables (`timing.verdict`).
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks.bounded_process import Result, run_benchmark
from benchmarks.page import fill_sections, require_sections
from benchmarks.timing import describe_machine, print_skipped, print_table

# Time limits in seconds, in the order of the page. Together they stay below 15 minutes without a GPU.
SECONDS = {
    "sequence_budget": 90,
    "early_training": 80,
    "spans": 80,
    "matching": 60,
    "graph": 30,
    "training_step": 130,
    "training": 80,
    "serve": 150,
    "command_line": 120,
    "explain": 60,
}
ON_GPU = {"gpu": 300, "transformer": 300}


def main(given: list[str] | None = None) -> int:
    options = _options(given)
    if options.here:
        return _run_here(options.names[0])
    page = options.page
    if page:
        require_sections(page.read_text(), options.names, page)  # fail before minutes are spent
    this = [sys.executable, "-u", "-m", "benchmarks", "--here"]
    results = [run_benchmark(name, [*this, name], (SECONDS | ON_GPU)[name]) for name in options.names]
    _summarize(results)
    if page:
        page.write_text(fill_sections(page.read_text(), {r.name: r.output for r in results if r.has_table}))
    return int(not all(result.succeeded for result in results))


def _options(given: list[str] | None) -> argparse.Namespace:
    known = [*SECONDS, *ON_GPU]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of {', '.join(known)}; default: all")
    parser.add_argument("--page", type=Path, help="write the output into the sections of this page")
    parser.add_argument(
        "--here", action="store_true", help="run one benchmark in this process, without a time limit, for debugging"
    )
    options = parser.parse_args(given)
    for name in options.names:
        if name not in known:
            parser.error(f"unknown benchmark {name!r}; choose from {', '.join(known)}")
    if options.here and (len(options.names) != 1 or options.page):
        parser.error("--here takes the name of one benchmark, and no --page")
    options.names = list(dict.fromkeys(options.names)) or known
    return options


def _run_here(name: str) -> int:
    try:
        benchmark = importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("benchmarks", "rationalizer"):
            raise
        print_skipped(f"{error.name} is not installed; make bench installs it")
        return 0
    print(f"{describe_machine()}\n", flush=True)
    benchmark.main()
    return 0


def _summarize(results: list[Result]) -> None:
    print("\n## Summary\n")
    rows = [[r.name, f"{r.seconds:.0f}", r.met, len(r.missed), r.remark] for r in results]
    total = f"{sum(r.seconds for r in results):.0f}"
    rows.append(["all", total, sum(r.met for r in results), sum(len(r.missed) for r in results), ""])
    print_table(["benchmark", "seconds", "rows met", "rows missed", ""], rows)
    for result in results:
        for row in result.missed:
            print(f"\nmissed, {result.name}: {row}")


if __name__ == "__main__":
    sys.exit(main())
