"""Predictions with their rationales: words of one text, or word pairs of two."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from rationalizer.drawing.selected_words import AlignedWords, Label, SelectedWord, aligned_words, selected_word
from rationalizer.text import is_punctuation

Picture = Literal["lines", "heatmap"]  # how alignments are drawn
MAX_DRAWN = 50  # explanations of a list


class _Drawable:
    """Drawing methods; see `rationalizer.drawing` for more."""

    def to_html(self, *, truth: Label | None = None, style: Picture = "lines") -> str:
        """Draw an HTML fragment with its style."""
        from rationalizer.drawing.html import to_html

        return to_html(self, truth=truth, style=style)  # type: ignore[arg-type]

    def to_svg(self, *, truth: Label | None = None, width: int = 720, style: Picture = "lines") -> str:
        """Draw an SVG document."""
        from rationalizer.drawing.svg import to_svg

        return to_svg(self, truth=truth, width=width, style=style)  # type: ignore[arg-type]

    def to_png(
        self, *, truth: Label | None = None, width: int = 720, style: Picture = "lines", scale: float = 2.0
    ) -> bytes:
        """Draw a PNG file, for slides and documents (extra `png`); `scale` is the number of pixels per unit."""
        from rationalizer.drawing.png import to_png

        return to_png(self, truth=truth, width=width, style=style, scale=scale)  # type: ignore[arg-type]

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        from rationalizer.drawing.terminal import to_terminal

        return to_terminal(self, colour=False)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values for JSON. Labels that share one rationale have no words of their own."""
        names = (item.name for item in fields(self))  # type: ignore[arg-type]
        values = {name: getattr(self, name) for name in (*names, "readable")}
        if values["probabilities"] is not None:
            values["probabilities"] = {str(label): p for label, p in values["probabilities"].items()}
        values["words"] = [word.to_dict() for word in values["words"]]
        if "labels" in values:
            values["labels"] = [one.to_dict() for one in values["labels"]]
            if isinstance(self, Explanation) and not self.has_label_rationales:
                for one in values["labels"]:  # hundreds of labels would repeat what all share
                    del one["mask"], one["selected"], one["spans"]
        if (record := values.pop("record")) is not None:
            values["record"] = record.to_dict()
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


@dataclass(frozen=True)
class LabelExplanation:
    """One of several labels or targets, or one class: its prediction, and the words from which alone it was predicted,
    if it has a rationale of its own."""

    name: Label
    value: Label  # of a label whether the text has it (True or False), else the predicted class or value
    probability: float | None  # of the label, or of the class; None for values
    mask: tuple[float, ...]
    selected: tuple[bool, ...]
    spans: tuple[tuple[int, int], ...]
    annotation: tuple[bool, ...] | None = None
    probabilities: dict[Label, float] | None = None  # of the classes of a target
    threshold: float | None = None  # the probability from which a text has the label

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Explanation(_Drawable):
    """A prediction and its rationale: the words that the predictor read. Token k is `text[slice(*offsets[k])]`."""

    text: str
    # The predicted class, or value; of several labels a tuple of those that the text has, of several targets their
    # values by name.
    label: Any
    probabilities: dict[Label, float] | None  # class or label -> probability; None for values
    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    mask: tuple[float, ...]  # the factor of each token in the predictor; 0: not visible
    selected: tuple[bool, ...]  # the rationale as one flag per token
    spans: tuple[tuple[int, int], ...]  # character offsets of the runs of selected tokens
    annotation: tuple[bool, ...] | None = None  # the words that people marked, if known
    unknown: tuple[bool, ...] = ()  # words that are not in the model's vocabulary
    counted: tuple[bool, ...] = ()  # whether a token counts towards the budget: known words do, punctuation does not
    words: tuple[SelectedWord, ...] = ()  # the selected words, without punctuation, the largest weights first
    warnings: tuple[str, ...] = ()  # what to know before the prediction is trusted, as sentences
    record: Any = None  # the `records.DecisionRecord`, if explain was asked for it
    labels: tuple[
        LabelExplanation, ...
    ] = ()  # each label, target or class; `selected` is the union of their rationales
    separate: bool = False  # whether each of `labels` has a rationale of its own

    def __post_init__(self) -> None:
        _fill(self, "unknown", False, len(self.tokens))
        _fill(self, "counted", True, len(self.tokens))
        if not self.words:
            chosen = [k for k, flags in enumerate(zip(self.selected, self.counted, strict=True)) if all(flags)]
            words = tuple(selected_word(self.tokens, self.offsets, k) for k in chosen)
            object.__setattr__(self, "words", words)

    @property
    def rationale(self) -> str:
        """The selected words as they stand in the text, with " ... " between spans."""
        return " ... ".join(self.text[start:end] for start, end in self.spans)

    def rationale_of(self, name: Label) -> str:
        """The words selected for one of `labels`, as they stand in the text."""
        found = next((one for one in self.labels if one.name == name), None)
        if found is None:
            known = ", ".join(str(one.name) for one in self.labels) or "no rationale for single labels"
            raise KeyError(f"there is no label {name!r}; the explanation has {known}")
        return " ... ".join(self.text[start:end] for start, end in found.spans)

    @property
    def has_label_rationales(self) -> bool:
        """Whether labels, targets or classes have words of their own."""
        return bool(self.labels) and (self.separate or any(one.selected != self.selected for one in self.labels))

    @property
    def readable(self) -> bool:
        """Whether the model knows any of the words; if not, its prediction is a guess."""
        return _any_known(self.tokens, self.unknown)

    @property
    def selected_word_count(self) -> int:
        """The number of selected words, without punctuation."""
        return sum(chosen and word for chosen, word in zip(self.selected, self.counted, strict=True))

    @property
    def word_count(self) -> int:
        """The number of words that can be selected, without punctuation."""
        return sum(self.counted)

    def to_dict(self) -> dict[str, Any]:
        """All fields and the rationale as plain values for JSON."""
        return {**super().to_dict(), "rationale": self.rationale}


