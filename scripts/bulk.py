"""Measure speed and memory of `explain --engine ray` on many short texts, compared with plain `explain`.

    python scripts/bulk.py FOLDER --texts 1000000 --workers 2

Writes the texts (numbered sentences of the generated reviews, in ten Parquet files) and the explanations to FOLDER.
First, `explain` without Ray explains a sample with one thread. Speed is given in texts per second of wall-clock time
and of CPU time; CPU time depends less on other programs on the machine. Memory is the sum of the resident memory (RSS)
of all processes, measured every two seconds; memory shared by several processes, such as PyTorch's code, is counted
once per process.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from rationalizer.data import generated_reviews

FILES, SAMPLE = 10, 20_000
TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


def write_texts(folder: Path, count: int) -> None:
    reviews = [example.text for example in generated_reviews(train=1, dev=1, test=5000).test]
    sentences = [
        f"{part.strip()}." for review in reviews for part in review.replace("!", ".").split(".") if part.strip()
    ]
    print(f"{len(sentences)} sentences of {sum(len(s.split()) for s in sentences) / len(sentences):.1f} words")
    folder.mkdir(parents=True, exist_ok=True)
    each = -(-count // FILES)
    for k, first in enumerate(range(0, count, each)):
        numbers = range(first, min(first + each, count))
        texts = [f"{sentences[n % len(sentences)]} {n}" for n in numbers]
        parquet.write_table(pa.table({"id": numbers, "text": texts}), folder / f"{k}.parquet", row_group_size=50_000)


class MeasuredCommand:
    """`rationalizer explain` as a subprocess, with the memory and CPU time of its whole process tree."""

    def __init__(self, *arguments: str) -> None:
        self.seconds: dict[int, float] = {}
        self.memory: list[tuple[float, float, int]] = []  # seconds, MB, processes
        self.start = time.monotonic()
        command = [sys.executable, "-m", "rationalizer", "explain", "sentiment", *arguments]
        self.process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})

    def wait(self, limit: float) -> float:
        while self.process.poll() is None:
            self.measure()
            time.sleep(2)
            if self.elapsed() > limit:
                self.process.send_signal(signal.SIGINT)
                limit = float("inf")
        return self.elapsed()

    def elapsed(self) -> float:
        return time.monotonic() - self.start

    def measure(self) -> None:
        parents, facts = {}, {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # the process has ended
                continue
            parents[int(folder.name)] = int(fields[1])
            facts[int(folder.name)] = (int(fields[11]) + int(fields[12])) / TICKS, int(fields[21]) * PAGE / 1e6
        tree = {self.process.pid}
        while more := {child for child, parent in parents.items() if parent in tree} - tree:
            tree |= more
        self.seconds |= {process: facts[process][0] for process in tree if process in facts}
        self.memory.append((self.elapsed(), sum(facts[p][1] for p in tree if p in facts), len(tree)))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--texts", type=int, default=1_000_000)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--minutes", type=float, default=60, help="interrupt (as Ctrl-C does) after this time")
    options.add_argument("--resume", action="store_true", help="resume an interrupted call")
    args = options.parse_args()
    folder = args.folder
    if not args.resume:
        write_texts(folder / "in", args.texts)
    parquet.write_table(parquet.read_table(folder / "in" / "0.parquet").slice(0, SAMPLE), folder / "sample.parquet")
    plain = MeasuredCommand("--file", f"{folder}/sample.parquet", "--out", f"{folder}/sample.csv", "--overwrite")
    plain_seconds = plain.wait(600)
    clock = time.time()
    ray = MeasuredCommand(
        *("--file", f"{folder}/in/*.parquet", "--out", f"{folder}/out", "--engine", "ray"),
        *("--workers", str(args.workers), "--resume" if args.resume else "--overwrite"),
    )
    ray_seconds = ray.wait(60 * args.minutes)
    shards = sorted((folder / "out").rglob("*.parquet"), key=lambda path: path.stat().st_mtime)
    new = [path for path in shards if path.stat().st_mtime > clock]
    done = sum(parquet.read_metadata(path).num_rows for path in new)
    first = new[0].stat().st_mtime - clock
    whole = len({n for path in shards for n in parquet.read_table(path, columns=["id"])["id"].to_pylist()})
    later = [memory for seconds, memory, _ in ray.memory if seconds > first]
    tenths = [later[len(later) * k // 10 : len(later) * (k + 1) // 10] for k in range(10)]
    print(
        json.dumps(
            {
                "texts": done,
                "distinct, including earlier calls": whole,
                "plain": {
                    "texts/s": SAMPLE / plain_seconds,
                    "texts/s of CPU time": SAMPLE / sum(plain.seconds.values()),
                    "peak MB": max(memory for _, memory, _ in plain.memory),
                },
                "ray": {
                    "seconds": ray_seconds,
                    "seconds to the first shard": first,
                    "texts/s": done / ray_seconds,
                    "texts/s of CPU time": done / sum(ray.seconds.values()),
                    "processes": max(count for _, _, count in ray.memory),
                    "peak MB": max(memory for _, memory, _ in ray.memory),
                    "MB by tenths of the time after the first shard": [sum(t) / len(t) for t in tenths if t],
                },
                "bytes per text, in": sum(p.stat().st_size for p in (folder / "in").iterdir()) / args.texts,
                "bytes per text, out": sum(p.stat().st_size for p in new) / done,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
