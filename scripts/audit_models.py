"""Train models with the defaults and with the paper's settings, audit them, and print a table of the verdicts.

    python scripts/audit_models.py DATA OUT [--jobs 2] [--only sst] [--encoder FOLDER] [--pairs 8000] [--audited 1000]

DATA has the folders `sst`, `agnews`, `hotels_location`, `imdb` and `snli` with Parquet files. Every model is trained on
2,000 texts, or `--pairs` pairs, and audited on up to `--audited` held-out ones. A finished model is a JSON file in OUT;
what is there is not computed again. With `--encoder`, models with this transformer are trained as well.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

TRAIN, AUDITED = 2000, 1000
PAIRS = 8000
SEEDS = (0, 1, 2)


def tasks(encoder: str | None) -> dict[str, dict[str, Any]]:
    """All models by name: dataset, settings of `Rationalizer`, and whose presets to start from."""
    found: dict[str, dict[str, Any]] = {}
    for dataset in ("sst", "agnews", "hotels", "imdb"):
        for gaps in ("kept", "closed"):
            for seed in SEEDS:
                found[f"{dataset}-bilstm-{gaps}-{seed}"] = {
                    "dataset": dataset,
                    "settings": {"gaps": gaps, "seed": seed},
                }
    for dataset in ("sst", "hotels"):
        for weight in (0.0, 1.0):
            for gaps in ("kept", "closed"):
                settings = {"gaps": gaps, "full_text_weight": weight, "epochs": 15}
                name = f"{dataset}-paper-{'full-text' if weight else 'selection'}-{gaps}"
                found[name] = {"dataset": dataset, "preset": dataset, "settings": settings}
    found["snli-bilstm"] = {"dataset": "snli", "settings": {"epochs": 10}}
    for dataset in ("sst", "agnews", "hotels") if encoder else ():
        for gaps in ("kept", "closed"):
            for seed in SEEDS[:2]:
                settings = {"encoder": encoder, "gaps": gaps, "seed": seed}
                found[f"{dataset}-transformer-{gaps}-{seed}"] = {"dataset": dataset, "settings": settings}
    if encoder:
        found["snli-transformer"] = {"dataset": "snli", "settings": {"encoder": encoder, "epochs": 3}}
    return found


def read(folder: Path, dataset: str, split: str) -> tuple[list[Any], list[str]]:
    rows = pq.read_table(folder / f"{split}.parquet").to_pylist()
    if dataset == "sst":
        rows = [row for row in rows if row["label"] >= 0]
        return [list(row["tokens"]) for row in rows], [("negative", "positive")[row["label"]] for row in rows]
    if dataset == "hotels":
        rows = [row for row in rows if row["overall"] >= 4 or 0 < row["overall"] <= 2]
        labels = ["positive" if row["overall"] >= 4 else "negative" for row in rows]
        return [list(row["tokens"]) for row in rows], labels
    if dataset == "snli":
        rows = [row for row in rows if row["label"] >= 0]
        names = ("entailment", "neutral", "contradiction")
        pairs = [tuple(row.get(side) or row[f"{side}_tokens"] for side in ("premise", "hypothesis")) for row in rows]
        return pairs, [names[row["label"]] for row in rows]
    return [row["text"] for row in rows], [str(row["label"]) for row in rows]


def sample(texts: list[Any], labels: list[str], size: int) -> tuple[list[Any], list[str]]:
    """The same random rows for every model, as many of each class as possible."""
    order = np.random.default_rng(0).permutation(len(texts)).tolist()
    names = sorted(set(labels))
    share = -(-size // len(names))
    chosen = [k for name in names for k in [k for k in order if labels[k] == name][:share]]
    chosen = np.random.default_rng(1).permutation(chosen).tolist()[:size]
    return [texts[k] for k in chosen], [labels[k] for k in chosen]


def run(data: Path, name: str, task: dict[str, Any], out: Path, pairs: int, audited: int) -> None:
    import torch

    import rationalizer
    from rationalizer.models.presets import presets_for

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dataset = task["dataset"]
    folder = data / {"hotels": "hotels_location"}.get(dataset, dataset)
    held_out = "dev" if (folder / "dev.parquet").exists() else "test"
    texts, labels = sample(*read(folder, dataset, "train"), pairs if dataset == "snli" else TRAIN)
    others, truth = sample(*read(folder, dataset, held_out), audited)
    settings = {**(presets_for(task["preset"], "spectra") if "preset" in task else {}), **task["settings"]}
    started = time.perf_counter()
    device = "auto" if "encoder" in settings else "cpu"
    threads = {} if device == "auto" else {"threads": 1}
    model = rationalizer.Rationalizer(**settings).fit(texts, labels, progress=False, device=device, **threads)
    trained = time.perf_counter()
    found = rationalizer.audit(model, others, truth, train=texts, progress=False)
    record = {
        **found.to_json(),
        "train_seconds": round(trained - started, 1),
        "audit_seconds": round(time.perf_counter() - trained, 1),
    }
    (out / f"{name}.json").write_text(json.dumps(record, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--jobs", type=int, default=2, help="models at a time")
    parser.add_argument("--only", default="", help="only models whose name contains this")
    parser.add_argument("--encoder", help="folder of a transformer")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="pairs to train on")
    parser.add_argument("--audited", type=int, default=AUDITED, help="texts to audit")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    every = tasks(args.encoder)
    if args.task:
        run(args.data, args.task, every[args.task], args.out, args.pairs, args.audited)
        return
    todo = [name for name in every if args.only in name and not (args.out / f"{name}.json").exists()]

    def start(name: str) -> None:
        command = [sys.executable, __file__, str(args.data), str(args.out), "--task", name]
        command += ["--pairs", str(args.pairs), "--audited", str(args.audited)]
        command += ["--encoder", args.encoder] if args.encoder else []
        done = subprocess.run(command, capture_output=True, text=True)
        print(f"{name}: {'done' if done.returncode == 0 else done.stderr[-600:]}", flush=True)

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(start, todo))
    for name in every:
        path = args.out / f"{name}.json"
        if path.exists():
            record = json.loads(path.read_text())
            leaks = [f"{key} {one['shown']}" for key, one in record["checks"].items() if one["verdict"] == "leak"]
            print(f"{name:32} accuracy {record['facts'].get('accuracy', '')} leaks: {', '.join(leaks) or 'none'}")


if __name__ == "__main__":
    main()
