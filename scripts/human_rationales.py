"""Compare models trained with and without a loss on annotations (`annotation_weight`).

    python scripts/human_rationales.py hatexplain DATA/hatexplain --texts 1500 --epochs 4 --set batch_size=64
    python scripts/human_rationales.py movies DATA/movies --texts 200 --epochs 4 --set batch_size=8

Trains one model per weight, with the dataset's budget and settings, and scores it on dev. `--texts N` trains on the
first N texts of each class. Prints a table; finished models in `--out` are not trained again.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from rationalizer.compare import parse_assignments
from rationalizer.data import Corpus, load
from rationalizer.inference import evaluate
from rationalizer.metrics import METRICS
from rationalizer.models import configure
from rationalizer.training import run

SHOWN = ("accuracy", "macro_f1", "token_f1", "iou_f1", "auprc", "size", "spans")


def limit_texts(corpus: Corpus, texts: int | None) -> Corpus:
    """Keep the first `texts` training examples of each class."""
    if texts is None:
        return corpus
    by_class = [[e for e in corpus.train if e.label == label][:texts] for label in range(len(corpus.classes))]
    return replace(corpus, train=[example for examples in by_class for example in examples])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=("hatexplain", "movies", "beer-binary", "hotels"))
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--method", default="spectra")
    parser.add_argument("--weights", type=float, nargs="+", default=[0, 1], help="weights of the annotation loss")
    parser.add_argument("--texts", type=int, help="training texts per class; default: all")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--set", action="append", metavar="KEY=VALUE", help="another training setting; may be repeated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/human-rationales"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    corpus = limit_texts(load(args.dataset, data_dir=args.data_dir), args.texts)
    annotated = sum(bool(example.annotated) for example in corpus.train)
    print(f"{corpus.name}: {len(corpus.train)} training texts, {annotated} annotated; {len(corpus.dev)} dev texts")
    print(f"{args.method}, {corpus.budget.describe()}, {args.epochs} epochs, seed {args.seed}\n")
    print(f"| annotation_weight | {' | '.join(METRICS[name].short_name for name in SHOWN)} | training |")
    print(f"|---|{'---|' * (len(SHOWN) + 1)}", flush=True)
    for weight in args.weights:
        settings = {"seed": args.seed, "budget": corpus.budget, "epochs": args.epochs, "annotation_weight": weight}
        config = configure(args.method, settings | parse_assignments(args.set, "--set"), dataset=args.dataset)
        folder = args.out / corpus.name / f"{args.method}-{weight:g}-seed-{args.seed}"
        model = run(corpus, config, folder, resume=True, device="cpu").trained
        scores = evaluate(model, corpus.dev).as_dict()
        cells = [METRICS[name].format_value(scores[name]) if name in scores else "" for name in SHOWN]
        print(f"| {weight:g} | {' | '.join(cells)} | {model.seconds:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
