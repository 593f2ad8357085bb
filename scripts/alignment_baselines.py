"""Two reference points for word alignments: equal words, and the best possible matching.

    python scripts/alignment_baselines.py DATA/word_alignment

"Equal words" aligns words that are equal (lower-cased; the nearest by position if there are several). "Best possible
matching" is the largest matching within the gold links: people also align phrases, a matching has one partner per word.
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
    distance = np.abs(np.subtract.outer(np.arange(len(first)) / len(first), np.arange(len(second)) / len(second)))
    return np.where(same, 1 - distance / 2, -1.0)


def gold_links(pair: PairExample) -> NDArray[np.float64]:
    scores = np.full(pair.shape, -1.0)
    for link in pair.annotated:
        scores[link] = 1.0
    return scores


BASELINES: dict[str, Callable[[PairExample], NDArray[np.float64]]] = {
    "equal words": equal_words,
    "best possible matching": gold_links,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--split", help="default: test, or dev if there is none")
    args = parser.parse_args()
    print("| scored on | alignment | precision | recall | F1 | exact match |\n|---|---|---|---|---|---|")
    for name in DATASETS:
        _, pairs = pick_split(load(name, data_dir=args.data_dir), args.split)
        for baseline, scores in BASELINES.items():
            matchings = [ops.matching_map(torch.from_numpy(scores(pair))[None])[0].numpy() for pair in pairs]
            result = alignment_scores(matchings, [pair.alignment for pair in pairs])
            values = (result.precision, result.recall, result.f1, result.exact)
            cells = map(METRICS["alignment_f1"].format_value, values)
            print(f"| {name} | {baseline} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
