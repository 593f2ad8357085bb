"""Constraints by name, to combine with a budget: in Python, on the command line, in saved models, at inference time.

A new constraint is one new module in this folder: importing this package imports it, which registers it.
"""

from rationalizer.constraints.alignment_constraints import ExactlyK, Monotone, MustAlign, NeverAlign
from rationalizer.constraints.base import (
    CONSTRAINTS,
    BatchItem,
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
    TextRequirements,
    build_layer_constraints,
)
from rationalizer.constraints.pair_layer_arguments import (
    PairConstraint,
    PairLayerConstraints,
    PairRequirements,
    build_pair_layer_constraints,
)
from rationalizer.constraints.phrase_ends import Ends
from rationalizer.constraints.sentence_constraints import PerSentence, WholeSentences
from rationalizer.constraints.span_constraints import SpanLength, Spans
from rationalizer.constraints.word_constraints import Must, Never
from rationalizer.discovery import import_modules

import_modules(__name__)

__all__ = [
    "CONSTRAINTS",
    "BatchItem",
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
    "PairLayerConstraints",
    "PairRequirements",
    "PerSentence",
    "SpanLength",
    "Spans",
    "TextConstraint",
    "TextRequirements",
    "WholeSentences",
    "build_layer_constraints",
    "build_pair_layer_constraints",
    "get_constraint",
    "parse_constraints",
    "register",
]
