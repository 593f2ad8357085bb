"""Record decisions of the starter models, replay them under other conditions, and count those with other bits.

    python scripts/decision_replays.py DATA [--decisions 1000]

DATA has the folders `sst` and `snli` with Parquet files. The first line is about explanations without records (batches
of 128 instead of 1), the others about records, replayed in processes of their own. Printed are the decisions with other
bits, the largest difference of a probability, and the decisions with other words or another label.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from audit_models import read

from rationalizer import Rationalizer
from rationalizer.records import Verifier, read_records

TASKS = {"sentiment": "sst", "nli": "snli"}
REPLAYS: dict[str, dict[str, str]] = {
    "replayed, 1 thread": {"OMP_NUM_THREADS": "1"},
    "replayed, 2 threads": {"OMP_NUM_THREADS": "2"},
    "replayed, AVX2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "replayed, SSE4": {
        **{"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    },
}


def without_records(model: Rationalizer, texts: list[Any]) -> tuple[int, float, int]:
    together, alone = (list(model.explain(iter(texts), batch_size=size)) for size in (128, 1))
    read = [[each.pairs if model.pairs else each.spans for each in part] for part in (together, alone)]
    both = list(zip(together, alone, strict=True))
    differences = [max(abs(a.probabilities[k] - b.probabilities[k]) for k in a.probabilities) for a, b in both]
    others = sum(a.label != b.label for a, b in both) + sum(a != b for a, b in zip(*read, strict=True))
    return sum(map(bool, differences)), max(differences), others


def record(model: Rationalizer, texts: list[Any], *, threads: int, batch_size: int) -> list[Any]:
    torch.set_num_threads(threads)
    return [each.record for each in model.explain(iter(texts), batch_size=batch_size, record="with-text")]


def compare(records: list[Any], others: list[Any]) -> tuple[int, float, int]:
    both = list(zip(records, others, strict=True))
    differences = [max(abs(a.probabilities[k] - b.probabilities[k]) for k in a.probabilities) for a, b in both]
    found = [((a.rationale, a.alignment, a.label), (b.rationale, b.alignment, b.label)) for a, b in both]
    return sum(map(bool, differences)), max(differences), sum(a != b for a, b in found)


def replay(path: Path, name: str) -> tuple[int, float, int]:
    verifier = Verifier(name)
    found = [verifier.verify(each) for each in read_records(path)]
    failed = sum(each.verdict == "failed" for each in found)
    return sum(each.verdict != "identical" for each in found), max(each.difference for each in found), failed


def show(name: str, what: str, result: tuple[int, float, int]) -> None:
    bits, difference, others = result
    print(
        f"{name:10} {what:22} {bits:5} other bits, by up to {difference:.1e}; {others} other words or labels",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--decisions", type=int, default=1000)
    parser.add_argument("--replay", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.replay:
        print(json.dumps(replay(Path(args.replay[0]), args.replay[1])))
        return
    for name, dataset in TASKS.items():
        texts = [each if dataset == "snli" else " ".join(each) for each in read(args.data / dataset, dataset, "dev")[0]]
        if dataset == "sst" and len(texts) < args.decisions:  # 872 labelled sentences; those of the test split follow
            texts += [" ".join(each) for each in read(args.data / dataset, dataset, "test")[0]]
        texts = texts[: args.decisions]
        model = Rationalizer.load(name, "cpu")
        torch.set_num_threads(1)
        show(name, "without records", without_records(model, texts))
        started = time.process_time()
        records = record(model, texts, threads=1, batch_size=128)
        milliseconds = 1000 * (time.process_time() - started) / len(texts)
        print(f"{name:10} {milliseconds:.1f} ms of the processor for an explanation with a record")
        others = record(model, texts, threads=2, batch_size=7)
        show(name, "2 threads, batches of 7", compare(records, others))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "records.jsonl"
            path.write_text("".join(f"{each.to_json()}\n" for each in records))
            for what, environment in REPLAYS.items():
                command = [sys.executable, __file__, str(args.data), "--replay", str(path), name]
                done = subprocess.run(
                    command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
                )
                show(name, what, json.loads(done.stdout))


if __name__ == "__main__":
    main()
