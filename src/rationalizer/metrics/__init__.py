"""Metrics of predictions and rationales: functions of arrays.

`compute_scores` computes all of them at once. A new metric is one new file in this folder; see `registry.computes`.
"""

from rationalizer.discovery import import_modules
from rationalizer.metrics.alignment import AlignmentScores, Violations, alignment_scores, violations
from rationalizer.metrics.annotators import (
    AnnotatorAgreement,
    AnnotatorComparison,
    PairAgreement,
    agreement_of_pair,
    compare_with_annotators,
)
from rationalizer.metrics.calibration import Bin, Calibration, calibration
from rationalizer.metrics.degeneration import (
    Finding,
    find_degeneration,
    find_unpredicted_classes,
    label_skill,
    position_skill,
    size_skill,
)
from rationalizer.metrics.evaluation import Evaluation, PairEvaluation, TextEvaluation
from rationalizer.metrics.faithfulness import Aopc, Faithfulness, aopc, faithfulness, top_tokens
from rationalizer.metrics.pair_highlights import HighlightCoverage, highlight_coverage
from rationalizer.metrics.plausibility import Agreement, RankingAgreement, auprc, iou_scores, token_scores
from rationalizer.metrics.rationale_size import RationaleStatistics, rationale_statistics
from rationalizer.metrics.registry import METRICS, Metric, computes, headline_metrics, score_rows
from rationalizer.metrics.scores import Scores, compute_scores
from rationalizer.metrics.summary import Summary
from rationalizer.metrics.task_scores import ClassScores, accuracy, class_scores, confusions, macro_f1, mse, score_task
from rationalizer.metrics.token_spans import mask_to_spans, spans_to_mask
from rationalizer.metrics.word_use import WordUse, word_use

import_modules(__name__)

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
    "Evaluation",
    "Faithfulness",
    "Finding",
    "HighlightCoverage",
    "Metric",
    "PairAgreement",
    "PairEvaluation",
    "RankingAgreement",
    "RationaleStatistics",
    "Scores",
    "Summary",
    "TextEvaluation",
    "Violations",
    "WordUse",
    "accuracy",
    "agreement_of_pair",
    "alignment_scores",
    "aopc",
    "auprc",
    "calibration",
    "class_scores",
    "compare_with_annotators",
    "compute_scores",
    "computes",
    "confusions",
    "faithfulness",
    "find_degeneration",
    "find_unpredicted_classes",
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
    "size_skill",
    "spans_to_mask",
    "token_scores",
    "top_tokens",
    "violations",
    "word_use",
]
