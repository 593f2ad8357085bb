"""Training on a CPU: number of threads, and batches by number of words.

    python -m benchmarks training

- Threads: an epoch with the automatic choice, with one thread, and with all threads.
- `batch_tokens` for texts of very different lengths, with as many words per batch as 32 texts have on average.
- Memory: an epoch with freed memory kept, as in every training, and with freed memory returned to the system.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.timing import print_table, verdict
from rationalizer.data import Corpus, generated_reviews
from rationalizer.data.examples import make_examples
from rationalizer.models import configure
from rationalizer.models.batches import BucketSampler
from rationalizer.training import train

TEXTS = {21: 640, 250: 160}  # number of words: number of texts
WORTH = 1.2  # largest ratio of the automatic choice to the best choice
LONG, KEPT_WORTH = 250, 1.3  # words per text from which keeping freed memory must be worth this factor
BATCH, LONGEST, DIFFERENT = 32, 60, 480  # texts in a batch; reviews in a text; texts of different lengths


def corpus_of(parts: list[int]) -> Corpus:
    """Return a corpus whose texts are several generated reviews joined: `parts[i]` of them in text i."""
    source = generated_reviews(train=max(parts) + len(parts), dev=8, test=0)
    texts = [" ".join(e.text for e in source.train[k : k + count]) for k, count in enumerate(parts)]
    labels = [e.label for e in source.train[: len(parts)]]
    examples = make_examples(texts, labels, classes=source.classes)
    return Corpus(name="joined", task="classification", classes=source.classes, train=examples, dev=source.dev, test=[])


def threads() -> None:
    most, rows = torch.get_num_threads(), []
    train(corpus_of([1] * 64), configure("spectra", {"epochs": 1}), progress=False)  # loads kernels
    for words, count in TEXTS.items():
        corpus = corpus_of([max(1, words // 21)] * count)
        config = configure("spectra", {"epochs": 2, "batch_size": BATCH, "patience": None})
        seconds: dict[int, float] = {}
        for number in (None, 1, most):
            if number not in seconds:
                history = train(corpus, config, threads=number, device="cpu", progress=False).history
                seconds[history["threads"]] = min(row["seconds"] for row in history["epochs"])
        chosen = next(iter(seconds))
        ratio = seconds[chosen] / min(seconds.values())
        rows.append([words, seconds[1], seconds[most], chosen, seconds[chosen], ratio, verdict(ratio <= WORTH)])
    print(f"The faster of two epochs, batches of {BATCH} texts, in seconds.\n")
    header = ["words per text", "1 thread", f"{most} threads", "chosen", "seconds", "ratio to best", f"<= {WORTH}"]
    print_table(header, rows)


def batches_by_tokens() -> None:
    parts = np.random.default_rng(0).geometric(0.1, DIFFERENT).clip(1, LONGEST)
    corpus, rows = corpus_of(parts.tolist()), []
    lengths = np.array([example.length for example in corpus.train])
    by_texts = list(BucketSampler(lengths, BATCH))
    words = int(np.mean([lengths[batch].max() * len(batch) for batch in by_texts]))
    for name, tokens in ((f"batch_size={BATCH}", None), (f"batch_tokens={words}", words)):
        batches = list(BucketSampler(lengths, BATCH, batch_tokens=tokens))
        padded = np.array([lengths[batch].max() * len(batch) for batch in batches])
        config = configure("spectra", {"epochs": 1, "batch_size": BATCH, "batch_tokens": tokens})
        started = time.process_time()
        train(corpus, config, threads=1, device="cpu", progress=False)
        seconds, sizes = time.process_time() - started, [len(batch) for batch in batches]
        texts, padding = f"{min(sizes)} to {max(sizes)}", f"{1 - lengths.sum() / padded.sum():.0%}"
        rows.append([name, len(batches), texts, int(padded.max()), padding, seconds])
    described = f"{lengths.min()} to {lengths.max()} words, {lengths.mean():.0f} on average"
    print(f"\n{DIFFERENT} texts of {described}; processor seconds for one epoch, one thread.\n")
    print_table(["", "batches", "texts per batch", "largest batch, words", "padding", "seconds"], rows)


def kept_memory() -> None:
    rows: list[list[object]] = []
    for words, count in TEXTS.items():
        corpus = corpus_of([max(1, words // 21)] * count)
        total = sum(example.length for example in corpus.train)
        seconds = [min(pair) for pair in zip(*(_epochs(corpus) for _ in range(2)), strict=True)]
        ratio = seconds[0] / seconds[1]
        target = f">= {KEPT_WORTH}" if words >= LONG else ""
        met = verdict(ratio >= KEPT_WORTH) if target else ""
        rows.append([words, *(total / each for each in seconds), ratio, target, met])
    print("\nWords per CPU second of training, one thread.\n")
    print_table(["words per text", "returned", "kept", "ratio", "target", ""], rows)


def _epochs(corpus: Corpus) -> list[float]:
    """Return the CPU seconds of an epoch with freed memory returned to the system, and kept."""
    seconds = []
    for kept in (False, True):
        context = nullcontext() if kept else patch("rationalizer.training.trainer.freed_memory_kept", nullcontext)
        with context:
            times = []
            for epochs in (1, 3):
                config = configure("spectra", {"epochs": epochs, "batch_size": BATCH, "patience": None})
                started = time.process_time()
                train(corpus, config, threads=1, device="cpu", progress=False)
                times.append(time.process_time() - started)
        seconds.append((times[1] - times[0]) / 2)
    return seconds


def main() -> None:
    threads()
    batches_by_tokens()
    kept_memory()


if __name__ == "__main__":
    main()
