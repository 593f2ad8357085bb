"""Scores of models and of their rationales: arrays in, numbers out.

`evaluate` measures everything at once; the modules hold the single measures and state what each one is.
"""

from rationalizer.metrics.alignment import AlignmentScores, Violations, alignment_scores, violations
from rationalizer.metrics.annotators import AnnotatorAgreement, AnnotatorComparison, compare_with_annotators
from rationalizer.metrics.calibration import Bin, Calibration, calibration
from rationalizer.metrics.degeneration import Finding, check, label_skill, position_skill
from rationalizer.metrics.faithfulness import Aopc, Faithfulness, aopc, faithfulness, top_tokens
from rationalizer.metrics.pair_highlights import HighlightCoverage, highlight_coverage
from rationalizer.metrics.plausibility import Agreement, RankingAgreement, auprc, iou_scores, token_scores
from rationalizer.metrics.rationale_size import RationaleStatistics, rationale_statistics
from rationalizer.metrics.registry import METRICS, Metric, headline_metrics, score_rows
from rationalizer.metrics.scores import Scores, evaluate, evaluate_pairs
from rationalizer.metrics.summary import Summary
from rationalizer.metrics.task_scores import ClassScores, accuracy, class_scores, confusions, macro_f1, mse, score_task
from rationalizer.metrics.token_spans import mask_to_spans, spans_to_mask
from rationalizer.metrics.word_use import WordUse, word_use

__all__ = [
    "METRICS",
    "Agreement",
    "AlignmentScores",
    "AnnotatorAgreement",
    "AnnotatorComparison",
    "Aopc",
    "Bin",
    "Calibration",
    "ClassScores",
    "Faithfulness",
    "Finding",
    "HighlightCoverage",
    "Metric",
    "RankingAgreement",
    "RationaleStatistics",
    "Scores",
    "Summary",
    "Violations",
    "WordUse",
    "accuracy",
    "alignment_scores",
    "aopc",
    "auprc",
    "calibration",
    "check",
    "class_scores",
    "compare_with_annotators",
    "confusions",
    "evaluate",
    "evaluate_pairs",
    "faithfulness",
    "headline_metrics",
    "highlight_coverage",
    "iou_scores",
    "label_skill",
    "macro_f1",
    "mask_to_spans",
    "mse",
    "position_skill",
    "rationale_statistics",
    "score_rows",
    "score_task",
    "spans_to_mask",
    "token_scores",
    "top_tokens",
    "violations",
    "word_use",
]
