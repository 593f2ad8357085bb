"""Drawn inputs of every layer in `rationalizer.ops`, against properties that are cheap and exact."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np

from rationalizer.ops import ConvergenceWarning
from soak import layers_of_pairs, layers_of_texts
from soak.cases import Case, Soak, Unclear

LAYERS = {**layers_of_texts.LAYERS, **layers_of_pairs.LAYERS}


def run(soak: Soak) -> None:
    for layer in LAYERS.values():  # what is compiled on first use does not count as time of a case
        _warm_up(layer)
    soak.check(10_000, judge, seconds=10)


def _warm_up(layer) -> None:
    for number in range(3):
        with contextlib.suppress(Exception):  # it is the cases that are judged
            layer(Case(number, np.random.default_rng(number)))


def judge(case: Case) -> None:
    name = list(LAYERS)[case.number % len(LAYERS)]
    case.note(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)  # a solver that stops short says so, and is looked at
        try:
            LAYERS[name](case)
        except ConvergenceWarning as warning:
            raise Unclear(str(warning)) from None
