"""python -m benchmarks [name ...] [--page FILE]: exit code 0 if every target was met.

Each benchmark is a module with a `main()` that prints tables, and runs in a process of its own for a bounded time. What
the last column of a row says (`timing.verdict`) is all that the summary knows.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks.apart import Ended, run_module
from benchmarks.page import filled, require_places
from benchmarks.timing import measured_on, print_table, skipped

# Seconds that each may take, in the order of the page. Without a GPU all of them together stay below 15 minutes.
SECONDS = {
    "sequence_budget": 90,
    "where_training_starts": 80,
    "spans": 80,
    "matching": 70,
    "graph": 30,
    "training_step": 130,
    "training": 60,
    "serve": 150,
    "command_line": 130,
    "explain": 60,
}
ON_GPU = {"gpu": 300, "transformer": 300}


def main(given: list[str] | None = None) -> int:
    options = _options(given)
    if options.here:
        return _run_here(options.names[0])
    page = options.page
    if page:
        require_places(page.read_text(), options.names, page)  # before minutes are spent
    this = [sys.executable, "-u", "-m", "benchmarks", "--here"]
    ends = [run_module(name, [*this, name], (SECONDS | ON_GPU)[name]) for name in options.names]
    _summarize(ends)
    if page:
        page.write_text(filled(page.read_text(), {end.name: end.output for end in ends if end.measured}))
    return int(not all(end.succeeded for end in ends))


def _options(given: list[str] | None) -> argparse.Namespace:
    known = [*SECONDS, *ON_GPU]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(known)}; by default all")
    parser.add_argument("--page", type=Path, help="write what was printed into this page, between its marks")
    parser.add_argument("--here", action="store_true", help="one benchmark in this process, for a debugger; no bound")
    options = parser.parse_args(given)
    for name in options.names:
        if name not in known:
            parser.error(f"there is no benchmark {name!r}; there are: {', '.join(known)}")
    if options.here and (len(options.names) != 1 or options.page):
        parser.error("--here needs the name of one benchmark, and writes no page")
    options.names = list(dict.fromkeys(options.names)) or known
    return options


def _run_here(name: str) -> int:
    try:
        benchmark = importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("benchmarks", "rationalizer"):
            raise
        skipped(f"it needs {error.name}; make bench installs it")
        return 0
    print(f"{measured_on()}\n", flush=True)
    benchmark.main()
    return 0


def _summarize(ends: list[Ended]) -> None:
    print("\n## Summary\n")
    rows = [[end.name, f"{end.seconds:.0f}", end.met, len(end.missed), end.remark] for end in ends]
    total = f"{sum(end.seconds for end in ends):.0f}"
    rows.append(["all", total, sum(end.met for end in ends), sum(len(end.missed) for end in ends), ""])
    print_table(["benchmark", "seconds", "rows met", "rows missed", ""], rows)
    for end in ends:
        for row in end.missed:
            print(f"\nmissed, {end.name}: {row}")


if __name__ == "__main__":
    sys.exit(main())
