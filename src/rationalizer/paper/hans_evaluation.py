"""Evaluation on HANS: accuracy of a pair model on the six parts, which shows whether it relies on word overlap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rationalizer.data import Corpus
from rationalizer.inference import predict
from rationalizer.models import TrainedModel
from rationalizer.paper.reported_figures import HANS
from rationalizer.text import DataError, PairExample

Part = tuple[str, str]  # (true label, heuristic)
PARTS: tuple[Part, ...] = tuple(HANS)
HEADINGS = {"lexical_overlap": "Lexical overlap", "subsequence": "Subsequence", "constituent": "Constituent"}


def hans_accuracy(trained: TrainedModel, hans: Corpus) -> dict[Part, float]:
    """Return the accuracy on each part of the evaluation set. Every class of the model but entailment counts as
    non-entailment.
    """
    if "entailment" not in trained.classes:
        raise ValueError(
            f"HANS needs a model with the class entailment, but this one predicts "
            f"{', '.join(trained.classes) or 'values'}; train on SNLI, MNLI, HANS or other data with this class"
        )
    pairs = [pair for pair in hans.test if isinstance(pair, PairExample)]
    unknown = next((pair.group for pair in pairs if pair.group not in HEADINGS), None)
    if not pairs or unknown is not None:
        problem = "no evaluation pairs" if not pairs else f"a pair with the unknown heuristic {unknown!r}"
        raise DataError(f"{hans.name} has {problem}; its test split needs the heuristics {', '.join(HEADINGS)}")
    entailed = predict(trained, pairs).labels == trained.classes.index("entailment")
    expected = np.array([hans.classes[int(pair.label or 0)] == "entailment" for pair in pairs])
    heuristics = np.array([pair.group for pair in pairs])
    accuracy = {}
    for label, heuristic in PARTS:
        members = (expected == (label == "entailment")) & (heuristics == heuristic)
        if members.any():
            accuracy[label, heuristic] = float((entailed == expected)[members].mean())
    return accuracy


def hans_table(columns: Mapping[str, Mapping[Part, float]]) -> tuple[list[str], list[list[str]]]:
    """Return headings and cells: our columns, then the paper's (M:AtMostOne2 trained on MNLI)."""
    heads = ["label", "heuristic", *columns, "paper, vanilla", "paper, augmented"]
    cells = []
    for label, heuristic in PARTS:
        ours = [column.get((label, heuristic)) for column in columns.values()]
        cells.append([label, HEADINGS[heuristic], *map(_figure, [*ours, *HANS[label, heuristic]])])
    return heads, cells


def hans_markdown(columns: Mapping[str, Mapping[Part, float]], note: str) -> str:
    heads, cells = hans_table(columns)
    lines = [f"# HANS\n\n{note}\n", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in cells)]) + "\n"


def hans_json(columns: Mapping[str, Mapping[Part, float]]) -> dict[str, Any]:
    return {name: {" / ".join(part): value for part, value in column.items()} for name, column in columns.items()}


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}".removeprefix("0")
