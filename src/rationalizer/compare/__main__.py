"""A run in a process of its own: `python -m rationalizer.compare`, with the order as a line of JSON on standard input.

What it leaves in the run's folder is the result. The exit code tells how it ended; standard output is the run's record,
or why there is none; standard error is the log. It ends early when standard input ends: whoever gave the order is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import redirect_stdout

from rationalizer.compare.single_run import DONE, FAILED, STOPS, Order, carry_out


def main() -> int:
    order = Order.from_json(json.loads(sys.stdin.readline()))
    threading.Thread(target=_end_with_input, daemon=True).start()
    if hasattr(signal, "SIGUSR2"):  # by which Slurm tells submitit, not us, that time is up
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    with redirect_stdout(sys.stderr):
        outcome = carry_out(order, apart=True)
    print(json.dumps(outcome.record) if outcome.error is None else outcome.error)
    return STOPS if outcome.stops else FAILED if outcome.error else DONE


def _end_with_input() -> None:
    while os.read(0, 1):  # not sys.stdin, whose lock must be free when the interpreter ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
