"""Compare ways to train on unbalanced classes: none, class weights, balanced sampling.

    python scripts/rare_classes.py DATA [SET ...] [--ways WAY ...] [--seeds 0 1 2]

DATA has the folders `hotels_location` (columns `tokens`, `overall`), `agnews` (`text`, `label`), `hatexplain`
(`tokens`, `label`) and `sst` (`tokens`, `label5`), each with `train.parquet`. The sets are drawn from them:

- hotels: 1,500 reviews of up to 150 words, 95% positive (overall rating 4 or 5), 5% negative (1 or 2);
- hotels-even: the same with half of each class;
- agnews: 1,600 texts, 60% World, 30% Sports, 7% Business, 3% SciTech; agnews-even: a quarter each;
- hatexplain: 1,800 posts, 80% normal, 15% offensive, 5% hatespeech;
- agnews-mild: 1,600 texts, 35%, 30%, 20%, 15%; sst5: 2,000 sentences in five classes with the shares of SST, of which
  the rarest has 13%. No class is rare enough for `class_weight=auto` to weigh it.

Models are scored on other texts, equally many of each class, so that accuracy is balanced accuracy. Macro-F1 is that of
the training shares: texts are weighted to have them. TF-IDF with logistic regression is trained on the same texts.
Needs the extra `test` (scikit-learn and pandas).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score

from rationalizer import Rationalizer

WAYS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "none": {"class_weight": None, "sampling": "once"},
    "weights": {"class_weight": "balanced", "sampling": "once"},
    "sampling": {"class_weight": None, "sampling": "balanced"},
}
TEST = 2000  # texts
LONGEST = 150  # words of a hotel review


class Split(NamedTuple):
    texts: list[str]
    labels: list[str]


class Data(NamedTuple):
    train: Split
    test: Split  # equally many texts of each class
    shares: Mapping[str, float]  # of the classes in train

    def scores(self, predicted: list[str]) -> tuple[float, float]:
        """Return balanced accuracy, and the macro-F1 of test texts with the shares of the training texts."""
        truth = self.test.labels
        weights = [self.shares[label] for label in truth]
        macro_f1 = f1_score(truth, predicted, average="macro", sample_weight=weights, zero_division=0)
        return float(balanced_accuracy_score(truth, predicted)), float(macro_f1)


def draw(texts: list[str], labels: Any, shares: Mapping[str, float], size: int) -> Data:
    generator = np.random.default_rng(0)
    labels = np.asarray(labels)
    train, test = [], []
    for name, share in shares.items():
        members = generator.permutation(np.flatnonzero(labels == name)).tolist()
        count = round(size * share)
        train += members[:count]
        test += members[count : count + TEST // len(shares)]
    generator.shuffle(train)
    first, second = (Split([texts[k] for k in rows], labels[rows].tolist()) for rows in (train, test))
    return Data(first, second, shares)


def hotels(folder: Path, negative: float) -> Data:
    table = pd.read_parquet(folder / "hotels_location" / "train.parquet")
    table = table[((table.overall >= 4) | (table.overall <= 2)) & (table.tokens.str.len() <= LONGEST)]
    labels = np.where(table.overall >= 4, "positive", "negative")
    return draw([" ".join(t) for t in table.tokens], labels, {"negative": negative, "positive": 1 - negative}, 1500)


def agnews(folder: Path, shares: tuple[float, ...]) -> Data:
    table, names = pd.read_parquet(folder / "agnews" / "train.parquet"), ["World", "Sports", "Business", "SciTech"]
    return draw(table.text.tolist(), np.array(names)[table.label], dict(zip(names, shares, strict=True)), 1600)


def hatexplain(folder: Path) -> Data:
    table = pd.read_parquet(folder / "hatexplain" / "train.parquet")
    shares = {"normal": 0.8, "offensive": 0.15, "hatespeech": 0.05}
    return draw([" ".join(t) for t in table.tokens], table.label, shares, 1800)


def sst5(folder: Path) -> Data:
    table = pd.read_parquet(folder / "sst" / "train.parquet")
    labels = table.label5.astype(str)
    return draw([" ".join(t) for t in table.tokens], labels, labels.value_counts(normalize=True).to_dict(), 2000)


SETS: dict[str, Callable[[Path], Data]] = {
    "hotels": lambda folder: hotels(folder, 0.05),
    "agnews": lambda folder: agnews(folder, (0.6, 0.3, 0.07, 0.03)),
    "hatexplain": hatexplain,
    "hotels-even": lambda folder: hotels(folder, 0.5),
    "agnews-mild": lambda folder: agnews(folder, (0.35, 0.3, 0.2, 0.15)),
    "sst5": sst5,
    "agnews-even": lambda folder: agnews(folder, (0.25,) * 4),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DATA")
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"default: {', '.join(SETS)}")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print("| set | model | balanced accuracy | by seed | macro-F1 | s |\n|---|---|---|---|---|---|")
    for name in args.sets or SETS:
        data = SETS[name](args.folder)
        for weight in (None, "balanced"):
            vectorizer = TfidfVectorizer()
            classifier = LogisticRegression(max_iter=1000, class_weight=weight)
            classifier.fit(vectorizer.fit_transform(data.train.texts), data.train.labels)
            accuracy, f1 = data.scores(classifier.predict(vectorizer.transform(data.test.texts)).tolist())
            print(f"| {name} | TF-IDF, class_weight={weight} | {accuracy:.3f} | | {f1:.3f} | |", flush=True)
        for way in args.ways:
            started, rows = time.perf_counter(), []
            for seed in args.seeds:
                model = Rationalizer(seed=seed, **WAYS[way]).fit(*data.train, progress=False, threads=1)
                rows.append(data.scores(model.predict(data.test.texts).tolist()))
            seconds = (time.perf_counter() - started) / len(rows)
            accuracy, f1 = np.mean(rows, axis=0)
            by_seed = ", ".join(f"{row[0]:.3f}" for row in rows)
            print(f"| {name} | {way} | {accuracy:.3f} | {by_seed} | {f1:.3f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
