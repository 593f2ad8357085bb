"""Scores of models and of their rationales: arrays in, numbers out.

`evaluate` measures everything at once; the modules hold the single measures and state what each one is.
"""

from rationalizer.metrics.alignment import AlignmentScores, Violations, alignment_scores, violations
from rationalizer.metrics.degeneration import Finding, check, label_skill, position_skill
from rationalizer.metrics.faithfulness import Aopc, Faithfulness, aopc, faithfulness, top_tokens
from rationalizer.metrics.plausibility import Agreement, RankingAgreement, auprc, iou_scores, token_scores
from rationalizer.metrics.rationale import RationaleStatistics, Statistic, rationale_statistics
from rationalizer.metrics.report import Scores, evaluate, evaluate_pairs
from rationalizer.metrics.spans import mask_to_spans, spans_to_mask
from rationalizer.metrics.task import accuracy, macro_f1, mse, score_task

__all__ = [
    "Agreement",
    "AlignmentScores",
    "Aopc",
    "Faithfulness",
    "Finding",
    "RankingAgreement",
    "RationaleStatistics",
    "Scores",
    "Statistic",
    "Violations",
    "accuracy",
    "alignment_scores",
    "aopc",
    "auprc",
    "check",
    "evaluate",
    "evaluate_pairs",
    "faithfulness",
    "iou_scores",
    "label_skill",
    "macro_f1",
    "mask_to_spans",
    "mse",
    "position_skill",
    "rationale_statistics",
    "score_task",
    "spans_to_mask",
    "token_scores",
    "top_tokens",
    "violations",
]
