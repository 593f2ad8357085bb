"""Studies: comparisons of methods, seeds and budgets on the same footing."""

from rationalizer.compare.comparison import Comparison, compare
from rationalizer.compare.grid import (
    Job,
    Variant,
    by_source,
    method_text,
    parse_assignments,
    parse_budgets,
    parse_methods,
    parse_seeds,
    plan,
)
from rationalizer.compare.result_tables import Row, table
from rationalizer.paper.hans import hans_accuracy, hans_json, hans_markdown, hans_table

__all__ = [
    "Comparison",
    "Job",
    "Row",
    "Variant",
    "by_source",
    "compare",
    "hans_accuracy",
    "hans_json",
    "hans_markdown",
    "hans_table",
    "method_text",
    "parse_assignments",
    "parse_budgets",
    "parse_methods",
    "parse_seeds",
    "plan",
    "table",
]
