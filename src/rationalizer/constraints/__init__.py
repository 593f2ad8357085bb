"""Constraints by name, to combine with a budget: in Python, on the command line, in saved models, at use time.

A new constraint is one new module in this folder: it is imported, and so registered, by being there.
"""

from importlib import import_module
from pkgutil import iter_modules

from rationalizer.constraints.alignment_constraints import ExactlyK, Monotone, MustAlign, NeverAlign
from rationalizer.constraints.base import (
    CONSTRAINTS,
    Constraint,
    ConstraintConflict,
    Constraints,
    get_constraint,
    parse_constraints,
    register,
)
from rationalizer.constraints.factor_constraints import FactorConstraint, PairFactorConstraint
from rationalizer.constraints.layer_arguments import (
    LayerConstraints,
    TextConstraint,
    TextInBatch,
    TextRequirements,
    build_layer_constraints,
)
from rationalizer.constraints.pair_layer_arguments import (
    PairConstraint,
    PairInBatch,
    PairLayerConstraints,
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
    "Constraint",
    "ConstraintConflict",
    "Constraints",
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
    "PairInBatch",
    "PairLayerConstraints",
    "PerSentence",
    "SpanLength",
    "Spans",
    "TextConstraint",
    "TextInBatch",
    "TextRequirements",
    "WholeSentences",
    "build_layer_constraints",
    "build_pair_layer_constraints",
    "get_constraint",
    "parse_constraints",
    "register",
]
