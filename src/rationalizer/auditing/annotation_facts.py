"""Statistics of the audited data: labels, annotations, and the best score that the budget allows."""

from __future__ import annotations

from collections import Counter

import numpy as np

from rationalizer.auditing.context import AuditContext
from rationalizer.metrics.plausibility_context import token_f1_ceiling
from rationalizer.text import Example

MOST_CLASSES = 8  # are listed


def data_facts(context: AuditContext) -> dict[str, str]:
    """Facts about the texts, for the head of the report."""
    lengths = [len(tokens) for tokens in context.tokens]
    facts = {"texts": f"{len(lengths)}, {np.median(lengths):.0f} words in the median"}
    labels = [example.label for example in context.examples]
    if context.outputs.ndim == 2:
        if None not in labels:
            facts["labels"] = _shares(context, np.array(labels, dtype=np.int64))
            facts["accuracy"] = f"{np.mean(context.predicted == np.array(labels)):.3f}"
        facts["predictions"] = _shares(context, context.predicted)
    sizes = [mask.mean() for mask in context.selected if len(mask)]
    facts["selected"] = f"{np.mean(sizes):.1%} of the words on average"
    return facts | _annotations(context)


def _shares(context: AuditContext, codes: np.ndarray) -> str:
    names = context.model.classes
    counts = Counter(codes.tolist()).most_common()
    shown = [f"{names[k] if names is not None else k} {count / len(codes):.0%}" for k, count in counts[:MOST_CLASSES]]
    return ", ".join(shown) + (f" and {len(counts) - MOST_CLASSES} more" if len(counts) > MOST_CLASSES else "")


def _annotations(context: AuditContext) -> dict[str, str]:
    """The share that people marked, and the ceiling: the mean token-F1 of the best rationale that the budget allows."""
    marked = [
        (number, np.array(example.annotation))
        for number, example in enumerate(context.examples)
        if isinstance(example, Example) and example.annotation is not None and any(example.annotation)
    ]
    if not marked:
        return {}
    share = np.mean([mask.mean() for _, mask in marked])
    facts = {"annotations": f"{len(marked)} texts, {share:.0%} of their words marked by people"}
    limits = context.model.limits([context.examples[number] for number, _ in marked])
    if limits is not None:
        counts = [int(mask.sum()) for _, mask in marked]
        at_most, exactly = (token_f1_ceiling(counts, limits, exactly=rule).f1 for rule in (False, True))
        facts["ceiling"] = (
            f"no rationale within the budget has a token-F1 above {at_most:.3f}, "
            f"none that uses it completely above {exactly:.3f}"
        )
    return facts
