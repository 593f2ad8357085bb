"""What the annotation page shows and saves: texts, a model's suggestions, people's annotations, their agreement."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from rationalizer.data import make_examples
from rationalizer.data.annotation_file import AnnotationFile, Row, is_number, text_id, text_row
from rationalizer.data.single_examples import example_from_known_row
from rationalizer.drawing import AnyExplanation, PairExplanation
from rationalizer.metrics.annotators import agreement_of_pair
from rationalizer.model import Rationalizer
from rationalizer.text import AnyExample, PairExample, SplitRule, is_punctuation
from rationalizer.text.errors import DataError, InputError, short_repr

LONGEST_NAME = 60  # characters of a person's name
MODEL = "the model"
AT_ONCE = 64  # texts that the model explains while others wait
CACHED = 50_000  # texts, after which those that are not in the file are forgotten


class AnnotationTask:
    """The annotation of the texts of a file.

    Args:
        file: where annotations are written.
        order: ids of its texts in the order in which they are offered; by default the order of the file.
        model: suggests labels and words, and is compared with people.
        people: how many people annotate each text.
    """

    def __init__(
        self, file: AnnotationFile, *, order: Sequence[str] = (), model: Rationalizer | None = None, people: int = 1
    ) -> None:
        self.file, self.model, self.people = file, model, people
        self._order = list(order)
        self._model_lock = Lock()
        self._examples: dict[str, AnyExample] = {}
        self._explained: dict[str, AnyExplanation] = {}
        self._marked: dict[tuple[str, str], tuple[Row, frozenset[Any]]] = {}  # (text, person) -> line, its words

    @property
    def rule(self) -> SplitRule:
        return self.model.trained.encoder.rule if self.model else self.file.content.header["rule"]

    def describe(self) -> Row:
        """The task: classes, number of texts, and each person's progress."""
        self.file.refresh()
        content = self.file.content
        times: dict[str, list[float]] = {}
        for annotated in content.people.values():
            for person, row in annotated.items():
                times.setdefault(person, []).append(row.get("seconds", 0.0))
        progress = {name: {"texts": len(own), "seconds": sum(own) / len(own)} for name, own in times.items()}
        facts = {key: content.header[key] for key in ("classes", "pairs", "multi", "task")}
        facts |= {"name": self.file.path.name, "texts": len(content.by_id), "needed": self.people}
        return {**facts, "people": progress, "never": content.never}

    def queue(self, person: str) -> Row:
        """The ids of the texts left to a person, and of those done, the latest last."""
        self.file.refresh()
        content = self.file.content
        done = sorted((rows[person].get("time", ""), text) for text, rows in content.people.items() if person in rows)
        todo = [
            text
            for text in dict.fromkeys((*self._order, *content.by_id))
            if len(own := content.people.get(text, {})) < self.people and person not in own and text in content.by_id
        ]
        return {"todo": todo, "done": [text for _, text in done]}

    def text(self, key: str, person: str) -> Row:
        """A text with its words, what the data and the model say about it, and the person's annotation."""
        self.file.refresh()
        row = self.file.content.by_id.get(key)
        if row is None:
            raise InputError(f"there is no text {key[:40]!r}", "reload the page")
        own = self.file.content.people.get(key, {})
        shown = self._draw(key, self._example(key))
        return {**shown, "given": row.get("label"), "own": own.get(person), "others": len(own.keys() - {person})}

    def draw(self, texts: Sequence[str], person: str) -> Row:
        """A text that may not be in the file, as `text` returns it."""
        key = text_id(texts)
        self.file.refresh()
        if key in self.file.content.by_id:
            return self.text(key, person)
        (example,) = make_examples(
            [texts[0] if len(texts) == 1 else tuple(texts)], pairs=len(texts) > 1, rule=self.rule
        )
        if len(texts) != 1 + self.file.content.header["pairs"]:
            raise InputError("the file holds the other kind of texts", "open a file of the same kind")
        if len(self._examples) > CACHED:
            self._examples.clear()
            self._explained.clear()
        self._examples[key] = example
        return {**self._draw(key, example), "given": None, "own": None, "others": 0}

    def save(self, key: str, person: str, annotation: Row) -> None:
        """Write a person's annotation of a text; it is on disk when this returns."""
        person = _check_name(person)
        if key not in self.file.content.by_id:
            if key not in self._examples:
                raise InputError(f"there is no text {key[:40]!r}", "reload the page")
            self.file.add_text(text_row(self._examples[key]))
        row = {
            "id": key,
            "annotator": person,
            **annotation,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        self._check(row)
        if removed := self._removed_words(key, person, row):
            row["removed_words"] = removed
        self.file.append(row)

    def save_never(self, person: str, words: Sequence[str]) -> None:
        """Write the words that a person says must never count."""
        if spaced := [word for word in words if word.split() != [word]]:
            raise InputError(f"{spaced[0][:40]!r} is not one word", "mark single words")
        self.file.append({"annotator": _check_name(person), "never": list(dict.fromkeys(words))})

    def agreement(self) -> list[Row]:
        """For each two people, and the model and each person, how far they agree on the texts that both annotated."""
        self.file.refresh()
        marks: dict[str, dict[str, frozenset[Any]]] = {}
        labels: dict[str, dict[str, Any]] = {}
        annotated = {
            key: {person: row for person, row in rows.items() if not row.get("not_enough")}
            for key, rows in list(self.file.content.people.items())
        }
        compared = {key: rows for key, rows in annotated.items() if len(rows) > (self.model is None)}
        for key, rows in compared.items():
            for person, row in rows.items():
                marks.setdefault(person, {})[key] = self._words_of(key, person, row)
                labels.setdefault(person, {})[key] = row.get("label")
        if self.model is not None:
            for key, found in zip(compared, self._explain(list(compared)), strict=True):
                marks.setdefault(MODEL, {})[key] = _rationale(found)
                labels.setdefault(MODEL, {})[key] = found.label
        names = sorted(marks, key=lambda name: (name != MODEL, name))
        pairs = [(first, second) for k, first in enumerate(names) for second in names[k + 1 :]]
        results = (
            (pair, agreement_of_pair(*(marks[name] for name in pair), *(labels[n] for n in pair))) for pair in pairs
        )
        return [{"people": pair, **vars(found)} for pair, found in results if found.texts]

    def _check(self, row: Row) -> None:
        """Raise InputError if the annotation does not fit its text."""
        header, label = self.file.content.header, row.get("label")
        chosen = label if isinstance(label, list) else [] if label is None else [label]
        unknown = [name for name in chosen if header["classes"] and str(name) not in header["classes"]]
        if unknown:
            raise InputError(f"the label {unknown[0]!r} is unknown", f"choose from {', '.join(header['classes'])}")
        if isinstance(label, list) and not header["multi"]:
            raise InputError("a text has one label", "choose one")
        if header["task"] == "regression" and label is not None and not is_number(label):
            raise InputError(f"the label {short_repr(label)} is not a number", "enter a number")
        example = self._example(row["id"])
        spans, links = row.get("rationale_chars", []), row.get("alignment", [])
        if isinstance(example, PairExample):
            m, n = example.shape
            fits = not spans and all(0 <= i < m and 0 <= j < n for i, j in links)
        else:
            fits = not links and all(0 <= start < end <= len(example.text) for start, end in spans)
        if not fits:
            raise InputError("the marked words are not in the text", "reload the page")

    def _example(self, key: str) -> AnyExample:
        if key not in self._examples:
            self._examples[key] = example_from_known_row(self.file.content.by_id[key], None, self.rule)
        return self._examples[key]

    def _removed_words(self, key: str, person: str, row: Row) -> list[str]:
        """The words that the model selected and the person unmarked, now or when saving the text earlier."""
        example = self._example(key)
        if isinstance(example, PairExample) or row.get("not_enough"):
            return []
        earlier = self.file.content.people.get(key, {}).get(person, {}).get("removed_words", ())
        suggested = _rationale(self._explain([key])[0]) if self.model else ()
        kept = {example.tokens[k] for k in _marked(row, example)}
        return sorted({*earlier, *(example.tokens[k] for k in suggested)} - kept)

    def _words_of(self, key: str, person: str, row: Row) -> frozenset[Any]:
        """The words, or links, that a person marked."""
        line, words = self._marked.get((key, person), (None, frozenset()))
        if line is not row:
            words = _marked(row, self._example(key))
            self._marked[key, person] = row, words
        return words

    def _explain(self, keys: Sequence[str]) -> list[AnyExplanation]:
        assert self.model is not None
        found = {key: self._explained[key] for key in keys if key in self._explained}
        missing = [key for key in keys if key not in found]
        for start in range(0, len(missing), AT_ONCE):
            some = missing[start : start + AT_ONCE]
            with self._model_lock:  # others get their turn in between
                found |= zip(some, self.model.explain_examples([self._example(key) for key in some]), strict=True)
        self._explained |= found
        return [found[key] for key in keys]

    def _draw(self, key: str, example: AnyExample) -> Row:
        parts = []
        for part in example.texts:
            counted = [bool(token.strip()) and not is_punctuation(token) for token in part.tokens]
            words = [[k, *span] for k, (span, real) in enumerate(zip(part.offsets, counted, strict=True)) if real]
            # Pages cannot show half a surrogate pair.
            parts.append({"text": part.text.encode("utf-8", "replace").decode(), "words": words})
        shown: Row = {"id": key, "parts": parts, "suggested": None}
        if isinstance(example, PairExample):
            shown["suggested"] = None if example.alignment is None else {"links": example.alignment}
        elif example.annotation is not None:
            shown["suggested"] = {"words": example.annotated}
        if self.model is not None:
            (found,) = self._explain([key])
            kind = "links" if isinstance(found, PairExplanation) else "words"
            is_one = found.probabilities is not None and not isinstance(found.label, (tuple, dict))
            probability = found.probabilities[found.label] if found.probabilities and is_one else None
            shown["model"] = {"label": found.label, "probability": probability}
            shown["suggested"] = {kind: sorted(_rationale(found))}
        return shown


def shuffled(keys: Sequence[str], seed: int = 0) -> list[str]:
    """The ids in a random order that stays the same when texts are added."""
    return sorted(keys, key=lambda key: hashlib.sha256(f"{seed} {key}".encode()).digest())


def _marked(row: Mapping[str, Any], example: AnyExample) -> frozenset[Any]:
    """The words, or links, that a person marked."""
    if isinstance(example, PairExample):
        return frozenset((i, j) for i, j in row.get("alignment", ()))
    spans = row.get("rationale_chars", ())
    words = enumerate(zip(example.tokens, example.offsets, strict=True))
    return frozenset(
        k
        for k, (token, (first, last)) in words
        if not is_punctuation(token) and any(start < last and first < end for start, end in spans)
    )


def _rationale(found: AnyExplanation) -> frozenset[Any]:
    if isinstance(found, PairExplanation):
        return frozenset(found.pairs)
    counted = zip(found.selected, found.tokens, strict=True)
    return frozenset(k for k, (selected, token) in enumerate(counted) if selected and not is_punctuation(token))


def _check_name(name: str) -> str:
    name = name.strip()
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise DataError(f"a name has 1 to {LONGEST_NAME} characters, got {name[:80]!r}", "give another name")
    return name
