"""CPU time of `rationalizer explain`, relative to `import torch` and to the Python API.

    python -m benchmarks command_line

Measures CPU seconds of whole processes, which depend less on other programs than wall-clock time. Commands run
alternately; the minimum per command is reported.

- One text: `rationalizer explain RUN "text"`, relative to `import torch`.
- A file with 2,000 reviews of about 100 words: `rationalizer explain --file`, relative to a Python program that loads
  the model, reads the file and calls `explain`.
"""

from __future__ import annotations

import csv
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.timing import print_table, verdict
from rationalizer import Rationalizer
from rationalizer.data import generated_reviews as reviews

REVIEWS, MAX_JOINED, REPEATS = 2000, 8, 2
MAX_SINGLE_TEXT, MAX_FILE = 1.6, 1.5  # target ratios
PYTHON_PROGRAM = """
import csv, sys
from rationalizer import Rationalizer
model = Rationalizer.load(sys.argv[1])
with open(sys.argv[2], newline="") as file:
    texts = [row["text"] for row in csv.DictReader(file)]
model.explain(texts)
"""


def seconds(command: Sequence[str], bytecode: str) -> float:
    """Return the user and system CPU seconds of a process, with compiled modules cached in the folder `bytecode`."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = inherited | {"PYTHONPYCACHEPREFIX": bytecode}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *command], env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def minimum_seconds(commands: Sequence[Sequence[str]]) -> list[float]:
    """Return the minimum CPU seconds of each command over alternating runs, after one run that fills caches."""
    with tempfile.TemporaryDirectory() as bytecode:
        runs = [[seconds(command, bytecode) for command in commands] for _ in range(1 + REPEATS)][1:]
    return [min(times) for times in zip(*runs, strict=True)]


def main() -> None:
    corpus = reviews(train=400, dev=40, test=REVIEWS + MAX_JOINED)
    model = Rationalizer("spectra", epochs=1, min_epochs=1)
    model.fit([e.text for e in corpus.train], [corpus.classes[e.label] for e in corpus.train], progress=False)
    texts = [e.text for e in corpus.test]
    # Texts of very different lengths.
    long = [" ".join(texts[k : k + 1 + k % (2 * MAX_JOINED)]) for k in range(REVIEWS)]
    with tempfile.TemporaryDirectory() as name:
        run, file = Path(name) / "run", Path(name) / "reviews.csv"
        model.save(run)
        with file.open("w", newline="") as opened:
            csv.writer(opened).writerows([["text"], *([text] for text in long)])
        explain = ["-m", "rationalizer", "explain", str(run)]
        torch, single, python, *files = minimum_seconds(
            [
                ["-c", "import torch"],
                [*explain, "A warm film."],
                ["-c", PYTHON_PROGRAM, str(run), str(file)],
                *(
                    [*explain, "--file", str(file), "--overwrite", "--out", f"{name}/o.{form}"]
                    for form in ("csv", "jsonl")
                ),
            ]
        )
    rows = [["import torch", torch, "", ""], ["explain RUN text", single, single / torch, MAX_SINGLE_TEXT]]
    rows += [[f"{REVIEWS} reviews in Python", python, "", ""]]
    rows += [
        [f"explain --file, to .{form}", spent, spent / python, MAX_FILE]
        for form, spent in zip(("csv", "jsonl"), files, strict=True)
    ]
    print_table(
        ["command", "CPU seconds", "ratio", "maximum", ""],
        [[*row, "" if row[2] == "" else verdict(row[2] <= row[3])] for row in rows],
    )


if __name__ == "__main__":
    main()
