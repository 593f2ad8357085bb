"""Small trainings of every method and kind of encoder, for one process or for several; run as a program by torchrun.

Every process leaves what it has learned and seen in its own files; `test_several_processes.py` looks at them.
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
from rationalizer.models.trained_model import Description
from rationalizer.nn import ALIGNERS, EXTRACTORS
from rationalizer.training import train
from rationalizer.training.loop import TrainingLoop

PAIRS = "pairs: "
DRAWN = {"sfe", "sfe-baseline", "gumbel", "hardkuma", PAIRS + "gumbel"}  # every process draws numbers of its own
SMALL = {"epochs": 2, "min_epochs": 1, "dropout": 0.0, "batch_size": 5, "full_text_epochs": 0}
VECTORS = {"hidden": 4, "vector_size": 6, "embeddings": None}
# What processes could disagree on, beside methods.
MORE = {
    "spectra": {"start_spread": 1.0, "constraints": "spans=2", "optimizer": "adamw", "warmup": 0.5, "decay": True},
    "pair-budget": {"full_text_epochs": 1, "slow_predictor": True, "accumulate": 2},
    "sparsemax": {"guide": "full-text", "averaging": 0.0},
    "fusedmax": {"batch_tokens": 60, "warmup": 0.5, "decay": True},
}
CASES = [*EXTRACTORS, *(PAIRS + name for name in ALIGNERS), "transformer"]


def trained_case(case, folder, devices, run_dir=None, **others):
    """Batches of five are uneven parts for two processes; of the last one, with one text, the second gets none.
    Those by tokens have two or three texts."""
    of_pairs = case.startswith(PAIRS)
    corpus = (generated_pairs if of_pairs else generated_reviews)(train=16, dev=11, test=0)
    settings = {**SMALL, **MORE.get(case, {})}
    if case == "transformer":
        method, settings = None, settings | {"encoder": str(folder / "encoder")}
    else:
        method, settings = case.removeprefix(PAIRS), settings | VECTORS
    config = configure(method, settings, pairs=of_pairs)
    changes = {name: others.pop(name) for name in ("seed", "checkpoint_seconds") if name in others}
    with nullcontext() if case in DRAWN else in_double_precision():
        return train(corpus, replace(config, **changes), run_dir, accelerator="cpu", devices=devices, **others)


@contextmanager
def in_double_precision():
    """Where a gradient is rounding alone, as of what is added to all scores alike, Adam makes steps of single
    precision's, but not of double's."""
    original = Description.build

    def build(self, encoder):
        return original(self, encoder).double()

    Description.build = build
    try:
        yield
    finally:
        Description.build = original


@contextmanager
def batches_noted():
    """(step, positions, share) of every batch that is learned from."""
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
def ended_at(step):
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
        with batches_noted() as seen:
            trained = trained_case(case, folder, devices=2)
        save_file(state(trained), folder / f"{case}-{rank}.safetensors")
        facts["metrics"][case] = trained.history
        facts["batches"][case] = seen

    # Each names another folder: the first alone writes.
    whole = trained_case("hardkuma", folder, 2, folder / f"run-{rank}", progress=True)
    with ended_at(6):
        trained_case("hardkuma", folder, 2, folder / "ended", checkpoint_seconds=0.0)
    torch.distributed.barrier()
    resumed = trained_case("hardkuma", folder, 2, folder / "ended", resume=True)
    facts["resumed alike"] = [name for name, value in state(resumed).items() if torch.equal(value, state(whole)[name])]

    try:
        trained_case("full-text", folder, 2, seed=rank)
    except ValueError as error:
        facts["error"] = str(error)
    (folder / f"facts-{rank}.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
