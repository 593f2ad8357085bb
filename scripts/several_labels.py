"""Experiments with several labels, several targets and many classes.

    python scripts/several_labels.py targets DATA/hatexplain [--seeds 0 1 2] [--train 5000]
    python scripts/several_labels.py aspects DATA/beer [--train 2000] [--epochs 6]
    python scripts/several_labels.py classes [--classes 500] [--texts 20000]

- targets: HateXplain's target groups as labels: those that two of three annotators named, and that at least 100 posts
  of train have. Micro-F1 on its dev posts, which no training sees, beside one-vs-rest TF-IDF and logistic
  regression on the same texts. A fifth of the words for each label.
- aspects: Beer's appearance, aroma and palate in one model, and a model for each, on the same reviews. A rating is high
  from 0.8 (4 stars of 5) or low. Accuracy and macro-F1 on the annotated reviews, and token-F1 of the words selected
  for appearance.
- classes: time and peak memory of a training with many classes of short generated texts.

Needs the extra `test` (scikit-learn and pandas).
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer

from rationalizer import Rationalizer
from rationalizer.assignments import parse_assignments
from rationalizer.data import make_examples
from rationalizer.inference import evaluate
from rationalizer.metrics.multi_label import calibrate_thresholds

ASPECTS = ("appearance", "aroma", "palate")


def targets(folder: Path, train: int, seeds: list[int], ways: list[str], tune: bool = False, **settings: Any) -> None:
    def read(split: str) -> tuple[list[list[str]], list[list[str]]]:
        table = pd.read_parquet(folder / f"{split}.parquet")
        named = [Counter(name for own in posts for name in set(own)) for posts in table.annotator_targets]
        labels = [[name for name, count in found.items() if count >= 2 and name != "None"] for found in named]
        return [list(tokens) for tokens in table.tokens], labels

    texts, labels = read("train")
    order = random.Random(0).sample(range(len(texts)), len(texts))
    chosen = sorted(order[:train])
    counts = Counter(name for own in labels for name in own)
    kept = sorted(name for name, count in counts.items() if count >= 100)
    binarizer = MultiLabelBinarizer(classes=kept)
    test, test_labels = read("dev")
    if tune:
        others = order[train : train + 2000]
        test, test_labels = [texts[k] for k in others], [labels[k] for k in others]
    texts, labels = [texts[k] for k in chosen], [[name for name in labels[k] if name in kept] for k in chosen]
    truth = binarizer.fit_transform([[name for name in own if name in kept] for own in test_labels])
    print(f"{len(texts)} posts, {len(test)} to test, {len(kept)} labels: {', '.join(kept)}; {truth.mean():.3f} of them")

    def scores(predicted: Any) -> str:
        return ", ".join(
            f"{how}-F1 {f1_score(truth, predicted, average=how, zero_division=0):.3f}" for how in ("micro", "macro")
        )

    words = TfidfVectorizer(analyzer=list, sublinear_tf=True, min_df=2)
    features = words.fit_transform([[token.lower() for token in text] for text in texts])
    unseen = words.transform([[token.lower() for token in text] for text in test])
    matrix = binarizer.transform(labels)
    held = np.arange(len(texts)) % 10 == 0
    for weight in (None, "balanced"):
        baseline = OneVsRestClassifier(LogisticRegression(C=10, max_iter=1000, class_weight=weight))
        baseline.fit(features, matrix)
        print(f"TF-IDF, class_weight={weight}: {scores(baseline.predict(unseen))}", flush=True)
        part = OneVsRestClassifier(LogisticRegression(C=10, max_iter=1000, class_weight=weight))
        part.fit(features[~held], matrix[~held])
        limits = calibrate_thresholds(matrix[held].astype(float), part.predict_proba(features[held]))
        print(f"  with calibrated thresholds: {scores(part.predict_proba(unseen) >= limits)}", flush=True)
    for rationales in ways:
        for seed in seeds if rationales == "per-label" else seeds[:1]:
            start = time.process_time()
            model = Rationalizer(rationales=rationales, budget=0.2, seed=seed, **settings)
            model.fit(texts, labels, classes=kept, threads=1)
            examples = make_examples(
                test, [[name for name in own if name in kept] for own in test_labels], scheme=model._labels()
            )
            size = evaluate(model.trained, examples).size or 0.0
            print(
                f"{rationales}, seed {seed}: {scores(model.predict(test))}, {size:.3f} of the words for each label, "
                f"{time.process_time() - start:.0f} s of CPU time",
                flush=True,
            )


def aspects(folder: Path, train: int, epochs: int, **settings: Any) -> None:
    table = pd.read_parquet(folder / "train.parquet")
    table = (
        table[table.tokens.str.len() <= 256].groupby("aspect").sample(train // table.aspect.nunique(), random_state=0)
    )
    annotated = pd.read_parquet(folder / "annotated_dev.parquet")
    texts, test = list(map(list, table.tokens)), list(map(list, annotated.tokens))
    marks = [{"appearance": [list(map(int, span)) for span in spans]} for spans in annotated.rationale_appearance]

    def grades(reviews: pd.DataFrame, names: Sequence[str]) -> dict[str, list[str]]:
        return {name: np.where(reviews[name] >= 0.8, "high", "low").tolist() for name in names}

    shares = ", ".join(f"{name} {np.mean(annotated[name] >= 0.8):.3f}" for name in ASPECTS)
    print(f"{len(texts)} reviews, {len(test)} annotated ones to test; share of the high ratings {shares}", flush=True)
    for names in (ASPECTS, *((name,) for name in ASPECTS)):
        for rationales in ("per-label", "disjoint") if len(names) > 1 else ("per-label",):
            start = time.process_time()
            model = Rationalizer(rationales=rationales, budget=0.18, epochs=epochs, **settings)
            if len(names) == 1:  # one target with its only rationale, and the same encoder
                model.set_params(rationales="shared", gaps="closed", start_spread=1.0)
            model.fit(texts, grades(table, names), threads=1)
            examples = make_examples(test, grades(annotated, names), marks, scheme=model._labels())
            found = evaluate(model.trained, examples).by_label
            scores = ", ".join(f"{name} {found[name].accuracy:.3f} ({found[name].macro_f1:.3f})" for name in names)
            which = "one model" if len(names) > 1 else f"a model for {names[0]}"
            how = rationales if len(names) > 1 else "one rationale"
            agreement = f"; token-F1 {found['appearance'].token_f1:.3f}" if "appearance" in names else ""
            seconds = time.process_time() - start
            print(f"{which}, {how}: accuracy (macro-F1) {scores}{agreement}; {seconds:.0f} s of CPU time", flush=True)


def classes(number: int, count: int, epochs: int, **settings: Any) -> None:
    generator = random.Random(0)
    names = [f"class {k:03}" for k in range(number)]
    texts, labels = [], []
    for k in range(count):
        own = k % number
        words = [f"word{generator.randrange(3000)}" for _ in range(11)]
        words.insert(generator.randrange(11), f"sign{own}x{generator.randrange(3)}")
        texts.append(" ".join(words))
        labels.append(names[own])
    model, start = Rationalizer(embeddings=None, epochs=epochs, **settings), time.process_time()
    model.fit(texts[: -count // 10], labels[: -count // 10], threads=1)
    seconds = time.process_time() - start
    accuracy = np.mean(model.predict(texts[-count // 10 :]) == np.array(labels[-count // 10 :]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    done = len(model.trained.history["epochs"])
    print(
        f"{number} classes, {count} texts: {seconds:.0f} s of CPU time for {done} epochs, accuracy {accuracy:.3f}, "
        f"peak {peak:.2f} GiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=["targets", "aspects", "classes"])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--train", type=int)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--rationales", nargs="+", default=["per-label", "shared"], help="targets: per-label, shared")
    parser.add_argument("--tune", action="store_true", help="targets: score 2,000 other posts of train, not dev")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="other settings of the models")
    parser.add_argument("--classes", type=int, default=500)
    parser.add_argument("--texts", type=int, default=20_000)
    given = parser.parse_args()
    settings: dict[str, Any] = dict(parse_assignments(given.set, "--set"))
    if given.experiment == "targets":
        settings |= {"epochs": given.epochs} if given.epochs else {}
        targets(given.folder, given.train or 5000, given.seeds, given.rationales, given.tune, **settings)
    elif given.experiment == "aspects":
        aspects(given.folder, given.train or 2000, given.epochs or 6, **settings)
    else:
        classes(given.classes, given.texts, given.epochs or 5, **settings)


if __name__ == "__main__":
    main()
