"""The column names of a user's file, and whether its rows are texts or pairs of texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rationalizer.suggestions import closest, did_you_mean
from rationalizer.text.errors import DataError, InputError, short_repr

if TYPE_CHECKING:  # table_files imports this module
    from rationalizer.data.table_files import Table

LISTED = 20  # largest number of columns that an error message lists
_TEXT = ("text", "tokens")
_SIDES = (("premise", "premise_tokens"), ("hypothesis", "hypothesis_tokens"))
_RATIONALES = ("rationale_spans", "rationale_mask", "rationale_chars", "rationale_masks")
ANNOTATIONS = {
    *_RATIONALES,
    "removed_words",
    "alignment",
}  # models are scored on them, and learn from them only if `annotation_weight` is set
_OF_TEXTS = (*_TEXT, *_RATIONALES, "removed_words", "sentence_lengths")
_OF_PAIRS = (*_SIDES[0], *_SIDES[1], "alignment", "premise_chars", "hypothesis_chars", "group")


@dataclass(frozen=True)
class Columns:
    """The names of a file's columns; None for a column that should not be used.

    A file that has a premise and a hypothesis, as text or as tokens, holds pairs: `Columns(premise="question",
    hypothesis="answer")` reads pairs from two columns with other names. If it also has a text, the columns that were
    renamed decide; otherwise set `premise` or `text` to None.

    `Columns(label="food,service")` reads several labels or targets, one from each column.
    """

    text: str | None = "text"
    tokens: str | None = "tokens"
    label: str | None = "label"
    rationale_spans: str | None = "rationale_spans"
    rationale_mask: str | None = "rationale_mask"
    rationale_chars: str | None = "rationale_chars"
    rationale_masks: str | None = "rationale_masks"
    removed_words: str | None = "removed_words"
    sentence_lengths: str | None = "sentence_lengths"
    premise: str | None = "premise"
    hypothesis: str | None = "hypothesis"
    premise_tokens: str | None = "premise_tokens"
    hypothesis_tokens: str | None = "hypothesis_tokens"
    alignment: str | None = "alignment"
    premise_chars: str | None = "premise_chars"
    hypothesis_chars: str | None = "hypothesis_chars"
    group: str | None = "group"
    weight: str | None = None  # factor of a row's loss in training; used only if it is named

    @classmethod
    def from_names(cls, names: Mapping[str, str] | None) -> Columns:
        """Rename some columns: {"text": "review"}. A column with an empty name is not used."""
        known = [field.name for field in fields(cls)]
        for kind in names or {}:
            if kind not in known:
                raise InputError(f"there is no column {kind!r} to name", did_you_mean(kind, known))
        return cls(**{kind: name or None for kind, name in (names or {}).items()})

    def renamed(self) -> dict[str, str]:
        """Return what `from_names` takes: the names that are not the usual ones."""
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {kind: name or "" for kind, (name, default) in values.items() if name != default}

    def names(self) -> set[str]:
        names = {name for field in fields(self) if (name := getattr(self, field.name)) is not None}
        return names | set(self.label_columns(()))

    def label_columns(self, available: Collection[str]) -> tuple[str, ...]:
        """The columns of several labels, such as "food,service"; empty if the labels are in one column."""
        if self.label is None or "," not in self.label or self.label in available:
            return ()
        return tuple(name.strip() for name in self.label.split(","))

    def read_label(self, row: Mapping[str, Any]) -> Any:
        """The content of the label column, or that of the columns by name."""
        if names := self.label_columns(row):
            return {name: row.get(name) for name in names}
        cell = None if self.label is None else row.get(self.label)
        return None if isinstance(cell, str) and cell == "" else cell  # an empty CSV field holds nothing

    def has_label(self, available: Collection[str]) -> bool:
        names = self.label_columns(available) or (self.label,)
        return all(name in available for name in names)

    def by_kind(self) -> dict[str, str]:
        """The names that are not None, by kind: {"text": "review", "label": "stars"}."""
        return {field.name: name for field in fields(self) if (name := getattr(self, field.name)) is not None}

    def with_model_columns(self, names: Mapping[str, str], available: Collection[str]) -> Columns:
        """Replace default names by a model's names, if these columns are available."""
        usual = {field.name for field in fields(self) if getattr(self, field.name) == field.default}
        return replace(
            self,
            **{
                kind: name
                for kind, name in names.items()
                if kind in usual
                and (name in available or (kind == "label" and replace(self, label=name).has_label(available)))
            },
        )

    def without_annotations(self) -> Columns:
        """The columns of the texts alone: no labels, annotations or alignments."""
        return replace(self, **dict.fromkeys(("label", *_RATIONALES, "removed_words", "alignment", "group")))

    @property
    def are_pairs(self) -> bool:
        """Whether resolved columns are those of pairs."""
        return self.premise is not None or self.premise_tokens is not None

    @property
    def are_tokenized(self) -> bool:
        """Whether resolved columns have tokens, not only texts."""
        return self.tokens is not None or self.premise_tokens is not None

    def resolve(self, table: Table) -> Columns:
        """The columns that this file has, of texts or of pairs; DataError if a required one is missing."""
        asked = self._renamed()
        several = self.label_columns(table.columns)
        check_unique(several, table.path)
        for key, name in [("label", name) for name in several or (self.label,)] + [
            (k, getattr(self, k)) for k in asked
        ]:
            if name is not None and name not in table.columns:
                raise _missing(table, name, f"pass the {key} column's name{_option(key)}")
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found = {key: name if name in table.columns else None for key, name in found.items()}
        found["label"] = self.label if self.has_label(table.columns) else None
        others = _OF_TEXTS if self._holds_pairs(table, found, asked) else _OF_PAIRS
        if unusable := [key for key in others if key in asked]:
            kind, not_kind = ("pairs", "texts") if others is _OF_TEXTS else ("texts", "pairs")
            raise DataError(
                f"the file holds {kind}, but {unusable[0]}={getattr(self, unusable[0])!r} is a column for {not_kind}",
                "leave it out",
                path=table.path,
            )
        found |= dict.fromkeys(others)
        rationales = [name for key in _RATIONALES if (name := found[key]) is not None]
        if len(rationales) > 1:
            raise DataError(
                f"the columns {' and '.join(rationales)} both hold rationales",
                "set all but one of them to None",
                path=table.path,
            )
        return Columns(**found)

    def _renamed(self) -> list[str]:
        changed = [field.name for field in fields(self) if getattr(self, field.name) not in (field.default, None)]
        return [key for key in changed if key != "label"]

    def _holds_pairs(self, table: Table, found: dict[str, str | None], asked: list[str]) -> bool:
        sides = [next((name for key in side if (name := found[key]) is not None), None) for side in _SIDES]
        text = next((name for key in _TEXT if (name := found[key]) is not None), None)
        if None not in sides and text is not None:
            wants_pairs, wants_text = (any(key in asked for key in keys) for keys in (_SIDES[0] + _SIDES[1], _TEXT))
            if wants_pairs == wants_text:
                raise DataError(
                    f"ambiguous columns: {text} (single texts) or {sides[0]} and {sides[1]} (pairs)",
                    "set text and tokens to None to read pairs, or premise and premise_tokens to read single texts",
                    path=table.path,
                )
            return wants_pairs
        if None not in sides or text is not None:
            return text is None
        if sides != [None, None] or any(key in asked for key in _SIDES[0] + _SIDES[1]):
            lacking = _SIDES[sides.index(None)]
            name = next((name for key in lacking if (name := getattr(self, key)) is not None), lacking[0])
            raise _missing(table, name, f"pass the {lacking[0]} column's name{_option(lacking[0])}")
        wanted = self.text or self.tokens or "text"
        remedy = (
            f"pass the name of the text column, or for pairs of the premise and hypothesis columns{_option('text')}"
        )
        raise _missing(table, wanted, remedy)


def check_unique(names: Iterable[str], path: str | Path) -> None:
    """Raise DataError if a file has two columns of the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"the column {short_repr(name)} comes twice", "rename one", path=path)
        seen.add(name)


def _option(key: str) -> str:
    return f" (on the command line: --column {key}=NAME)"


def _missing(table: Table, name: str, remedy: str) -> DataError:
    close = closest(name, table.columns)
    guess = f" (did you mean {close!r}?)" if close else ""
    known = ", ".join(table.columns[:LISTED]) or "no columns at all"
    known += f" and {len(table.columns) - LISTED} others" if len(table.columns) > LISTED else ""
    header = "" if close else "; --no-header if its first line is a row"
    problem = f"there is no column {name!r}{guess}; the file has {known}"
    return DataError(problem, f"{remedy}{header}", path=table.path)
