"""How many words are enough: `Budget.enough` against fixed shares, and what people marked.

    python scripts/enough_words.py DATA [SET ...] [--texts 1000] [--scored 400] [--out runs/enough]
    python scripts/enough_words.py DATA beer-binary --model RUN

Sets: `yelp-hat`, `sst` and `movies` with the starter model `sentiment`, which needs no training; `hatexplain`,
`beer-binary` (appearance) and `hotels` (location) with BiLSTMs of the default settings, trained with a budget of 40% on
`--texts` texts of each class, or with the model of a run. DATA has their folders, with Parquet files. Scores the first
`--scored` texts of dev (of the annotated reviews, for Beer) at 20% and 40%, and with what is enough of 40% at several
certainties. Finished models in OUT are not trained again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from rationalizer import Rationalizer
from rationalizer.data import load
from rationalizer.inference import evaluate
from rationalizer.models import TrainedModel, configure
from rationalizer.text import Example
from rationalizer.training import train

FOLDERS = {
    "yelp-hat": "yelp_hat",
    "sst": "sst",
    "movies": "movies",
    "hatexplain": "hatexplain",
    "beer-binary": "beer",
    "hotels": "hotels_location",
}
CAP = "40%"
BUDGETS = ("20%", CAP, *(f"enough, at most {CAP}, {certainty}% certain" for certainty in (0, 80, 90, 95)))
SHOWN = ("accuracy", "size", "size_quarter", "size_median", "size_three_quarters", "token_f1", "token_f1_micro")
HEADS = ("share", "quartiles", "", "", "token-F1, per text", "pooled")


def prepare(name: str, data: Path, texts: int, out: Path, model: Path | None) -> tuple[TrainedModel, list[Example]]:
    """A model, and the texts to score it on."""
    corpus = load(name, data_dir=data / FOLDERS[name])
    scored = corpus.test if name in ("yelp-hat", "beer-binary") and corpus.test else corpus.dev
    if model is not None:
        return TrainedModel.load(model), list(scored)
    if name in ("yelp-hat", "sst", "movies"):
        return Rationalizer.load("sentiment").trained, list(scored)
    by_class = [[e for e in corpus.train if e.label == label][:texts] for label in range(len(corpus.classes))]
    corpus = replace(corpus, train=[e for group in by_class for e in group], dev=list(corpus.dev)[:texts])
    config = configure("spectra", {"budget": CAP, "epochs": 6}, pairs=False)
    return train(corpus, config, out / name, resume=True, device="cpu", threads=1), list(scored)


def annotated_share(trained: TrainedModel, examples: Sequence[Example]) -> str:
    shares = []
    for example in examples:
        if example.annotation is not None and any(example.annotation):
            counted = trained.encoder.counted(example.tokens)
            shares.append((np.array(example.annotation) & counted).sum() / max(counted.sum(), 1))
    if not shares:
        return ""
    quartiles = " / ".join(f"{value:.3f}" for value in np.quantile(shares, (0.25, 0.5, 0.75)))
    return f"people marked {np.mean(shares):.3f} of the words of {len(shares)} texts (quartiles {quartiles})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DATA")
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"default: {', '.join(FOLDERS)}")
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--model", type=Path, help="a trained run, in place of a new or the starter model")
    parser.add_argument("--scored", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path("runs/enough"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"| set | budget | accuracy | {' | '.join(HEADS)} | s |\n{'|---' * (len(HEADS) + 4)}|", flush=True)
    for name in args.sets or FOLDERS:
        trained, examples = prepare(name, args.folder, args.texts, args.out, args.model)
        examples = examples[: args.scored]
        for budget in BUDGETS:
            started = time.perf_counter()
            scores = evaluate(trained, examples, budget=budget).as_dict()
            seconds = time.perf_counter() - started
            cells = [f"{scores[key]:.3f}" if scores.get(key) is not None else "" for key in SHOWN]
            print(f"| {name} | {budget} | {' | '.join(cells)} | {seconds:.1f} |", flush=True)
        print(f"{name}: {len(examples)} texts; {annotated_share(trained, examples)}", flush=True)


if __name__ == "__main__":
    main()
