"""Constraints by name, to combine with a budget: in Python, on the command line, in saved models, at use time.

A new constraint is one new module in this folder: it is imported, and so registered, by being there.
"""

from importlib import import_module
from pkgutil import iter_modules

from rationalizer.constraints.alignment_constraints import ExactlyK, Monotone, MustAlign, NeverAlign
from rationalizer.constraints.base import (
    CONSTRAINTS,
    Conflict,
    Constraint,
    Constraints,
    constraint_named,
    parse_constraints,
    register,
)
from rationalizer.constraints.factor_constraints import FactorConstraint, PairFactorConstraint
from rationalizer.constraints.layer_arguments import (
    Draft,
    LayerConstraints,
    Text,
    TextConstraint,
    build_layer_constraints,
)
from rationalizer.constraints.pair_layer_arguments import (
    PairConstraint,
    PairLayerConstraints,
    PairOfTexts,
    build_pair_layer_constraints,
)
from rationalizer.constraints.phrase_ends import Ends
from rationalizer.constraints.sentence_constraints import PerSentence, WholeSentences
from rationalizer.constraints.span_constraints import SpanLength, Spans
from rationalizer.constraints.word_constraints import Must, Never

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = [
    "CONSTRAINTS",
    "Conflict",
    "Constraint",
    "Constraints",
    "Draft",
    "Ends",
    "ExactlyK",
    "FactorConstraint",
    "LayerConstraints",
    "Monotone",
    "Must",
    "MustAlign",
    "Never",
    "NeverAlign",
    "PairConstraint",
    "PairFactorConstraint",
    "PairLayerConstraints",
    "PairOfTexts",
    "PerSentence",
    "SpanLength",
    "Spans",
    "Text",
    "TextConstraint",
    "WholeSentences",
    "build_layer_constraints",
    "build_pair_layer_constraints",
    "constraint_named",
    "parse_constraints",
    "register",
]
