"""The checks of an audit and their results. A new check is a function in a file of this folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from rationalizer.auditing.context import AuditContext
from rationalizer.discovery import Registry

Verdict = Literal["pass", "leak", "not applicable"]


@dataclass(frozen=True)
class CheckResult:
    """A verdict, the measured number and a sentence about it."""

    verdict: Verdict
    sentence: str
    value: float | None = None  # None if nothing was measured
    shown: str = ""  # the value with its unit, and its interval if it has one
    details: dict[str, Any] = field(default_factory=dict)  # further numbers, as JSON


def measured(leaks: bool, value: float, shown: str, sentence: str, **details: Any) -> CheckResult:
    return CheckResult("leak" if leaks else "pass", sentence, float(value), shown, details)


def not_applicable(sentence: str) -> CheckResult:
    return CheckResult("not applicable", sentence)


@dataclass(frozen=True)
class Check:
    """A check of an audit: a question and the function that answers it."""

    name: str
    part: str  # the part of the report it belongs to
    question: str
    run: Callable[[AuditContext], CheckResult]


CHECKS: Registry[Check] = Registry("check")
PARTS = ("Dropped words", "Codes", "Independent reading", "Guarantees", "Robustness", "Data")  # in this order


def check_names() -> list[str]:
    """The names of all checks, part by part; parts of other packages come last."""
    parts = [*PARTS, *(one.part for one in CHECKS.values())]
    return sorted(CHECKS, key=lambda name: parts.index(CHECKS[name].part))


def check(name: str, part: str, question: str) -> Callable[[Callable[[AuditContext], CheckResult]], Check]:
    """Decorator that registers a function as a check."""

    def register(function: Callable[[AuditContext], CheckResult]) -> Check:
        return CHECKS.register(name)(Check(name, part, question, function))

    return register
