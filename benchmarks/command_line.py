"""What the command line costs beside Python, and what a first use costs beside importing PyTorch.

    python -m benchmarks command_line

Every figure is of whole processes, taken in turns, in seconds of the processor, which other programs on the machine
disturb less than the clock; the least of several counts.

- First use: `rationalizer explain RUN "text"` against `import torch` alone.
- A file of 2,000 reviews of about 100 words: `rationalizer explain --file` against a Python program that loads the
  model, reads the file and calls `explain`.
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

REVIEWS, JOINED, TIMES = 2000, 8, 2
FIRST_USE, FILES = 1.6, 1.5  # at most
IN_PYTHON = """
import csv, sys
from rationalizer import Rationalizer
model = Rationalizer.load(sys.argv[1])
with open(sys.argv[2], newline="") as file:
    texts = [row["text"] for row in csv.DictReader(file)]
model.explain(texts)
"""


def seconds(command: Sequence[str], bytecode: str) -> float:
    """What a process used of the processor, in its own code and in the system's. Python keeps what it has compiled of
    modules in the folder `bytecode`, as installing a package does, whatever the caller's settings."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = kept | {"PYTHONPYCACHEPREFIX": bytecode}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *command], env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def least(commands: Sequence[Sequence[str]]) -> list[float]:
    """The least of each, taken in turns, after one turn that fills caches."""
    with tempfile.TemporaryDirectory() as bytecode:
        turns = [[seconds(command, bytecode) for command in commands] for _ in range(1 + TIMES)][1:]
    return [min(taken) for taken in zip(*turns, strict=True)]


def main() -> None:
    corpus = reviews(train=400, dev=40, test=REVIEWS + JOINED)
    model = Rationalizer("spectra", epochs=1, min_epochs=1)
    model.fit([e.text for e in corpus.train], [corpus.classes[e.label] for e in corpus.train], progress=False)
    texts = [e.text for e in corpus.test]
    long = [" ".join(texts[k : k + 1 + k % (2 * JOINED)]) for k in range(REVIEWS)]  # of very different lengths
    with tempfile.TemporaryDirectory() as name:
        run, file = Path(name) / "run", Path(name) / "reviews.csv"
        model.save(run)
        with file.open("w", newline="") as opened:
            csv.writer(opened).writerows([["text"], *([text] for text in long)])
        explain = ["-m", "rationalizer", "explain", str(run)]
        torch, first, python, *written = least(
            [
                ["-c", "import torch"],
                [*explain, "A warm film."],
                ["-c", IN_PYTHON, str(run), str(file)],
                *(
                    [*explain, "--file", str(file), "--overwrite", "--out", f"{name}/o.{form}"]
                    for form in ("csv", "jsonl")
                ),
            ]
        )
    rows = [["import torch", torch, "", ""], ["explain RUN text", first, first / torch, FIRST_USE]]
    rows += [[f"{REVIEWS} reviews in Python", python, "", ""]]
    rows += [
        [f"explain --file, to .{form}", taken, taken / python, FILES]
        for form, taken in zip(("csv", "jsonl"), written, strict=True)
    ]
    print_table(
        ["what", "seconds", "ratio", "at most", ""],
        [[*row, "" if row[2] == "" else verdict(row[2] <= row[3])] for row in rows],
    )


if __name__ == "__main__":
    main()
