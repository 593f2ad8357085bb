"""Train on ten million short texts from Parquet files, and measure time and memory.

    python scripts/large_data.py FOLDER [TEXTS]

Generates the texts in FOLDER/data, in shards of a million. Each text has 8 to 12 words: a clause from the generated
hotel stays, a room number and a name. Trains a small model on all of them for one epoch. Measures the resident memory
of the training process and its subprocesses every second (Linux only) and writes it to FOLDER/memory.csv.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rationalizer.data.generated_stays import CLASSES, CLAUSES

SHARD = 1_000_000
NAMES = 20_000  # invented names, so that the vocabulary is as large as that of real texts
METHOD = "sparsemax"  # takes half the time of the default method
SETTINGS = {
    "epochs": 1,
    "min_epochs": 0,
    "batch_size": 4096,
    "hidden": 8,
    "vector_size": 8,
    "embeddings": "none",
    "min_count": 5,
    "full_text_weight": 0,
    "learning_rate": 0.005,
}


def write_shard(path: Path, count: int, number: int) -> None:
    generator = np.random.default_rng(number)
    clauses = [
        (text.replace("[", "").replace("]", "").capitalize(), side)
        for sides in CLAUSES.values()
        for side, texts in zip(CLASSES, sides, strict=True)
        for text in texts
    ]
    indices = generator.integers(len(clauses), size=count)
    syllables = ["ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "ve", "wi", "xo", "yu", "za"]
    names = ["".join(syllables[(k // 16**place) % 16] for place in range(4)).capitalize() for k in range(NAMES)]

    def column(values: list[str]) -> pa.Array:
        return pa.array(values).take(pa.array(generator.integers(len(values), size=count)))

    text = pc.binary_join_element_wise(
        pa.array([text for text, _ in clauses]).take(pa.array(indices)),
        column([f"in room {k}" for k in range(1, 1000)]),
        column([f"{verb} {name}" for verb in ("says", "wrote") for name in names]),
        " ",
    )
    label = pa.array([side for _, side in clauses]).take(pa.array(indices))
    pq.write_table(pa.table({"text": pc.binary_join_element_wise(text, ".", ""), "label": label}), path)


def resident_bytes(process: int) -> int:
    """Return the resident bytes of a process and its subprocesses."""
    status = Path(f"/proc/{process}/status")
    try:
        own = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmRSS"))
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except (OSError, StopIteration):  # the process has ended
        return 0
    return 1024 * own + sum(resident_bytes(int(child)) for child in children)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="output folder for texts, cache, run and memory.csv")
    parser.add_argument("texts", type=int, nargs="?", default=10_000_000, help="number of texts; default: ten million")
    args = parser.parse_args()
    folder, count = args.folder, args.texts
    (folder / "data").mkdir(parents=True, exist_ok=True)
    shards = -(-count // SHARD)
    for k in range(shards):
        path = folder / "data" / f"train-{k:05d}-of-{shards:05d}.parquet"
        if not path.exists():
            write_shard(path, min(SHARD, count - k * SHARD), k)
    command = [
        sys.executable,
        "-m",
        "rationalizer",
        "train",
        str(folder / "data"),
        "--method",
        METHOD,
        "--device",
        "cpu",
    ]
    command += ["--out", str(folder / f"run-{int(time.time())}"), "--stream", "--cache-dir", str(folder / "cache")]
    command += [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    start = time.monotonic()
    peak = 0
    cached: float | None = None  # seconds until all texts were in the cache
    with (folder / "memory.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["seconds", "bytes"])
        process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
        while process.poll() is None:
            now = resident_bytes(process.pid)
            peak = max(peak, now)
            if cached is None and any((folder / "cache").glob("*/record.json")):
                cached = time.monotonic() - start
            table.writerow([round(time.monotonic() - start, 1), now])
            file.flush()
            time.sleep(1)
    seconds = time.monotonic() - start
    print(f"{count:,} texts, exit code {process.returncode}: {seconds:.0f} s (first pass {cached or 0:.0f} s)")
    print(f"peak memory {peak / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
