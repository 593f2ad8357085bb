"""The record of one decision: which model read which words of which text, and what it predicted."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from rationalizer.data.safe_json import parse_json
from rationalizer.models.atomic_files import write_bytes
from rationalizer.models.json_schema import find_mismatch
from rationalizer.text.errors import InputError

FORMAT = 1  # of records; a record of another format is refused
REMEDY = "give a record as explain(..., record=True) makes it"

_WORD = {"index": int, "start": int, "end": int, "word": str}
_TEXT = {
    "sha256": str,
    "characters": int,
    "tokens": int,
    "words": int,
    "offsets?": [[int]],
    "sentence_lengths?": [int],
    "text?": str,
}
_MACHINE = {"settings": {str: str}} | dict.fromkeys(
    ("system", "processor", "instructions", "libraries", "device", "dtype"), str
)
_SCHEMA = {
    "format": int,
    "time": str,
    "model": str,
    "texts": [_TEXT],
    "word_splitting": str,
    "budget": (str, None),
    "budget_words": (int, None),
    "constraints": [(str, dict)],
    "rationale?": [{**_WORD, "weight": float}],
    "alignment?": [{"premise": _WORD, "hypothesis": _WORD, "weight": float}],
    "faithful": bool,
    "label": (str, float),
    "probabilities": ({str: float}, None),
    "versions": {str: str},
    "machine": _MACHINE,
    "signature?": {"algorithm": str, "public_key": str, "value": str},
}
_SHA256 = re.compile("[0-9a-f]{64}")


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class RecordedText:
    """A text of a decision record."""

    sha256: str  # of the text in UTF-8
    characters: int
    tokens: int  # words and punctuation
    words: int  # tokens that count towards the budget
    offsets: tuple[tuple[int, int], ...] | None = None  # of the tokens, if the user had split the text
    sentence_lengths: tuple[int, ...] | None = None  # in tokens, if the user gave the sentences
    text: str | None = None  # the text itself, if the record was asked to contain it


@dataclass(frozen=True)
class RecordedWord:
    """A token of a text: `text[start:end]`."""

    index: int
    start: int
    end: int
    word: str
    weight: float | None = None  # the factor of the word in the predictor; None in a link, which has its own


@dataclass(frozen=True)
class RecordedLink:
    """A word of the premise and the word of the hypothesis that is aligned with it."""

    premise: RecordedWord
    hypothesis: RecordedWord
    weight: float


@dataclass(frozen=True)
class Signature:
    """A signature over a record's `signed_bytes`."""

    algorithm: str
    public_key: str  # in base64; tells which key to check with, and proves nothing by itself
    value: str  # in base64


