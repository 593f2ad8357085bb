"""Signs of degeneration during a training, recorded in its history."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rationalizer.metrics import Finding
from rationalizer.nn import EXTRACTORS

Alarm = dict[str, Any]  # epoch (from 1), kind, message, value


class DegenerationWarning(UserWarning):
    """A model in training shows a sign of degeneration: its rationales may mean nothing."""


def unexpected_findings(method: str, findings: Sequence[Finding]) -> list[Finding]:
    """Leave out the signs of degeneration that every method without a generator shows."""
    selects_all = method in EXTRACTORS and not EXTRACTORS[method].uses_generator
    expected = ("full_rationales", "ignores_text") if selects_all else ()
    return [finding for finding in findings if finding.kind not in expected]


def add_alarms(alarms: list[Alarm], findings: Sequence[Finding], epoch: int, *, min_epochs: int) -> list[str]:
    """Add the signs of an epoch; return messages about those that have lasted for two epochs, once each.

    Every predictor starts as a constant one: only from `min_epochs` on is that worth a message.
    """
    seen = {(alarm["kind"], alarm["epoch"]) for alarm in alarms}
    alarms += [{"epoch": epoch, **asdict(finding)} for finding in findings]
    messages = []
    for finding in findings:
        first = max(2, min_epochs if finding.kind == "no_better_than_majority" else 2)
        lasts = (finding.kind, epoch - 1) in seen
        was_reported = epoch > first and (finding.kind, epoch - 2) in seen
        if epoch >= first and lasts and not was_reported:
            messages.append(f"epochs {epoch - 1} and {epoch}: {finding.message}")
    return messages


def warn_of(messages: Sequence[str]) -> None:
    for message in messages:
        warnings.warn(message, DegenerationWarning, stacklevel=3)
