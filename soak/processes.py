"""Programs that are started, and must end well."""

from __future__ import annotations

import subprocess

from soak.cases import Hung, require

LONGEST = 120.0  # seconds of one process


def finish(process: subprocess.Popen) -> None:
    """Waits for its end, with code 0."""
    try:
        _, said = process.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Hung(f"{process.args} did not end in {LONGEST:g} s") from None
    require(process.returncode == 0, process.args, "ended with code", process.returncode, said[-2000:])
