"""Audit a model: run every check on the same texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rationalizer.auditing.annotation_facts import data_facts
from rationalizer.auditing.audited_model import AuditedModel
from rationalizer.auditing.checks import CHECKS, CheckResult, Verdict, check_names
from rationalizer.auditing.context import AuditContext
from rationalizer.auditing.rationalizer_adapter import RationalizerAdapter
from rationalizer.data import Corpus, make_examples
from rationalizer.model import Rationalizer
from rationalizer.plurals import count_of
from rationalizer.progress import show_progress
from rationalizer.text import AnyExample
from rationalizer.text.errors import DataError

FEWEST = 20  # texts


@dataclass(frozen=True)
class Audit:
    """The results of an audit, by the names of the checks; `print(audit)` shows them, notebooks draw them."""

    model: str
    facts: Mapping[str, str]
    results: Mapping[str, CheckResult]

    @property
    def passed(self) -> bool:
        """Whether no check found a leak."""
        return not self.leaks

    @property
    def leaks(self) -> list[str]:
        """The names of the checks that found a leak."""
        return [name for name, result in self.results.items() if result.verdict == "leak"]

    def count(self, verdict: Verdict) -> int:
        return sum(result.verdict == verdict for result in self.results.values())

    def to_json(self) -> dict[str, Any]:
        results = {name: asdict(result) for name, result in self.results.items()}
        return {"model": self.model, "passed": self.passed, "facts": dict(self.facts), "checks": results}

    def to_html(self) -> str:
        """A self-contained page."""
        from rationalizer.auditing.audit_report import audit_page

        return audit_page(self)

    def _repr_html_(self) -> str:
        from rationalizer.auditing.audit_report import audit_fragment

        return audit_fragment(self)

    def __str__(self) -> str:
        from rationalizer.auditing.audit_report import summary

        rows = [
            f"{result.verdict:14} {name:18} {result.shown:20} {result.sentence}"
            for name, result in self.results.items()
        ]
        return "\n".join([*rows, summary(self)])


def audit(
    model: Rationalizer | AuditedModel,
    texts: Iterable[Any] | Corpus,
    labels: Iterable[Any] | None = None,
    *,
    annotations: Iterable[Any] | None = None,
    train: Iterable[Any] | None = None,
    checks: Iterable[str] | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Audit:
    """Test whether a model reads only what it shows, and whether what it shows can be believed.

    >>> report = rationalizer.audit(model, texts, labels)
    >>> report.passed, report.leaks

    Args:
        model: a trained `Rationalizer`; or any other model, as an `Adapter` of two functions.
        texts: the texts to audit: strings or lists of words, (premise, hypothesis) tuples for a model of pairs; or a
            corpus: its test split (or dev split) is audited against its training texts. A few hundred texts are
            enough for most checks, with more texts the intervals are narrower.
        labels: their true labels, if known: the independent reader then learns from them instead of from the model's
            predictions.
        annotations: human annotations; the report then says how well a rationale within the budget can agree with them.
        train: the texts that the model was trained on, to look for overlap.
        checks: names of checks, see `CHECKS`; by default all.
        seed: of everything random.
        progress: show a progress bar; by default only on a terminal or in a notebook.
    """
    if isinstance(checks, str):
        raise TypeError(f"checks must be a list of names, got the string {checks!r}; use [{checks!r}]")
    names = None if checks is None else [CHECKS[name].name for name in checks]
    subject = RationalizerAdapter(model) if isinstance(model, Rationalizer) else model
    if isinstance(texts, Corpus):
        if labels is not None or annotations is not None or train is not None:
            raise ValueError("a corpus has its own labels, annotations and training texts; leave the arguments out")
        examples: Sequence[AnyExample] = texts.test if len(texts.test) else texts.dev
        known: Sequence[AnyExample] | None = texts.train
    else:
        examples = _examples(model, texts, labels, annotations)
        known = None if train is None else _examples(model, train)
    return audit_examples(subject, examples, known, checks=names, seed=seed, progress=progress)


def audit_examples(
    model: AuditedModel,
    examples: Sequence[AnyExample],
    train: Sequence[AnyExample] | None = None,
    *,
    checks: Sequence[str] | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Audit:
    """Audit texts that are already split into words; their labels are class numbers or values."""
    names = check_names() if checks is None else list(checks)
    if not names:
        raise ValueError("checks is empty; name at least one, or leave it out to run all")
    if seed < 0:
        raise ValueError(f"seed must not be negative, got {seed}")
    if len(examples) < FEWEST:
        raise DataError(f"an audit needs at least {FEWEST} texts, got {len(examples)}", "add texts")
    context = AuditContext(model, examples, train, seed)
    results = {}
    with show_progress("Auditing", len(names), shown=progress is not False) as on_check:
        for name in names:
            on_check.note(name)
            results[name] = CHECKS[name].run(context)
            on_check(1)
    return Audit(model.name, data_facts(context), results)


def _examples(
    model: Rationalizer | AuditedModel,
    texts: Iterable[Any],
    labels: Iterable[Any] | None = None,
    annotations: Iterable[Any] | None = None,
) -> Sequence[AnyExample]:
    texts = list(texts) if isinstance(texts, Iterator) else texts
    if isinstance(model, Rationalizer):
        examples = model.examples(texts, annotations)
        classes: Sequence[Any] | None = RationalizerAdapter(model).classes
    else:
        examples = make_examples(texts, None, annotations, pairs=model.pairs, rule="words")
        classes = model.classes
    if labels is None:
        return examples
    values = list(labels)
    if len(values) != len(examples):
        raise DataError(
            f"{count_of(len(examples), 'text')}, but {count_of(len(values), 'label')}", "give one label per text"
        )
    codes = [_code(value, classes, row) for row, value in enumerate(values, 1)]
    return [replace(example, label=code) for example, code in zip(examples, codes, strict=True)]


def _code(value: Any, classes: Sequence[Any] | None, row: int) -> int | float:
    if classes is None:
        return float(value)
    for code, name in enumerate(classes):
        if name == value or str(name) == str(value):
            return code
    known = ", ".join(map(str, classes))
    raise DataError(
        f"the label {value!r} is not a class of the model", f"its classes are {known}", path="labels", row=row
    )
