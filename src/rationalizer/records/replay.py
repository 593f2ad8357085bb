"""Repeat recorded decisions, and compare every word and every bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from rationalizer.constraints import ConstraintConflict, parse_constraints
from rationalizer.hub import locate
from rationalizer.models.devices import check_device
from rationalizer.models.trained_model import TrainedModel
from rationalizer.records.decision_record import DecisionRecord, RecordedText, text_hash
from rationalizer.records.recorder import Recorder
from rationalizer.records.signing import find_signature_problem
from rationalizer.text import AnyExample, Example, PairExample
from rationalizer.text.errors import InputError

# The largest difference of a probability between two processors, devices or versions of a package; of a value of a
# regression relative to max(1, |value|). Two roundings differ by some 1e-7.
TOLERANCE = 1e-5

Verdict = Literal["identical", "within-tolerance", "failed"]


class HasTrainedModel(Protocol):
    """A `Rationalizer`."""

    @property
    def trained(self) -> TrainedModel: ...


@dataclass(frozen=True)
class Verification:
    """The result of a replay."""

    verdict: Verdict
    problems: tuple[str, ...] = ()  # why it failed, as clauses
    difference: float = 0.0  # the largest difference of a probability or value
    other_facts: tuple[str, ...] = ()  # versions and facts of the machine that are not those of the record

    def __bool__(self) -> bool:
        """Whether the decision was reproduced."""
        return self.verdict != "failed"

    def __str__(self) -> str:
        if self.verdict == "identical":
            return "identical: the same words, the same label, the same bits"
        elsewhere = f" (recorded with another {', '.join(self.other_facts)})" if self.other_facts else ""
        if self.verdict == "within-tolerance":
            return (
                f"the same words and label, probabilities within {TOLERANCE:g} (largest difference "
                f"{self.difference:.1e}), not the same bits{elsewhere}"
            )
        return f"failed: {'; '.join(self.problems)}{elsewhere}"


def verify(
    record: DecisionRecord | str | Path,
    model: HasTrainedModel | TrainedModel | str | Path,
    text: str | Sequence[str] | None = None,
    *,
    public_key: Any = None,
) -> Verification:
    """Repeat a recorded decision and compare it with the record.

    A decision is reproduced if the same model reads the same words and predicts the same label with the same bits. On
    another processor or device, or with other versions of the packages, the words and the label must be the same, and
    each probability may differ by 1e-5.

    Args:
        record: a record, or the path of its JSON file.
        model: a `Rationalizer`, or where to find one: a folder, the name of a starter model, "org/name" of the Hub.
        text: the text, or (premise, hypothesis), unless the record contains it.
        public_key: the key whose signature the record must have: the path of a PEM file, or an Ed25519 public key.

    Raises:
        InputError: if the text is missing or is not the recorded one, or the record is malformed.
    """
    if not isinstance(record, DecisionRecord):
        record = DecisionRecord.from_json(Path(record).read_bytes())
    return Verifier(model, public_key=public_key).verify(record, text)


class Verifier:
    """Repeats decisions of one model; its hash is computed once.

    Args:
        model, public_key: as for `verify`.
        device: where a model that is given by name or folder runs.
    """

    def __init__(
        self, model: HasTrainedModel | TrainedModel | str | Path, *, public_key: Any = None, device: str = "cpu"
    ) -> None:
        if isinstance(model, str | Path):
            model = TrainedModel.load(locate(model), check_device(device))
        self.trained = model if isinstance(model, TrainedModel) else model.trained
        self.public_key = public_key

    @cached_property
    def _recorder(self) -> Recorder:
        return Recorder(self.trained)

    def verify(self, record: DecisionRecord, text: str | Sequence[str] | None = None) -> Verification:
        """Repeat one decision; see the function `verify`."""
        texts = _find_texts(record, text)
        if self.public_key is not None and (problem := find_signature_problem(record, self.public_key)):
            return Verification("failed", (problem,))
        if record.model != self._recorder.hash:
            problem = f"another model made the decision: its hash is {record.model}, this one's {self._recorder.hash}"
            return Verification("failed", (problem,))
        budget = None if record.budget is None else self.trained.with_budget(record.budget).config.budget
        constraints = parse_constraints(record.constraints)
        example = _restore_example(record, texts, self.trained)
        try:
            _, (again,) = self._recorder.predict([example], budget=budget, constraints=constraints)
        except ConstraintConflict as error:
            return Verification("failed", (f"the recorded constraints cannot be satisfied: {error.problem}",))
        return _compare(record, again)


def _find_texts(record: DecisionRecord, given: str | Sequence[str] | None) -> list[str]:
    """Return the texts of a decision, given or recorded; `InputError` if they are missing or have another hash."""
    parts: list[str | None] = [each.text for each in record.texts] if given is None else []
    if given is not None:
        parts = [given] if isinstance(given, str) else list(given)
        if len(parts) != len(record.texts):
            expected = "a premise and a hypothesis" if record.pairs else "one text"
            raise InputError(f"the record is about {expected}, got {len(parts)} texts", f"give {expected}")
    found = []
    for number, (part, stored) in enumerate(zip(parts, record.texts, strict=True)):
        name = ("premise", "hypothesis")[number] if record.pairs else "text"
        if part is None:
            raise InputError(f"the record does not contain the {name}", "give the text that was explained, too")
        if (found_hash := text_hash(part)) != stored.sha256:
            problem = f"this is not the recorded {name}: its SHA-256 is {found_hash}, the record has {stored.sha256}"
            raise InputError(problem, "give exactly the text that was explained, with its white space")
        found.append(part)
    return found


def _restore_example(record: DecisionRecord, texts: Sequence[str], trained: TrainedModel) -> AnyExample:
    if record.pairs != trained.pairs:
        raise InputError(f"the record is about {'a pair of texts' if record.pairs else 'one text'}", "it was edited")
    parts = [_restore_text(*each, trained) for each in zip(texts, record.texts, strict=True)]
    return PairExample(parts[0], parts[1]) if record.pairs else parts[0]


def _restore_text(text: str, stored: RecordedText, trained: TrainedModel) -> Example:
    tokens, offsets = trained.encoder.split_words(text)
    if stored.offsets is not None:
        if any(end > len(text) for _, end in stored.offsets):
            raise InputError("the record has the offsets of a longer text", "it was edited; use the original record")
        offsets = stored.offsets
        tokens = tuple(text[start:end] for start, end in offsets)
    if not tokens:
        raise InputError("the recorded text has no word", "it was edited; use the original record")
    return Example(text, tokens, offsets, sentence_lengths=stored.sentence_lengths)


_EXACT = ("word_splitting", "budget", "budget_words", "faithful", "label")


def _compare(record: DecisionRecord, again: DecisionRecord) -> Verification:
    other_facts = tuple(_other_facts(record, again))
    problems = list(_differences(record, again))
    before, after = _numbers(record), _numbers(again)
    comparable = before.keys() == after.keys()
    gaps = [abs(before[key] - after[key]) / max(1.0, abs(before[key])) for key in before if comparable]
    difference = max(gaps, default=0.0)
    if not problems and not comparable:
        problems.append("the record has other classes than the model")
    if not problems and before != after:
        if other_facts and difference <= TOLERANCE:
            return Verification("within-tolerance", (), difference, other_facts)
        where = "" if other_facts else ", though versions and machine are the same"
        problems.append(f"probabilities, values or weights differ by up to {difference:.1e}{where}")
    if problems:
        return Verification("failed", tuple(problems), difference, other_facts)
    return Verification("identical", (), 0.0, other_facts)


def _differences(record: DecisionRecord, again: DecisionRecord) -> Iterator[str]:
    """Describe what must be the same on every machine: everything but the last bits of numbers."""
    if isinstance(record.label, float) and isinstance(again.label, float):
        names: tuple[str, ...] = _EXACT[:-1]  # the value is compared with a tolerance
    else:
        names = _EXACT
    for name in names:
        if (before := getattr(record, name)) != (after := getattr(again, name)):
            yield f"{name.replace('_', ' ')} is {after!r}, the record has {before!r}"
    for name in ("characters", "tokens", "words"):
        before, after = ([getattr(text, name) for text in each.texts] for each in (record, again))
        if before != after:
            yield f"number of {name} is {after}, the record has {before}"
    if (before := _places(record)) != (after := _places(again)):
        yield f"other words: {_shown(after)}, the record has {_shown(before)}"


def _places(record: DecisionRecord) -> list[tuple[Any, ...]]:
    """The selected words and where they are, without their weights."""
    words = [(word,) for word in record.rationale or ()]
    links = [(link.premise, link.hypothesis) for link in record.alignment or ()]
    return [tuple((word.index, word.start, word.end, word.word) for word in each) for each in (*words, *links)]


def _shown(places: list[tuple[Any, ...]], most: int = 20) -> str:
    words = ["-".join(word for *_, word in each) for each in places[:most]]
    return (" ".join(words) or "none") + (" ..." if len(places) > most else "")


def _numbers(record: DecisionRecord) -> dict[str, float]:
    """The numbers whose last bits may depend on the machine."""
    weights = [word.weight or 0.0 for word in record.rationale or ()] + [link.weight for link in record.alignment or ()]
    numbers = {f"weight {number}": weight for number, weight in enumerate(weights)}
    if record.probabilities is not None:
        numbers |= {f"class {name}": value for name, value in record.probabilities.items()}
    if isinstance(record.label, float):
        numbers["value"] = record.label
    return numbers


def _other_facts(record: DecisionRecord, again: DecisionRecord) -> Iterator[str]:
    """Name the facts that differ, such as "torch 2.9.0 (here 2.10.0)"."""
    for before, after in ((record.versions, again.versions), (record.machine, again.machine)):
        for name in {**before, **after}:
            if before.get(name) != after.get(name):
                yield f"{name} {_fact(before.get(name))} (here {_fact(after.get(name))})"


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={item}" for key, item in value.items()) or "none"
    return "none" if value is None else str(value)
