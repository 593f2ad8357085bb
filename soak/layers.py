"""Random inputs of every layer in `rationalizer.ops`, checked for exact properties that are cheap to verify."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np

from rationalizer.ops import ConvergenceWarning
from soak import pair_layers, text_layers
from soak.cases import Case, Soak, Unclear

LAYERS = {**text_layers.LAYERS, **pair_layers.LAYERS}


def run(soak: Soak) -> None:
    for layer in LAYERS.values():  # compilation must not count as time of a case
        _warm_up(layer)
    soak.check(10_000, check_case, seconds=10)


def _warm_up(layer) -> None:
    for number in range(3):
        with contextlib.suppress(Exception):  # failures are found by the cases
            layer(Case(number, np.random.default_rng(number)))


def check_case(case: Case) -> None:
    name = list(LAYERS)[case.number % len(LAYERS)]
    case.note(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)  # reported as unclear
        try:
            LAYERS[name](case)
        except ConvergenceWarning as warning:
            raise Unclear(str(warning)) from None
