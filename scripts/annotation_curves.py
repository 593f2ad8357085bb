"""Measure what annotated texts buy: a model goes on training with the annotations of more and more texts.

    python scripts/annotation_curves.py DATA --out study/curves

People's annotations of the data stand in for an annotator. A model is trained on labels alone; then it goes on (warm
start) with the annotations of N of its texts, in random order or the most useful first. The data are reduced (see
`reduce_hatexplain`, `reduce_beer` and `reduce_movies`). Every result is appended to OUT/results.jsonl at once, and the
same command goes on from there after an interruption. Prints a table per dataset, and draws its token-F1 into the
folder --figures.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch

from rationalizer.cli.train import WARM_EPOCHS, learn_from_annotations
from rationalizer.data import Corpus, load
from rationalizer.data.single_examples import make_example
from rationalizer.drawing.charts import Point, Series, line_plot
from rationalizer.inference import annotation_usefulness, evaluate, predict
from rationalizer.metrics import Summary
from rationalizer.models import Config, TrainedModel, configure
from rationalizer.text import Example
from rationalizer.training.trainer import train

SIZES = (20, 50, 100, 200)
SHOWN = ("accuracy", "token_f1", "auprc")
LAST_WORDS = 150  # of a Movies review; its verdict tends to be at the end


@dataclass(frozen=True)
class Reduced:
    """Reduced data: a corpus whose dev split decides when to stop, and the texts whose labels and words are scored."""

    corpus: Corpus
    labels: list[Example]
    words: list[Example]


def reduce_hatexplain(corpus: Corpus) -> Reduced:
    """300 training posts of each class; 300 posts of dev to stop, 800 others scored."""
    dev = shuffled(corpus.dev)
    return Reduced(replace(corpus, train=first_of_each(corpus, 300), dev=dev[:300]), dev[300:1100], dev[300:1100])


def reduce_beer(corpus: Corpus) -> Reduced:
    """100 training reviews of each class and half of the annotated ones. The other half is scored for its words only,
    because nearly all of its labels are positive; the labels of 400 reviews of dev are scored instead.
    """
    annotated = shuffled([example for example in corpus.test if example.annotated])
    half, dev = len(annotated) // 2, shuffled(corpus.dev)
    training = [*first_of_each(corpus, 100), *annotated[:half]]
    return Reduced(replace(corpus, train=training, dev=dev[:200]), dev[200:600], annotated[half:])


def reduce_movies(corpus: Corpus) -> Reduced:
    """The last 150 words of 150 training reviews of each class, of 100 others to stop, and of the 200 scored."""
    training = first_of_each(corpus, 150)
    taken = {id(example) for example in training}
    others = shuffled([example for example in corpus.train if id(example) not in taken])[:100]
    scored = last_words(corpus.dev)
    return Reduced(replace(corpus, train=last_words(training), dev=last_words(others)), scored, scored)


DATASETS: dict[str, tuple[str, Callable[[Corpus], Reduced]]] = {  # name: folder, reduction
    "hatexplain": ("hatexplain", reduce_hatexplain),
    "beer-binary": ("beer", reduce_beer),
    "movies": ("movies", reduce_movies),
}


def shuffled(examples: Iterable[Any]) -> list[Any]:
    examples = list(examples)
    return [examples[k] for k in np.random.default_rng(0).permutation(len(examples))]


def first_of_each(corpus: Corpus, count: int) -> list[Any]:
    return [e for k in range(len(corpus.classes)) for e in [e for e in corpus.train if e.label == k][:count]]


def last_words(examples: Iterable[Any]) -> list[Example]:
    def cut(example: Example) -> Example:
        mask = example.annotation
        return make_example(
            tokens=example.tokens[-LAST_WORDS:],
            mask=None if mask is None else mask[-LAST_WORDS:],
            label=example.label,
            rule="spaces",
        )

    return [cut(example) for example in examples]


def unmarked(example: Any) -> Any:
    return replace(example, annotation=None, annotator_masks=None)


class Study:
    """The runs of one dataset, without those that are in the file of results."""

    def __init__(self, name: str, data: Reduced, folder: Path) -> None:
        self.name, self.data, self.folder = name, data, folder
        self.file = folder / "results.jsonl"
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.rows = [row for row in map(json.loads, lines) if row["data"] == name]
        self.pool = np.array([k for k, example in enumerate(data.corpus.train) if example.annotated])

    def find(self, seed: int, order: str, size: int) -> dict[str, Any] | None:
        wanted = (seed, order, size)
        return next((row for row in self.rows if (row["seed"], row["order"], row["annotated"]) == wanted), None)

    def score(self, seed: int, order: str, size: int, model: Callable[[], TrainedModel]) -> None:
        """Make a model and append its scores, unless they are known."""
        if self.find(seed, order, size):
            return
        started = time.process_time()
        trained = model()
        seconds = round(time.process_time() - started, 1)
        words = evaluate(trained, self.data.words).as_dict()
        labels = words if self.data.labels is self.data.words else evaluate(trained, self.data.labels).as_dict()
        scores = {"accuracy": labels["accuracy"], "token_f1": words["token_f1"], "auprc": words["auprc"]}
        row = {"data": self.name, "seed": seed, "order": order, "annotated": size, **scores, "seconds": seconds}
        with self.file.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)
        self.rows.append(row)

    def run(self, seed: int, sizes: Iterable[int]) -> None:
        corpus, count = self.data.corpus, len(self.pool)
        settings = {"seed": seed, "budget": corpus.budget}
        steps = [(order, size) for size in sizes for order in ("random", "useful") if size < count]
        steps.append(("random", count))
        if self.find(seed, "trained on", 0) and all(self.find(seed, order, size) for order, size in steps):
            return
        labels_only = replace(corpus, train=[unmarked(example) for example in corpus.train])
        base = self.folder / f"{self.name}-{seed}"
        first = fit(labels_only, configure("spectra", settings), run_dir=base, resume=True)  # once, then it is loaded
        warm = {"patience": None, "epochs": WARM_EPOCHS}
        self.score(seed, "labels only", 0, lambda: first)
        self.score(seed, "trained on", 0, lambda: fit(labels_only, replace(first.config, **warm), start=first))
        candidates = [unmarked(corpus.train[k]) for k in self.pool]
        useful = annotation_usefulness(first, candidates, predict(first, candidates))
        ranked = {
            "random": np.random.default_rng(seed).permutation(self.pool),
            "useful": self.pool[np.argsort(-useful, kind="stable")],
        }
        for order, size in steps:
            chosen = set(ranked[order][:size].tolist())
            texts = [example if k in chosen else unmarked(example) for k, example in enumerate(corpus.train)]
            taught = replace(corpus, train=texts)
            config = learn_from_annotations(first.config, taught, {}, warm=True)
            self.score(seed, order, size, lambda: fit(taught, config, start=first))  # noqa: B023

    def table(self) -> Iterator[str]:
        yield f"\n{self.name}: {len(self.data.corpus.train)} training texts, {len(self.pool)} with annotations; mean"
        yield "and range over seeds\n"
        yield f"| annotated | order | {' | '.join(SHOWN)} | seeds |\n|{'---|' * (3 + len(SHOWN))}"
        for key in sorted({(row["annotated"], row["order"]) for row in self.rows}):
            same = [row for row in self.rows if (row["annotated"], row["order"]) == key]
            columns = [[row[name] for row in same] for name in SHOWN]
            values = [f"{mean(found):.3f} ({min(found):.3f}/{max(found):.3f})" for found in columns]
            yield f"| {key[0]} | {key[1]} | {' | '.join(values)} | {len(same)} |"

    def chart(self) -> str:
        """Token-F1 against the number of annotated texts, with the range over seeds."""

        def point(size: int, order: str) -> Point:
            same = [r["token_f1"] for r in self.rows if (r["annotated"], r["order"]) == (size, order)]
            return Point(size, Summary.from_values(same))

        sizes = sorted({row["annotated"] for row in self.rows if row["order"] == "useful"})
        series = [
            Series(name, tuple(point(size, order if size else "trained on") for size in (0, *sizes)))
            for name, order in (("random order", "random"), ("useful first", "useful"))
        ]
        everything = point(len(self.pool), "random")
        series.append(Series(f"all {len(self.pool)} texts", (everything,), everywhere=True))
        title = f"{self.name}, reduced: what annotated texts buy"
        return line_plot(series, title=title, x_label="annotated texts", y_label="token-F1")


def fit(corpus: Corpus, config: Config, **options: Any) -> TrainedModel:
    return train(corpus, config, progress=False, device="cpu", threads=1, **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path, help="holds the folders hatexplain, beer and movies")
    parser.add_argument("--datasets", choices=DATASETS, nargs="+", default=list(DATASETS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--out", type=Path, default=Path("study/curves"), help="results, and the first models")
    parser.add_argument("--figures", type=Path, help="folder of the charts")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    studies = []
    for name in args.datasets:
        folder, reduce_corpus = DATASETS[name]
        studies.append(Study(name, reduce_corpus(load(name, data_dir=args.data_dir / folder)), args.out))
        for seed in args.seeds:
            studies[-1].run(seed, args.sizes)
    for study in studies:
        print("\n".join(study.table()))
        if args.figures:
            args.figures.mkdir(parents=True, exist_ok=True)
            (args.figures / f"annotations-{study.name}.svg").write_text(study.chart(), encoding="utf-8")


if __name__ == "__main__":
    main()
