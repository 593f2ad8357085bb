"""python -m soak [name ...] [--seed N] [--scale F]: exit code 0 if nothing was wrong and nothing hung."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from soak.parts import PARTS, Tally, run_here, run_module


def main(given: list[str] | None = None) -> int:
    options = _options(given)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    print(f"seed {seed}, scale {options.scale:g}", flush=True)
    tallies: list[Tally] = [Tally(name, seed, options.scale) for name in options.parts]
    run = run_here if options.here or options.case is not None else run_module
    stopped = False
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        try:
            run(tallies, Path(folder), options.case)
        except KeyboardInterrupt:
            stopped = True
    _show(tallies)
    print(f"\nseed {seed}{'; stopped before the end' if stopped else ''}")
    return 130 if stopped else int(any(tally.counts["wrong"] or tally.counts["hung"] for tally in tallies))


def _options(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="name", help=f"of {', '.join(PARTS)}; by default all")
    parser.add_argument("--seed", type=int, help="repeat the run that printed it; by default another one each time")
    parser.add_argument("--scale", type=float, default=1.0, help="how many cases, as a factor; 0.05 for a short run")
    parser.add_argument("--case", type=int, help="only the case of this number, of one part")
    parser.add_argument("--here", action="store_true", help="in this process, for a debugger; what hangs hangs")
    options = parser.parse_args(given)
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
