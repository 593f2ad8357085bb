"""Constraints by name, to combine with a budget: in Python, on the command line, in saved models, at use time.

A new constraint is one new module in this folder: it is imported, and so registered, by being there.
"""

from importlib import import_module
from pkgutil import iter_modules

from rationalizer.constraints.alignments import ExactlyK, Monotone, MustAlign, NeverAlign
from rationalizer.constraints.base import (
    CONSTRAINTS,
    Conflict,
    Constraint,
    Constraints,
    constraint_named,
    constraints_of,
    register,
)
from rationalizer.constraints.ends import Ends
from rationalizer.constraints.factors import FactorConstraint, PairFactorConstraint
from rationalizer.constraints.limits import Draft, Limits, Text, TextConstraint, make_limits
from rationalizer.constraints.pairs import PairConstraint, PairLimits, PairOfTexts, make_pair_limits
from rationalizer.constraints.sentences import PerSentence, WholeSentences
from rationalizer.constraints.spans import SpanLength, Spans
from rationalizer.constraints.words import Must, Never

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
    "Limits",
    "Monotone",
    "Must",
    "MustAlign",
    "Never",
    "NeverAlign",
    "PairConstraint",
    "PairFactorConstraint",
    "PairLimits",
    "PairOfTexts",
    "PerSentence",
    "SpanLength",
    "Spans",
    "Text",
    "TextConstraint",
    "WholeSentences",
    "constraint_named",
    "constraints_of",
    "make_limits",
    "make_pair_limits",
    "register",
]
