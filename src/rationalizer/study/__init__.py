"""Studies: training runs that are scored and kept, alone or as a comparison of methods, seeds and budgets."""

from rationalizer.study.compare import Comparison, compare
from rationalizer.study.grid import (
    Job,
    Method,
    budget_text,
    method_text,
    parse_budget,
    parse_budgets,
    parse_methods,
    parse_pairs,
    parse_seeds,
    plan,
)
from rationalizer.study.hans import hans_accuracy, hans_json, hans_markdown, hans_table
from rationalizer.study.run import is_first_process, keep_scores, score, source_of, suspicions, train_run
from rationalizer.study.source import Source, by_source, pick_split
from rationalizer.study.table import Row, table
from rationalizer.study.words import HEADLINES, WORDS, number, score_lines

__all__ = [
    "HEADLINES",
    "WORDS",
    "Comparison",
    "Job",
    "Method",
    "Row",
    "Source",
    "budget_text",
    "by_source",
    "compare",
    "hans_accuracy",
    "hans_json",
    "hans_markdown",
    "hans_table",
    "is_first_process",
    "keep_scores",
    "method_text",
    "number",
    "parse_budget",
    "parse_budgets",
    "parse_methods",
    "parse_pairs",
    "parse_seeds",
    "pick_split",
    "plan",
    "score",
    "score_lines",
    "source_of",
    "suspicions",
    "table",
    "train_run",
]
