"""Compare the default settings with TF-IDF and logistic regression, trained on 1,350 hotel reviews.

    python scripts/small_data.py DATA/hotels_location [RUNS]

The folder has `train.parquet` and `dev.parquet` with the columns `tokens` and `overall`. Reviews with an overall rating
of 4 or 5 are positive, those with 1 or 2 negative. 1,500 reviews of train are drawn, half of each class; the models
train on 1,350 of them. They are scored on two other sets: 7,527 reviews of train that were not used to choose the
defaults, and dev, which has other hotels. If RUNS is given, the models are saved there. Needs the extra `test`
(scikit-learn and pandas).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from rationalizer import Rationalizer
from rationalizer.text import is_punctuation

SEEDS = (0, 1, 2)
SENTENCE = "The room was spotless but the staff was rude."
VARIANTS = ({}, {"sublinear_tf": True}, {"ngram_range": (1, 2)}, {"sublinear_tf": True, "ngram_range": (1, 2)})
Split = tuple[list[str], list[str]]


def reviews(path: Path) -> Split:
    table = pd.read_parquet(path)
    table = table[(table.overall >= 4) | (table.overall <= 2)]
    return [" ".join(t) for t in table.tokens], ["positive" if o >= 4 else "negative" for o in table.overall]


def splits(folder: Path) -> tuple[Split, dict[str, Split]]:
    texts, labels = reviews(folder / "train.parquet")
    names = np.array(labels)
    generator = np.random.default_rng(0)
    drawn = [generator.choice(np.flatnonzero(names == c), 750, replace=False) for c in ("negative", "positive")]
    sample = np.concatenate(drawn)
    generator.shuffle(sample)
    rest = np.setdiff1d(np.arange(len(texts)), sample)
    np.random.default_rng(7).shuffle(rest)
    pick = lambda rows: ([texts[k] for k in rows], [labels[k] for k in rows])  # noqa: E731
    # The first 3,000 of the rest were used to choose the defaults.
    return pick(sample[:1350]), {"others": pick(rest[3000:]), "other hotels": reviews(folder / "dev.parquet")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with train.parquet and dev.parquet")
    parser.add_argument("runs", type=Path, nargs="?", help="output folder for the models; default: not saved")
    args = parser.parse_args()
    torch.set_num_threads(1)
    (texts, labels), tests = splits(args.folder)
    print(
        f"{len(texts)} training reviews; scored on {', '.join(f'{len(t)} {name}' for name, (t, _) in tests.items())}\n"
    )
    for options in VARIANTS:
        vectorizer = TfidfVectorizer(**options)
        classifier = LogisticRegression(max_iter=1000).fit(vectorizer.fit_transform(texts), labels)
        accuracy = {name: classifier.score(vectorizer.transform(t), y) for name, (t, y) in tests.items()}
        print(f"TF-IDF {options}: {', '.join(f'{name} {score:.4f}' for name, score in accuracy.items())}")
    scores: dict[str, list[float]] = {name: [] for name in tests}
    for seed in SEEDS:
        started = time.perf_counter()
        run_dir = None if args.runs is None else args.runs / f"seed-{seed}"
        model = Rationalizer(seed=seed).fit(texts, labels, run_dir=run_dir, progress=False)
        seconds = time.perf_counter() - started
        results = []
        for name, (others, truth) in tests.items():
            explained = model.explain(others)
            scores[name].append(float(np.mean([e.label == y for e, y in zip(explained, truth, strict=True)])))
            selected = [w for e in explained for w, chosen in zip(e.tokens, e.selected, strict=True) if chosen]
            uninformative = np.mean([word.lower() in ENGLISH_STOP_WORDS or is_punctuation(word) for word in selected])
            size = np.mean([e.selected_word_count / e.word_count for e in explained])
            unknown = np.mean([any(e.unknown) for e in explained])
            results.append(
                f"{name} {scores[name][-1]:.4f} ({uninformative:.1%} stopwords and punctuation, size {size:.3f}, "
                f"{unknown:.0%} of the texts have an unknown word)"
            )
        drawn = str(model.explain(SENTENCE)).splitlines()[2]
        print(f"seed {seed}, {seconds:.0f} s: {'; '.join(results)}; {drawn}", flush=True)
    for name, values in scores.items():
        print(f"mean, {name}: {np.mean(values):.4f} ({min(values):.4f}/{max(values):.4f})")


if __name__ == "__main__":
    main()
