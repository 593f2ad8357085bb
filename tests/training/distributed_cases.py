"""Short runs of every method and kind of encoder, in one process or several. torchrun runs this module as a program.

Every process writes its weights, history and batches to its own files; `test_several_processes.py` reads them.
"""

import json
import os
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file

from rationalizer.data import generated_pairs, generated_reviews
from rationalizer.models import configure
from rationalizer.models.description import Description
from rationalizer.nn import ALIGNERS, EXTRACTORS
from rationalizer.training import train
from rationalizer.training.loop import TrainingLoop

PAIRS = "pairs: "
RANDOM = {"sfe", "sfe-baseline", "gumbel", "hardkuma", PAIRS + "gumbel"}  # each process draws its own random numbers
SMALL = {"epochs": 2, "min_epochs": 1, "dropout": 0.0, "batch_size": 5}
VECTORS = {"hidden": 4, "vector_size": 6, "embeddings": None}
# Settings whose effect could differ between processes.
MORE = {
    "spectra": {"start_spread": 1.0, "constraints": "spans=2", "optimizer": "adamw", "warmup": 0.5, "decay": True},
    "pair-budget": {"budget": "30% on average", "objective": "dr", "full_text_epochs": 1, "accumulate": 2},
    "sparsemax": {"objective": "mcd", "averaging": 0.0, "class_weight": "positive=3"},
    "transformer": {"full_text_epochs": 0},
    "dar": {"full_text_epochs": 1},
    "fusedmax": {"sampling": "balanced", "batch_tokens": 60, "warmup": 0.5, "decay": True},
}
FURTHER = ("dar", "fr", "mgr", "mrd")  # objectives that no other case has, with spectra
CASES = [*EXTRACTORS, *(PAIRS + name for name in ALIGNERS), "transformer", *FURTHER]


def train_case(case, folder, devices, run_dir=None, **others):
    """Train one case.

    Two processes split batches of five texts unevenly; the last batch has one text, and the second process gets none.
    Batches by tokens have two or three texts.
    """
    of_pairs = case.startswith(PAIRS)
    corpus = (generated_pairs if of_pairs else generated_reviews)(train=16, dev=11, test=0)
    settings = {**SMALL, **MORE.get(case, {})}
    if case == "transformer":
        method, settings = None, settings | {"encoder": str(folder / "encoder")}
    else:
        method, settings = case.removeprefix(PAIRS), settings | VECTORS
        if case in FURTHER:
            method, settings = "spectra", settings | {"objective": case}
    config = configure(method, settings, pairs=of_pairs)
    changes = {name: others.pop(name) for name in ("seed", "checkpoint_seconds") if name in others}
    with nullcontext() if case in RANDOM else in_double_precision():
        return train(corpus, replace(config, **changes), run_dir, device="cpu", devices=devices, **others)


@contextmanager
def in_double_precision():
    """Train in float64.

    A gradient that is 0 up to rounding, such as that of a constant added to all scores, gives visible steps of Adam in
    float32, but not in float64.
    """
    original = Description.build

    def build(self, encoder):
        return original(self, encoder).double()

    Description.build = build
    try:
        yield
    finally:
        Description.build = original


@contextmanager
def record_batches():
    """Record (step, positions, share) of every training batch."""
    seen, original = [], TrainingLoop.training_step

    def training_step(self, batch):
        seen.append((self.progress.step, batch.index.tolist(), batch.share))
        return original(self, batch)

    TrainingLoop.training_step = training_step
    try:
        yield seen
    finally:
        TrainingLoop.training_step = original


class Interrupted(BaseException):
    pass


@contextmanager
def stop_at(step):
    original = TrainingLoop.training_step

    def training_step(self, batch):
        if self.progress.step == step:
            raise Interrupted
        return original(self, batch)

    TrainingLoop.training_step = training_step
    try:
        yield
    except Interrupted:
        pass
    finally:
        TrainingLoop.training_step = original


def state(trained):
    return {name: value.contiguous() for name, value in trained.model.state_dict().items()}


def main(folder):
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    facts = {"metrics": {}, "batches": {}}
    for case in CASES:
        with record_batches() as seen:
            trained = train_case(case, folder, devices=2)
        save_file(state(trained), folder / f"{case}-{rank}.safetensors")
        facts["metrics"][case] = trained.history
        facts["batches"][case] = seen

    # Each process gets another folder; only the first process writes.
    whole = train_case("hardkuma", folder, 2, folder / f"run-{rank}", progress=True)
    with stop_at(6):
        train_case("hardkuma", folder, 2, folder / "ended", checkpoint_seconds=0.0)
    torch.distributed.barrier()
    resumed = train_case("hardkuma", folder, 2, folder / "ended", resume=True)
    facts["equal after resuming"] = [
        name for name, value in state(resumed).items() if torch.equal(value, state(whole)[name])
    ]

    try:
        train_case("full-text", folder, 2, seed=rank)
    except ValueError as error:
        facts["error"] = str(error)
    (folder / f"facts-{rank}.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
