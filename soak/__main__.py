"""python -m soak [name ...] [--seed N] [--scale F]: exit code 0 if nothing was wrong and nothing hung."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from soak.runner import PARTS, Tally, run_in_processes, run_in_this_process


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    print(f"seed {seed}, scale {options.scale:g}", flush=True)
    tallies: list[Tally] = [Tally(name, seed, options.scale) for name in options.parts]
    run = run_in_this_process if options.here or options.case is not None else run_in_processes
    stopped = False
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        try:
            run(tallies, Path(folder), options.case)
        except KeyboardInterrupt:
            stopped = True
    _show(tallies)
    print(f"\nseed {seed}{'; stopped before the end' if stopped else ''}")
    return 130 if stopped else int(any(tally.counts["wrong"] or tally.counts["hung"] for tally in tallies))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="name", help=f"of {', '.join(PARTS)}; by default all")
    parser.add_argument("--seed", type=int, help="seed of an earlier run, to repeat it; by default a new one")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the number of cases; 0.05 for a short run")
    parser.add_argument("--case", type=int, help="run only the case with this number, of one part")
    parser.add_argument(
        "--here", action="store_true", help="run in this process, for a debugger, without the limit on hanging cases"
    )
    options = parser.parse_args(arguments)
    for name in options.parts:
        if name not in PARTS:
            parser.error(f"there is no part {name!r}; there are: {', '.join(PARTS)}")
    if options.case is not None and len(options.parts) != 1:
        parser.error("--case needs the name of one part")
    if not options.scale > 0:
        parser.error(f"--scale must be more than 0, got {options.scale:g}")
    options.parts = list(dict.fromkeys(options.parts)) or list(PARTS)
    return options


def _show(tallies: list[Tally]) -> None:
    print(f"\n{'part':<18}{'tried':>8}{'wrong':>8}{'unclear':>9}{'hung':>7}{'seconds':>9}")
    for tally in tallies:
        counts = tally.counts
        print(
            f"{tally.name:<18}{sum(counts.values()):>8}{counts['wrong']:>8}{counts['unclear']:>9}{counts['hung']:>7}"
            f"{tally.seconds:>9.1f}"
        )


if __name__ == "__main__":
    sys.exit(main())
