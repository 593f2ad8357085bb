"""HANS (McCoy et al., 2019): pairs on which word overlap suggests entailment. See `paper.hans_evaluation`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from rationalizer.data.corpus import Corpus
from rationalizer.data.corpus_files import SPLIT_NAMES, SplitNames
from rationalizer.data.dataset_registry import ReadRequest, register_dataset
from rationalizer.data.labels import plain
from rationalizer.data.table_files import Row, Table
from rationalizer.paper.datasets.nli import CLASSES as NLI_CLASSES
from rationalizer.paper.datasets.nli import SNLI, prepare_nli
from rationalizer.text.errors import DataError
from rationalizer.text.example import PairExample

CLASSES = ("entailment", "non-entailment")
SPLITS: SplitNames = {
    "train": (*SPLIT_NAMES["train"], "heuristics_train_set"),
    "test": ("test", "validation", "heuristics_evaluation_set"),
}


def prepare_hans(table: Table, request: ReadRequest) -> Table:
    """As `prepare_nli`, with the labels by name.

    Copies of HANS number the two labels both ways (0 is entailment on the Hub, 1 elsewhere). The subcase tells which is
    meant: its second letter is `e` or `n`, as in `le_relative_clause` and `ln_subject/object_swap`.
    """
    prepared = prepare_nli(table, request)
    meanings: dict[int, str] = {}
    rows: list[Row] = []
    for number, (row, original) in enumerate(zip(prepared.rows, table.rows, strict=True), 1):
        label = row["label"] if row["label"] is None else plain(row["label"])
        if isinstance(label, int):
            name, problem = _class_of(original.get("subcase")), ""
            if name is None:
                problem = f"the subcase {original.get('subcase')!r} does not tell what the label {label} means"
            elif meanings.setdefault(label, name) != name:
                problem = f"the label {label} means {name} here, by its subcase, but {meanings[label]} above"
            if problem:
                remedy = f"correct the column subcase, or write the labels as {' and '.join(CLASSES)}"
                raise DataError(problem, remedy, path=table.path, row=number)
            row = row | {"label": name}
        rows.append(row)
    return replace(prepared, rows=rows)


def _class_of(subcase: Any) -> str | None:
    match = re.match(r"[lsc]([en])_", str(subcase))
    return None if match is None else CLASSES["en".index(match[1])]


def with_hans(corpus: Corpus, hans: Corpus) -> Corpus:
    """Add all training pairs of HANS to the train split of a corpus with three classes, as McCoy et al. (2019) do.

    Non-entailment becomes neutral: the premises of HANS do not exclude what they do not entail. The evaluation on HANS
    counts both neutral and contradiction as non-entailment.
    """
    if sorted(corpus.classes) != sorted(NLI_CLASSES) or hans.classes != CLASSES:
        raise ValueError(
            f"HANS (classes {', '.join(CLASSES)}) can be added to a corpus with the classes {', '.join(NLI_CLASSES)}; "
            f"got {', '.join(hans.classes)} and {', '.join(corpus.classes)}"
        )
    labels = [corpus.classes.index(name) for name in ("entailment", "neutral")]  # in the order of `CLASSES`
    added = [
        replace(pair, label=labels[int(pair.label or 0)])
        for pair in (*hans.train, *hans.dev)
        if isinstance(pair, PairExample)
    ]
    return replace(corpus, name=f"{corpus.name}+hans", train=[*corpus.train, *added])


register_dataset(
    replace(
        SNLI,
        name="hans",
        classes=CLASSES,
        hub="jhu-cogsci/hans",
        drop_labels=(),
        splits=SPLITS,
        prepare=prepare_hans,
        texts=30_000,
        augment=with_hans,
    )
)