@dataclass(frozen=True)
class DecisionRecord:
    """A decision of a model, in enough detail to repeat it bit for bit.

    `Rationalizer.explain(..., record=True)` makes it, `rationalizer.verify` repeats it. Numbers are stored exactly: the
    JSON form of a probability is read as the same bits.
    """

    format: int
    time: str  # of the decision, UTC, in ISO 8601
    model: str  # the hash of the model, see `records.model_hash`
    texts: tuple[RecordedText, ...]  # one text, or premise and hypothesis
    word_splitting: str  # the rule that splits texts into words
    budget: str | None  # such as "20%" or "5"; None if the method does not follow a budget
    budget_words: int | None  # the largest number of words, or links, under this budget
    constraints: tuple[str | Mapping[str, Any], ...]  # in their text form; in their JSON form if it says more
    rationale: tuple[RecordedWord, ...] | None  # the selected words; None for pairs
    alignment: tuple[RecordedLink, ...] | None  # the aligned words; None for single texts
    faithful: bool  # whether the prediction depends on the text, or the premise, only through them
    label: str | float  # the name of the predicted class, or the predicted value
    probabilities: Mapping[str, float] | None  # by name of the class; None for regression
    versions: Mapping[str, str]  # of the packages that computed the prediction
    machine: Mapping[str, Any]  # other facts that can change the last bits
    signature: Signature | None = None  # see `records.sign`

    @property
    def pairs(self) -> bool:
        """Whether it is a decision about a pair of texts."""
        return len(self.texts) == 2

    def to_dict(self) -> dict[str, Any]:
        """All fields that are set as plain values for JSON."""
        optional = {"rationale", "alignment", "signature"}
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {key: _plain(value) for key, value in values.items() if not (value is None and key in optional)}

    def to_json(self) -> str:
        """The record as one line of JSON, in ASCII."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write the record as a JSON file."""
        write_bytes(Path(path), f"{self.to_json()}\n".encode("ascii"))

    def signed_bytes(self) -> bytes:
        """What a signature is computed over: all other fields as JSON with sorted keys and without spaces."""
        content = {key: value for key, value in self.to_dict().items() if key != "signature"}
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a record from its JSON form; `InputError` says what is wrong with it."""
        return cls.from_dict(parse_json(text, REMEDY))

    @classmethod
    def from_dict(cls, stored: Any) -> Self:
        """Make a record from the result of `to_dict`; `InputError` says what is wrong with it."""
        number = stored.get("format") if isinstance(stored, dict) else None
        if type(number) is int and number != FORMAT:
            raise InputError(
                f"the decision record has format {number}, but this version reads format {FORMAT}",
                "use the version of rationalizer that wrote it",
            )
        if problem := find_mismatch(stored, _SCHEMA) or _find_contradiction(stored):
            raise InputError(f"not a decision record: {problem}", REMEDY)
        rationale, alignment, signature = map(stored.get, ("rationale", "alignment", "signature"))
        made: dict[str, Any] = {
            "texts": tuple(map(_text, stored["texts"])),
            "constraints": tuple(stored["constraints"]),
            "rationale": None if rationale is None else tuple(map(_word, rationale)),
            "alignment": None if alignment is None else tuple(map(_link, alignment)),
            "signature": None if signature is None else Signature(**signature),
            "label": stored["label"] if isinstance(stored["label"], str) else float(stored["label"]),
        }
        if stored["probabilities"] is not None:
            made["probabilities"] = {name: float(value) for name, value in stored["probabilities"].items()}
        return cls(**{**stored, **made})


def _find_contradiction(stored: Mapping[str, Any]) -> str | None:
    """Describe what a schema cannot see: the wrong number of texts, no hash, no time; None if there is nothing."""
    count = len(stored["texts"])
    if count not in (1, 2):
        return f"texts has {count} entries, not 1 or 2"
    present, absent = ("rationale", "alignment") if count == 1 else ("alignment", "rationale")
    if present not in stored or absent in stored:
        return f"{present} is missing" if present not in stored else f"{absent} is not known for {count} texts"
    if (stored["probabilities"] is None) != (not isinstance(stored["label"], str)):
        return "probabilities belong to the name of a class, and not to a value"
    for name, value in (("model", stored["model"]), *(("texts.sha256", text["sha256"]) for text in stored["texts"])):
        if not _SHA256.fullmatch(value):
            return f"{name} is {value[:70]!r}, not 64 hexadecimal digits"
    for text in stored["texts"]:
        spans = text.get("offsets", [])
        if any(len(span) != 2 or not 0 <= span[0] <= span[1] <= text["characters"] for span in spans):
            return "texts.offsets has a span outside the text"
    try:
        is_utc = datetime.fromisoformat(stored["time"]).tzinfo is not None
    except ValueError:
        is_utc = False
    return None if is_utc else f"time is {stored['time'][:40]!r}, not a time in ISO 8601 with its zone"


def _text(stored: Mapping[str, Any]) -> RecordedText:
    offsets, lengths = stored.get("offsets"), stored.get("sentence_lengths")
    own: dict[str, Any] = {
        "offsets": None if offsets is None else tuple((start, end) for start, end in offsets),
        "sentence_lengths": None if lengths is None else tuple(lengths),
    }
    return RecordedText(**{**stored, **own})


def _word(stored: Mapping[str, Any]) -> RecordedWord:
    return RecordedWord(**{**stored, "weight": float(stored["weight"])} if "weight" in stored else stored)


def _link(stored: Mapping[str, Any]) -> RecordedLink:
    return RecordedLink(_word(stored["premise"]), _word(stored["hypothesis"]), float(stored["weight"]))


def _plain(value: Any) -> Any:
    """Tuples as lists, and the parts of a record as objects without the fields that are not set."""
    if isinstance(value, RecordedText | RecordedWord | RecordedLink | Signature):
        values = {item.name: getattr(value, item.name) for item in fields(value)}
        return {key: _plain(item) for key, item in values.items() if item is not None}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value
