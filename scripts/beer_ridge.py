"""Baselines for beer ratings: the mean, and ridge regression on TF-IDF.

    python scripts/beer_ridge.py DATA/beer --all-rows DATA/beer-all

The published training rows of an aspect are a small subset in which the ratings of the other aspects are only weakly
correlated with this one; the annotated rows were not selected in this way. `--all-rows` also writes a copy of the data
without the column `aspect`, so that models train on all rows, and scores the baselines on that copy.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from rationalizer.data import Corpus, load
from rationalizer.text import AnyExample

ALPHAS = (0.1, 0.3, 1.0, 3.0, 10.0)


def copy_all_rows(folder: Path, out: Path) -> None:
    if out.resolve() == folder.resolve():
        raise SystemExit(f"{out} is the data folder itself; choose another folder for the copy")
    out.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        pq.write_table(table.drop_columns([name for name in table.column_names if name == "aspect"]), out / path.name)


def ratings(examples: list[AnyExample]) -> NDArray[np.float64]:
    return np.array([example.label for example in examples], dtype=float)


def print_baselines(corpus: Corpus, rows: str) -> None:
    """Print one Markdown table row for the mean and one per ridge regression, with the alpha that is best on dev."""
    splits = {"train": list(corpus.train), "dev": list(corpus.dev), "test": list(corpus.test)}
    targets = {split: ratings(examples) for split, examples in splits.items()}
    texts = {split: [" ".join(example.tokens) for example in examples] for split, examples in splits.items()}
    mean = {split: float(np.mean((targets[split] - targets["train"].mean()) ** 2)) for split in ("dev", "test")}
    print(f"| mean of {len(texts['train'])} ratings ({rows}) | {mean['dev']:.4f} | {mean['test']:.4f} |")
    for features, longest in (("words", 1), ("words and bigrams", 2)):
        vectors = TfidfVectorizer(token_pattern=r"\S+", ngram_range=(1, longest), sublinear_tf=True, min_df=2)
        inputs = {
            split: vectors.fit_transform(text) if split == "train" else vectors.transform(text)
            for split, text in texts.items()
        }
        errors = {}
        for alpha in ALPHAS:
            model = Ridge(alpha=alpha, solver="sparse_cg").fit(inputs["train"], targets["train"])
            errors[alpha] = [float(np.mean((model.predict(inputs[at]) - targets[at]) ** 2)) for at in ("dev", "test")]
        best = min(errors, key=lambda alpha: errors[alpha][0])
        others = ", ".join(f"{errors[alpha][1]:.4f}" for alpha in ALPHAS)
        print(
            f"| ridge, {features} ({rows}), alpha {best:g} | {errors[best][0]:.4f} | {errors[best][1]:.4f} ({others}) |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--aspect", default="appearance")
    parser.add_argument(
        "--all-rows", type=Path, metavar="FOLDER", help="folder for a copy of the data that trains on all rows"
    )
    args = parser.parse_args()
    print(f"| model | MSE, dev | MSE, annotated (with alpha {', '.join(map(str, ALPHAS))}) |\n|---|---|---|")
    print_baselines(load("beer", data_dir=args.data_dir, aspect=args.aspect), "of this aspect")
    if args.all_rows is not None:
        copy_all_rows(args.data_dir, args.all_rows)
        print_baselines(load("beer", data_dir=args.all_rows, aspect=args.aspect), "all rows")


if __name__ == "__main__":
    main()
