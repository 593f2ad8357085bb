"""Decisions of the starter models, recorded and replayed: the same bits with another batch size and thread count."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from rationalizer import Rationalizer
from rationalizer.data import generated_pairs, generated_reviews
from rationalizer.records import Verifier, read_records
from soak.cases import PROCESS_SECONDS, Case, Soak, require

DECISIONS = 50  # per case; 20 cases are 1,000 decisions
THREADS = (1, 2, 3, 4)
BATCHES = (1, 7, 32, 128)
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "sentiment": [{}, {"budget": 3}, {"budget": "35%", "constraints": ["spans=2", "never=stopwords"]}],
    "nli": [{}, {"constraints": ["monotone"]}],
}


def run(soak: Soak) -> None:
    reviews = generated_reviews(train=1, dev=1, test=1000).test
    pairs = generated_pairs(train=1, dev=1, test=1000).test
    texts: dict[str, list[Any]] = {
        "sentiment": [example.text for example in reviews],
        "nli": [(pair.premise.text, pair.hypothesis.text) for pair in pairs],
    }

    def check_case(case: Case) -> None:
        name, batch = case.pick(list(texts)), case.pick(BATCHES)
        settings = case.pick(SETTINGS[name])
        before, after = (int(number) for number in case.random.permutation(THREADS)[:2])
        case.note(f"{name}, {settings}, batches of {batch}, {before} threads, replayed with {after}")
        chosen = [texts[name][k] for k in case.random.choice(len(texts[name]), DECISIONS, replace=False)]
        model = Rationalizer.load(name)
        for key, value in settings.items():
            setattr(model, key, value)
        torch.set_num_threads(before)
        explained = list(model.explain(iter(chosen), batch_size=batch, record="with-text"))
        torch.set_num_threads(after)
        verifier = Verifier(name)
        for explanation in explained:
            result = verifier.verify(explanation.record)
            require(result.verdict == "identical", result, explanation.record.to_json())
        path = soak.folder / f"case-{case.number}.jsonl"
        path.write_text("".join(f"{explanation.record.to_json()}\n" for explanation in explained))
        require(list(read_records(path)) == [explanation.record for explanation in explained], "other records on disk")
        if case.chance(0.2):  # a process of its own takes seconds to start
            verify_in_process(path, name, after)

    soak.check(20, check_case, seconds=120)


def verify_in_process(path: Path, model: str, threads: int) -> None:
    command = [sys.executable, "-m", "rationalizer", "verify", str(path), "--model", model]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PROCESS_SECONDS)
    require(done.returncode == 0 and f"{DECISIONS} identical" in done.stdout, done.stdout, done.stderr)
