"""Compare methods, seeds and budgets under the same conditions."""

from rationalizer.assignments import parse_assignments
from rationalizer.compare.comparison import Comparison, compare
from rationalizer.compare.grid import (
    Variant,
    combine_objectives,
    describe_method,
    parse_budgets,
    parse_methods,
    parse_objectives,
    parse_seeds,
    plan_runs,
    values_by_source,
)

__all__ = [
    "Comparison",
    "Variant",
    "combine_objectives",
    "compare",
    "describe_method",
    "parse_assignments",
    "parse_budgets",
    "parse_methods",
    "parse_objectives",
    "parse_seeds",
    "plan_runs",
    "values_by_source",
]
