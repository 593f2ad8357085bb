"""Execute one run in a subprocess: `python -m rationalizer.compare`, with a `RunTask` as one line of JSON on stdin.

The run's folder holds the result. The exit code says how the run ended, standard output is the run's record or the
error, standard error is the log. The process ends when standard input is closed: then its parent has died.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import redirect_stdout

from rationalizer.compare.single_run import FAILED, FATAL, SUCCEEDED, RunTask, execute


def main() -> int:
    task = RunTask.from_json(json.loads(sys.stdin.readline()))
    threading.Thread(target=_exit_with_stdin, daemon=True).start()
    if hasattr(signal, "SIGUSR2"):  # Slurm sends it to the whole job; only submitit shall act on it
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    with redirect_stdout(sys.stderr):
        outcome = execute(task, in_subprocess=True)
    print(json.dumps(outcome.record) if outcome.error is None else outcome.error)
    return FATAL if outcome.is_fatal else FAILED if outcome.error else SUCCEEDED


def _exit_with_stdin() -> None:
    while os.read(0, 1):  # not sys.stdin: its lock must be free when the interpreter exits
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
