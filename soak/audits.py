"""Audits of honest models find nothing, audits of models with a planted leak find it."""

from __future__ import annotations

from tests.auditing.planted_models import LEAKS, clean_model, make_texts

from rationalizer.auditing import audit
from soak.cases import Case, Soak, require

TEXTS = 500


def run(soak: Soak) -> None:
    soak.check(20, check_honest_model, seconds=120)
    soak.check(20, check_planted_leak, seconds=120)


def check_honest_model(case: Case) -> None:
    model = clean_model(case.random)
    case.note(f"{model.classes} classes, share {model.share:.2f}")
    texts, labels = make_texts(case.random, TEXTS, model.classes)
    found = audit(model.adapter(), texts, labels, progress=False)
    require(found.passed, "false alarm:", {name: found.results[name].sentence for name in found.leaks})


def check_planted_leak(case: Case) -> None:
    kind, check = list(LEAKS.items())[case.number % len(LEAKS)]
    case.note(kind.__name__)
    model = kind(case.random)
    texts, labels = make_texts(case.random, TEXTS)
    found = audit(model.adapter(), texts, labels, progress=False)
    require(check in found.leaks, f"{check} did not find it; found {found.leaks}")