@dataclass(frozen=True, eq=False)
class PairExplanation(_Drawable):
    """A prediction for two texts and its word alignment.

    Word i of the premise is `premise[slice(*premise_offsets[i])]`, likewise for the hypothesis.
    """

    premise: str
    hypothesis: str
    label: Label
    probabilities: dict[Label, float] | None
    premise_tokens: tuple[str, ...]
    premise_offsets: tuple[tuple[int, int], ...]
    hypothesis_tokens: tuple[str, ...]
    hypothesis_offsets: tuple[tuple[int, int], ...]
    alignment: NDArray[np.float32]  # (premise words, hypothesis words) weights; 0: not aligned
    pairs: tuple[tuple[int, int], ...]  # indices of aligned words: (premise word, hypothesis word)
    faithful: bool = True  # whether the prediction depends on the premise only through the alignment
    annotation: tuple[tuple[int, int], ...] | None = None  # the word pairs that people aligned, if known
    premise_unknown: tuple[bool, ...] = ()  # words that are not in the model's vocabulary
    hypothesis_unknown: tuple[bool, ...] = ()
    words: tuple[AlignedWords, ...] = ()  # the aligned words, the largest weights first
    warnings: tuple[str, ...] = ()  # what to know before the prediction is trusted, as sentences
    record: Any = None  # the `records.DecisionRecord`, if explain was asked for it

    def __post_init__(self) -> None:
        _fill(self, "premise_unknown", False, len(self.premise_tokens))
        _fill(self, "hypothesis_unknown", False, len(self.hypothesis_tokens))
        if not self.words:
            tokens = (self.premise_tokens, self.hypothesis_tokens)
            offsets = (self.premise_offsets, self.hypothesis_offsets)
            object.__setattr__(self, "words", tuple(aligned_words(tokens, offsets, pair) for pair in self.pairs))

    @property
    def readable(self) -> bool:
        """Whether the model knows any word of each text; if not, its prediction is a guess."""
        sides = ((self.premise_tokens, self.premise_unknown), (self.hypothesis_tokens, self.hypothesis_unknown))
        return all(_any_known(*side) for side in sides)


AnyExplanation = Explanation | PairExplanation


class Explanations(list[AnyExplanation]):
    """A list of explanations that notebooks draw. Slices are of the same type."""

    def to_html(self, *, most: int = MAX_DRAWN) -> str:
        """Draw an HTML fragment with its style: the first `most` explanations, and the number of the others."""
        from rationalizer.drawing.html import to_html_list

        return to_html_list(self[:most], left_out=max(0, len(self) - most))

    def _repr_html_(self) -> str:
        return self.to_html()

    @overload
    def __getitem__(self, index: SupportsIndex) -> AnyExplanation: ...
    @overload
    def __getitem__(self, index: slice) -> Explanations: ...
    def __getitem__(self, index: SupportsIndex | slice) -> AnyExplanation | Explanations:
        item = super().__getitem__(index)
        return Explanations(item) if isinstance(item, list) else item


def _any_known(tokens: tuple[str, ...], unknown: tuple[bool, ...]) -> bool:
    return any(not flag and not is_punctuation(token) for token, flag in zip(tokens, unknown, strict=True))


def _fill(explanation: AnyExplanation, name: str, value: bool, length: int) -> None:
    """Set a field that was left empty to one flag per token."""
    if not getattr(explanation, name):
        object.__setattr__(explanation, name, (value,) * length)
