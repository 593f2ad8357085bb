"""`explain` of a long file, killed several times and resumed: the same output as without interruption."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from soak import small_models
from soak.cases import PROCESS_SECONDS, Case, Soak, finish, require, wait_for

LINES = 2000


def run(soak: Soak) -> None:
    model = small_models.train_small(soak.folder / "model")
    texts = soak.folder / "texts.jsonl"
    lines = [json.dumps({"text": text, "note": number}) for number, text in enumerate(small_models.texts(LINES))]
    texts.write_text("\n".join(lines) + "\n")
    expected: dict[str, bytes] = {}

    def check_case(case: Case) -> None:
        ending, batch = case.pick(["jsonl", "csv"]), case.pick([1, 7, 16, 128])
        case.note(f"{ending}, --batch-size {batch}")
        options = ["--file", str(texts), "--batch-size", str(batch)]
        key = f"{ending}-{batch}"
        if key not in expected:
            path = soak.folder / f"expected-{key}.{ending}"
            finish(start(model, [*options, "--out", str(path)]))
            expected[key] = path.read_bytes()
            require(expected[key].count(b"\n") == LINES + (ending == "csv"), "the uninterrupted output lacks lines")
        out = soak.folder / f"case-{case.number}.{ending}"
        resumed = [*options, "--out", str(out), "--resume"]
        for _ in range(int(case.random.integers(2, 5))):
            kill_midway(case, start(model, resumed), out, len(expected[key]))
        finish(start(model, resumed))
        require(out.read_bytes() == expected[key], "the output differs from an uninterrupted run")

    soak.check(6, check_case, seconds=300)


def start(model: Path, options: list[str]) -> subprocess.Popen:
    command = [sys.executable, "-m", "rationalizer", "explain", str(model), *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def kill_midway(case: Case, process: subprocess.Popen, out: Path, size: int) -> None:
    """Kill the process once it has written a random share of the remaining output."""

    def written() -> int:
        return out.stat().st_size if out.exists() else 0

    before = written()
    wanted = before + (size - before) * float(case.random.uniform(0.0, 0.5))
    try:
        wait_for(lambda: written() > wanted or process.poll() is not None, PROCESS_SECONDS)
    finally:
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
    require(process.returncode in (0, -signal.SIGKILL), "ended with code", process.returncode, errors[-1500:])
    case.note(f"killed at {written()} of {size} bytes")
