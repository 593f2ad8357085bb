"""Compare one model without constraints, with constraints only at inference, and trained with constraints.

    python scripts/constraints.py sst DATA/sst
    python scripts/constraints.py movies DATA/movies --texts 100 --epochs 4 --set batch_size=4 --set learning_rate=0.002

Trains one `spectra` model per constraint set, with the dataset's budget and settings, and scores it on dev.
`--texts N` trains on the first N texts of each class. Prints a table; finished models in `--out` are not trained again.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from rationalizer.compare import parse_assignments
from rationalizer.data import Corpus, load
from rationalizer.inference import evaluate
from rationalizer.metrics import Scores
from rationalizer.models import TrainedModel, configure
from rationalizer.training import run

SETS: dict[str, tuple[tuple[str, ...], ...]] = {
    "sst": (("spans=1",), ("spans=2", "never=stopwords")),
    "movies": (("whole-sentences",), ("span-length=5-30",)),
}
SHOWN = ("accuracy", "macro_f1", "size", "token_f1", "iou_f1")


def limit_texts(corpus: Corpus, texts: int | None) -> Corpus:
    """Keep the first `texts` training examples of each class."""
    if texts is None:
        return corpus
    by_class = [[e for e in corpus.train if e.label == label][:texts] for label in range(len(corpus.classes))]
    return replace(corpus, train=[example for examples in zip(*by_class, strict=False) for example in examples])


def train_model(corpus: Corpus, constraints: Sequence[str], args: argparse.Namespace) -> TrainedModel:
    settings = {"seed": args.seed, "budget": corpus.budget, "constraints": list(constraints)}
    settings |= {} if args.epochs is None else {"epochs": args.epochs}
    settings |= parse_assignments(args.set, "--set")
    config = configure("spectra", settings, dataset=args.dataset)
    folder = "+".join(constraints).replace("=", "-").replace(":", "-") or "none"
    return run(corpus, config, args.out / args.dataset / folder / f"seed-{args.seed}", resume=True).trained


def table_line(name: str, scores: Scores, seconds: float | None) -> str:
    values = scores.as_dict()
    cells = [f"{values[key]:.3f}" if key in values else "" for key in SHOWN]
    return f"| {name} | {' | '.join(cells)} | {'' if seconds is None else f'{seconds:.0f} s'} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=SETS)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--texts", type=int, help="training texts per class; default: all")
    parser.add_argument("--epochs", type=int, help="default: that of the dataset's preset")
    parser.add_argument("--set", action="append", metavar="KEY=VALUE", help="another training setting; may be repeated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/constraints"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    corpus = limit_texts(load(args.dataset, data_dir=args.data_dir), args.texts)
    print(
        f"{args.dataset}: {len(corpus.train)} training texts, {len(corpus.dev)} dev texts; {corpus.budget.describe()}"
    )
    print(f"\n| constraints | {' | '.join(SHOWN)} | training |\n|---|{'---|' * (len(SHOWN) + 1)}", flush=True)
    free = train_model(corpus, (), args)
    print(table_line("none", evaluate(free, corpus.dev), free.seconds), flush=True)
    names = {constraints: ", ".join(f"`{each}`" for each in constraints) for constraints in SETS[args.dataset]}
    for constraints, name in names.items():
        print(
            table_line(f"{name}, at inference only", evaluate(free, corpus.dev, constraints=constraints), None),
            flush=True,
        )
    for constraints, name in names.items():
        model = train_model(corpus, constraints, args)
        print(table_line(f"{name}, trained", evaluate(model, corpus.dev), model.seconds), flush=True)


if __name__ == "__main__":
    main()
