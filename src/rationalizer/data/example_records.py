"""Convert examples, without their labels, to Arrow record batches, and read single examples from a batch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rationalizer.text.example import AnyExample, Example, LabelValue, PairExample

_SIDES = ("premise_", "hypothesis_")
# Texts are bytes, since Arrow's strings cannot hold half a surrogate pair; masks are bytes, one per token.
_TEXT_COLUMNS = {
    "text": pa.large_binary(),
    "offsets": pa.large_list(pa.int32()),
    "annotation": pa.large_binary(),
    "sentence_lengths": pa.large_list(pa.int32()),
    "annotator_masks": pa.large_list(pa.large_binary()),
    "removed": pa.large_binary(),
    "weight": pa.float64(),
    "label_annotations": pa.large_binary(),  # JSON: the indices of the annotated tokens of each label
}
_PAIR_COLUMNS = {"alignment": pa.large_list(pa.int32()), "group": pa.large_binary()}


def schema_for(example: AnyExample) -> pa.Schema:
    """Return the schema for texts, or for pairs if the example is a pair."""
    if isinstance(example, PairExample):
        sides = {f"{side}{name}": kind for side in _SIDES for name, kind in _TEXT_COLUMNS.items()}
        return pa.schema(sides | _PAIR_COLUMNS)
    return pa.schema(_TEXT_COLUMNS)


def encode(examples: Sequence[AnyExample], schema: pa.Schema) -> pa.RecordBatch:
    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    for example in examples:
        for text, side in zip(example.texts, _SIDES if len(example.texts) == 2 else ("",), strict=True):
            columns[f"{side}text"].append(_to_bytes(text.text))
            columns[f"{side}offsets"].append(list(chain.from_iterable(text.offsets)))
            columns[f"{side}annotation"].append(None if text.annotation is None else bytes(text.annotation))
            columns[f"{side}sentence_lengths"].append(text.sentence_lengths)
            masks = None if text.annotator_masks is None else list(map(bytes, text.annotator_masks))
            columns[f"{side}annotator_masks"].append(masks)
            columns[f"{side}removed"].append(None if text.removed is None else bytes(text.removed))
            columns[f"{side}weight"].append(text.weight)
            columns[f"{side}label_annotations"].append(_to_json(text.label_annotations))
        if isinstance(example, PairExample):
            links = None if example.alignment is None else list(chain.from_iterable(example.alignment))
            columns["alignment"].append(links)
            columns["group"].append(None if example.group is None else _to_bytes(example.group))
    return pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema)


class ExampleBatch:
    """Random access to the examples of a record batch. Nothing is copied or decoded but the requested row."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.is_pairs = "alignment" in batch.schema.names
        self._texts = [_TextColumns(batch, side) for side in (_SIDES if self.is_pairs else ("",))]
        if self.is_pairs:
            self._alignment, self._group = _IntegerLists(batch["alignment"]), _Binary(batch["group"])

    def decode(self, row: int, label: LabelValue) -> AnyExample:
        """Return the example in this row, with this label."""
        if not self.is_pairs:
            return self._texts[0].decode(row, label)
        premise, hypothesis = (side.decode(row, None) for side in self._texts)
        links = self._alignment[row]
        assert not isinstance(label, tuple), "pairs of texts have one label"
        return PairExample(
            premise, hypothesis, label, None if links is None else _in_pairs(links), _to_text(self._group[row])
        )


class _TextColumns:
    def __init__(self, batch: pa.RecordBatch, side: str) -> None:
        self._text = _Binary(batch[f"{side}text"])
        self._offsets = _IntegerLists(batch[f"{side}offsets"])
        self._annotation = _Binary(batch[f"{side}annotation"])
        self._sentence_lengths = _IntegerLists(batch[f"{side}sentence_lengths"])
        self._annotator_masks = batch[f"{side}annotator_masks"]
        self._removed = _Binary(batch[f"{side}removed"])
        self._weights = batch[f"{side}weight"]
        self._has_annotators = self._annotator_masks.null_count < len(batch)
        self._by_label = _Binary(batch[f"{side}label_annotations"])

    def decode(self, row: int, label: LabelValue) -> Example:
        text = _to_text(self._text[row]) or ""
        spans = _in_pairs(self._offsets[row] or [])
        annotation, removed, sentences = self._annotation[row], self._removed[row], self._sentence_lengths[row]
        annotators = self._annotator_masks[row].as_py() if self._has_annotators else None
        return Example(
            text,
            tuple([text[start:end] for start, end in spans]),
            spans,
            label,
            None if annotation is None else tuple(map(bool, annotation)),
            None if sentences is None else tuple(sentences),
            None if annotators is None else tuple(tuple(map(bool, mask)) for mask in annotators),
            weight=self._weights[row].as_py(),
            label_annotations=_from_json(_to_text(self._by_label[row]), len(spans)),
            removed=None if removed is None else tuple(map(bool, removed)),
        )


class _Column:
    """The validity and the offsets of a column of bytes or of lists."""

    def __init__(self, column: pa.Array) -> None:
        _, offsets, *_ = column.buffers()
        self._ends: NDArray[np.int64] = np.frombuffer(offsets, np.int64)[: len(column) + 1]
        self._valid = column.is_valid().to_numpy(zero_copy_only=False)

    def _range(self, row: int) -> tuple[int, int] | None:
        if not self._valid[row]:
            return None
        start, end = self._ends[row : row + 2].tolist()
        return start, end


class _Binary(_Column):
    def __init__(self, column: pa.Array) -> None:
        super().__init__(column)
        data = column.buffers()[2]
        self._data = memoryview(b"" if data is None else data)

    def __getitem__(self, row: int) -> memoryview | None:
        found = self._range(row)
        return None if found is None else self._data[slice(*found)]


class _IntegerLists(_Column):
    def __init__(self, column: pa.Array) -> None:
        super().__init__(column)
        self._values = column.values.to_numpy()

    def __getitem__(self, row: int) -> list[int] | None:
        found = self._range(row)
        return None if found is None else self._values[slice(*found)].tolist()


def _in_pairs(numbers: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _to_json(annotations: Mapping[str, tuple[bool, ...]] | None) -> bytes | None:
    if annotations is None:
        return None
    return json.dumps({name: [k for k, on in enumerate(mask) if on] for name, mask in annotations.items()}).encode()


def _from_json(content: str | None, length: int) -> dict[str, tuple[bool, ...]] | None:
    if content is None:
        return None
    marked = {name: set(indices) for name, indices in json.loads(content).items()}
    return {name: tuple(k in indices for k in range(length)) for name, indices in marked.items()}


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _to_text(content: memoryview | None) -> str | None:
    return None if content is None else str(content, "utf-8", "surrogatepass")
