"""Two yardsticks for word alignments: equal words, and the best that any matching could do.

    python scripts/alignment_baselines.py DATA/word_alignment

Equal words are aligned (lower-cased; the nearest by place where several are equal), no others. The best possible
matching is the largest one within the gold links: people also align phrases, and a matching has one partner a word.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from rationalizer import ops
from rationalizer.data import load, pick_split
from rationalizer.metrics import METRICS, alignment_scores
from rationalizer.text import PairExample

DATASETS = ("msr-rte", "edinburgh", "mtref", "wiki-align")


def equal_words(pair: PairExample) -> NDArray[np.float64]:
    first, second = ([word.lower() for word in text.tokens] for text in pair.texts)
    same = np.array([[a == b for b in second] for a in first])
    apart = np.abs(np.subtract.outer(np.arange(len(first)) / len(first), np.arange(len(second)) / len(second)))
    return np.where(same, 1 - apart / 2, -1.0)


def gold_links(pair: PairExample) -> NDArray[np.float64]:
    scores = np.full(pair.shape, -1.0)
    for link in pair.annotated:
        scores[link] = 1.0
    return scores


WAYS: dict[str, Callable[[PairExample], NDArray[np.float64]]] = {
    "equal words": equal_words,
    "best possible matching": gold_links,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--split", help="by default test, or dev where there is none")
    args = parser.parse_args()
    print("| scored on | alignment | precision | recall | F1 | exact match |\n|---|---|---|---|---|---|")
    for name in DATASETS:
        _, pairs = pick_split(load(name, data_dir=args.data_dir), args.split)
        for way, scores in WAYS.items():
            found = [ops.matching_map(torch.from_numpy(scores(pair))[None])[0].numpy() for pair in pairs]
            got = alignment_scores(found, [pair.alignment for pair in pairs])
            show = METRICS["alignment_f1"].format_value
            print(f"| {name} | {way} | {' | '.join(map(show, (got.precision, got.recall, got.f1, got.exact)))} |")


if __name__ == "__main__":
    main()
