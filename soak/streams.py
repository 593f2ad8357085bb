"""`explain` of a long file, killed several times and resumed: the output of a run that was not killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from soak import small_models
from soak.cases import Case, Soak, require, wait_for
from soak.processes import LONGEST, finish

LINES = 2000


def run(soak: Soak) -> None:
    model = small_models.train_small(soak.folder / "model")
    texts = soak.folder / "texts.jsonl"
    lines = [json.dumps({"text": text, "note": number}) for number, text in enumerate(small_models.texts(LINES))]
    texts.write_text("\n".join(lines) + "\n")
    whole: dict[str, bytes] = {}

    def judge(case: Case) -> None:
        ending, batch = case.pick(["jsonl", "csv"]), case.pick([1, 7, 16, 128])
        case.note(f"{ending}, --batch-size {batch}")
        options = ["--file", str(texts), "--batch-size", str(batch)]
        key = f"{ending}-{batch}"
        if key not in whole:
            path = soak.folder / f"whole-{key}.{ending}"
            finish(start(model, [*options, "--out", str(path)]))
            whole[key] = path.read_bytes()
            require(whole[key].count(b"\n") == LINES + (ending == "csv"), "the whole output lacks lines")
        out = soak.folder / f"case-{case.number}.{ending}"
        resumed = [*options, "--out", str(out), "--resume"]
        for _ in range(int(case.random.integers(2, 5))):
            kill_on_the_way(case, start(model, resumed), out, len(whole[key]))
        finish(start(model, resumed))
        require(out.read_bytes() == whole[key], "other output than without being killed")

    soak.check(6, judge, seconds=300)


def start(model: Path, options: list[str]) -> subprocess.Popen:
    command = [sys.executable, "-m", "rationalizer", "explain", str(model), *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def kill_on_the_way(case: Case, process: subprocess.Popen, out: Path, size: int) -> None:
    """Kills it once it has written about a drawn share of what is left."""

    def written() -> int:
        return out.stat().st_size if out.exists() else 0

    before = written()
    wanted = before + (size - before) * float(case.random.uniform(0.0, 0.5))
    try:
        wait_for(lambda: written() > wanted or process.poll() is not None, LONGEST)
    finally:
        process.send_signal(signal.SIGKILL)
        _, said = process.communicate()
    require(process.returncode in (0, -signal.SIGKILL), "ended with code", process.returncode, said[-1500:])
    case.note(f"killed at {written()} of {size} bytes")
