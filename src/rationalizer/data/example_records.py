"""Examples as Arrow record batches, without their labels, and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any

import pyarrow as pa

from rationalizer.text.example import AnyExample, Example, PairExample

_SIDES = ("premise_", "hypothesis_")
# Texts are bytes, since Arrow's strings cannot hold half a surrogate pair; masks are bytes, one per token.
_TEXT_COLUMNS = {
    "text": pa.large_binary(),
    "offsets": pa.large_list(pa.int32()),
    "annotation": pa.large_binary(),
    "sentence_lengths": pa.large_list(pa.int32()),
    "annotator_masks": pa.large_list(pa.large_binary()),
}
_PAIR_COLUMNS = {"alignment": pa.large_list(pa.int32()), "group": pa.large_binary()}


def schema_for(example: AnyExample) -> pa.Schema:
    """The schema of texts, or of pairs."""
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
        if isinstance(example, PairExample):
            links = None if example.alignment is None else list(chain.from_iterable(example.alignment))
            columns["alignment"].append(links)
            columns["group"].append(None if example.group is None else _to_bytes(example.group))
    return pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema)


def decode(batch: pa.RecordBatch, labels: Sequence[int | float | None]) -> list[AnyExample]:
    """The examples of a batch, with these labels."""
    if "alignment" not in batch.schema.names:
        return list(_texts(batch, "", labels))
    nothing = [None] * len(labels)
    sides = [_texts(batch, side, nothing) for side in _SIDES]
    alignments, groups = _lists(batch["alignment"]), batch["group"].to_pylist()
    return [
        PairExample(
            premise,
            hypothesis,
            label,
            None if links is None else _in_twos(links),
            None if group is None else _to_text(group),
        )
        for premise, hypothesis, label, links, group in zip(*sides, labels, alignments, groups, strict=True)
    ]


def _texts(batch: pa.RecordBatch, side: str, labels: Sequence[int | float | None]) -> list[Example]:
    texts = map(_to_text, batch[f"{side}text"].to_pylist())
    offsets = [_in_twos(numbers or []) for numbers in _lists(batch[f"{side}offsets"])]
    annotations = batch[f"{side}annotation"].to_pylist()
    lengths = _lists(batch[f"{side}sentence_lengths"])
    masks = batch[f"{side}annotator_masks"].to_pylist()
    return [
        Example(
            text,
            tuple([text[start:end] for start, end in spans]),
            spans,
            label,
            None if annotation is None else tuple(map(bool, annotation)),
            None if sentences is None else tuple(sentences),
            None if annotators is None else tuple(tuple(map(bool, mask)) for mask in annotators),
        )
        for text, spans, label, annotation, sentences, annotators in zip(
            texts, offsets, labels, annotations, lengths, masks, strict=True
        )
    ]


def _lists(column: pa.Array) -> list[list[int] | None]:
    """The rows of a column of lists, converted all at once: one by one takes ten times as long."""
    ends = column.offsets.to_numpy().tolist()
    values = column.values.slice(ends[0], ends[-1] - ends[0]).to_numpy().tolist()
    rows = [values[start - ends[0] : end - ends[0]] for start, end in pairwise(ends)]
    return [row if there else None for row, there in zip(rows, column.is_valid().to_pylist(), strict=True)]


def _in_twos(numbers: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _to_text(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")
