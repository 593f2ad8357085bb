"""Are audited texts among the training texts?"""

from __future__ import annotations

from collections.abc import Sequence

from rationalizer.auditing.checks.base import CheckResult, check, measured, not_applicable
from rationalizer.auditing.context import AuditContext
from rationalizer.auditing.near_duplicates import NEAR, find_overlap
from rationalizer.text import AnyExample

PART = "Data"
SHARE = 0.01  # of the audited texts: fewer hardly change a score


@check("overlap", PART, "Are audited texts also among the training texts?")
def overlap(context: AuditContext) -> CheckResult:
    if not context.train:
        return not_applicable("The training texts are not known; pass them to look for overlap.")
    found = find_overlap(_words(context.examples), _words(context.train))
    exact, near = len(found.exact), len(found.near)
    count = len(context.examples)
    sentence = (
        f"None of the {count} texts is among the {len(context.train)} training texts, exactly or nearly."
        if not exact + near
        else f"{exact} of {count} texts are training texts, and {near} more share at least {NEAR:.0%} of their phrases "
        f"with one (limit {SHARE:.0%}): scores on them are too good."
    )
    rows = [number + 1 for number in (*found.exact, *found.near)][:20]
    count_found = exact + near
    details = {"exact": exact, "near": near, "first_rows": rows}
    return measured(count_found / count > SHARE, count_found, str(count_found), sentence, **details)


def _words(examples: Sequence[AnyExample]) -> list[tuple[str, ...]]:
    return [tuple(token for text in example.texts for token in text.tokens) for example in examples]
