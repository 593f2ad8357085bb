"""Compare methods, seeds and budgets under the same conditions."""

from rationalizer.compare.comparison import Comparison, compare
from rationalizer.compare.grid import (
    PlannedRun,
    Variant,
    describe_method,
    parse_assignments,
    parse_budgets,
    parse_methods,
    parse_seeds,
    plan_runs,
    values_by_source,
)
from rationalizer.compare.result_tables import ResultRow, result_table

__all__ = [
    "Comparison",
    "PlannedRun",
    "ResultRow",
    "Variant",
    "compare",
    "describe_method",
    "parse_assignments",
    "parse_budgets",
    "parse_methods",
    "parse_seeds",
    "plan_runs",
    "result_table",
    "values_by_source",
]
