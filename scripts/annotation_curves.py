"""Measure what annotated texts buy: a model goes on training with the annotations of more and more texts.

    python scripts/annotation_curves.py hatexplain DATA/hatexplain --seeds 0 1 2
    python scripts/annotation_curves.py beer-binary DATA/beer --texts 750 --seeds 0

People's annotations of the data stand in for an annotator. A model is trained on the labels of `--texts` texts per
class; then it goes on (warm start) with the annotations of N of its texts, in random order or the most useful first.
HateXplain: annotations are of train, 300 posts of dev decide when to stop, and 800 are scored. Beer: half of the
annotated reviews are added to train, and the other half is scored. Prints one JSON object per run, then a table.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from statistics import mean

import numpy as np
import torch

from rationalizer.data import Corpus, load
from rationalizer.inference import annotation_usefulness, evaluate, predict
from rationalizer.models import TrainedModel, configure
from rationalizer.training.trainer import train

SIZES = (20, 50, 100, 200)
SHOWN = ("accuracy", "macro_f1", "token_f1", "auprc")
ALL = "all"


def reduce_corpus(name: str, corpus: Corpus, texts: int) -> Corpus:
    """Keep some training texts of each class, and hold out the texts to score."""
    order = np.random.default_rng(0)
    train = [e for k in range(len(corpus.classes)) for e in [e for e in corpus.train if e.label == k][:texts]]
    if name == "beer-binary":
        annotated = [corpus.test[k] for k in order.permutation(len(corpus.test)) if corpus.test[k].annotated]
        half = len(annotated) // 2
        return replace(corpus, train=train + annotated[:half], dev=corpus.dev[:300], test=annotated[half:])
    dev = [corpus.dev[k] for k in order.permutation(len(corpus.dev))]
    return replace(corpus, train=train, dev=dev[:300], test=dev[300:1100])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=("hatexplain", "beer-binary"))
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--texts", type=int, default=300, help="training texts per class")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    args = parser.parse_args()
    torch.set_num_threads(1)
    corpus = reduce_corpus(args.dataset, load(args.dataset, data_dir=args.data_dir), args.texts)
    pool = np.array([k for k, example in enumerate(corpus.train) if example.annotated])
    print(f"{len(corpus.train)} training texts, {len(pool)} with annotations; {len(corpus.test)} scored", flush=True)
    rows: list[dict[str, object]] = []

    def measure(trained: TrainedModel, seed: int, order: str, size: int | str, started: float) -> None:
        scores = evaluate(trained, corpus.test).as_dict()
        row = {"seed": seed, "order": order, "annotated": size, **{name: scores[name] for name in SHOWN}}
        rows.append(row | {"seconds": time.process_time() - started})
        print(json.dumps(rows[-1]), flush=True)

    for seed in args.seeds:
        settings = {"seed": seed, "budget": corpus.budget}
        base = configure("spectra", settings)
        started = time.process_time()
        first = train(corpus, base, progress=False, device="cpu", threads=1)
        measure(first, seed, "labels only", 0, started)
        started = time.process_time()
        further = {**settings, "patience": None, "epochs": 5}
        longer = train(corpus, configure("spectra", further), progress=False, device="cpu", threads=1, start=first)
        measure(longer, seed, "longer", 0, started)
        texts = [corpus.train[k] for k in pool]
        unmarked = [replace(text, annotation=None, annotator_masks=None) for text in texts]
        useful = annotation_usefulness(first, unmarked, predict(first, unmarked))
        orders = {
            "random": np.random.default_rng(seed).permutation(pool),
            "useful": pool[np.argsort(-useful, kind="stable")],
        }
        for order, ranked in orders.items():
            for size in (*args.sizes, *([len(pool)] if order == "random" else [])):
                chosen = set(ranked[:size].tolist())
                train_texts = [
                    example if k in chosen else replace(example, annotation=None, annotator_masks=None)
                    for k, example in enumerate(corpus.train)
                ]
                weight = len(train_texts) / len(chosen)  # as `rationalizer train FILE --from RUN` sets it
                config = configure("spectra", {**further, "annotation_weight": weight})
                started = time.process_time()
                taught = train(
                    replace(corpus, train=train_texts), config, progress=False, device="cpu", threads=1, start=first
                )
                measure(taught, seed, order, size if size < len(pool) else ALL, started)
    print(f"\n| annotated | order | {' | '.join(SHOWN)} | seeds |\n|{'---|' * (3 + len(SHOWN))}")
    for key in dict.fromkeys((row["annotated"], row["order"]) for row in rows):
        same = [row for row in rows if (row["annotated"], row["order"]) == key]
        values = []
        for name in SHOWN:
            found = [float(str(row[name])) for row in same]
            values.append(f"{mean(found):.3f} ({min(found):.3f}/{max(found):.3f})")
        print(f"| {key[0]} | {key[1]} | {' | '.join(values)} | {len(same)} |")


if __name__ == "__main__":
    main()
