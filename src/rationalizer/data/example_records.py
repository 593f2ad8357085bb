"""Examples as lines of JSON, without their labels, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

from rationalizer.text.example import AnyExample, Example, PairExample

Content = tuple[list[Sequence[str]], int | float | None, list[tuple[int, ...]]]  # tokens, label, sentence lengths
# Made once: that takes as long as using it.
_as_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def packed(example: AnyExample) -> bytes:
    """[text, [start, end, start, end, ...]], then marks, sentence lengths and what each person marked if there are any;
    of a pair two of these, the alignment and the group."""
    if isinstance(example, PairExample):
        sides = [_listed(side) for side in example.texts]
        return _as_json([*sides, example.alignment, example.group]).encode()
    return _as_json(_listed(example)).encode()


def _listed(example: Example) -> list[Any]:
    spans = list(chain.from_iterable(example.offsets))
    if example.annotation is None and example.sentence_lengths is None:
        return [example.text, spans]
    marks = None if example.annotation is None else _flags(example.annotation)
    people = None if example.annotator_masks is None else [_flags(mask) for mask in example.annotator_masks]
    return [example.text, spans, marks, example.sentence_lengths, people]


def _flags(mask: Sequence[bool]) -> str:
    return "".join("1" if flag else "0" for flag in mask)


def _mask(flags: str) -> tuple[bool, ...]:
    return tuple(flag == "1" for flag in flags)


def unpacked(line: bytes, label: int | float | None) -> AnyExample:
    """The example again; ValueError or TypeError where it is none."""
    listed = json.loads(line)
    if isinstance(listed[0], list):
        premise, hypothesis, alignment, group = listed
        aligned = None if alignment is None else tuple((i, j) for i, j in alignment)
        return PairExample(_text(premise, None), _text(hypothesis, None), label, aligned, group)
    return _text(listed, label)


def _text(listed: list[Any], label: int | float | None) -> Example:
    text, spans = listed[:2]
    marks, sentences, people = (*listed[2:], None, None, None)[:3]
    ends = iter(spans)
    return Example(
        text,
        tuple(_tokens(text, spans)),
        tuple(zip(ends, ends, strict=True)),
        label,
        None if marks is None else _mask(marks),
        None if sentences is None else tuple(sentences),
        None if people is None else tuple(map(_mask, people)),
    )


def _tokens(text: str, spans: list[int]) -> list[str]:
    ends = iter(spans)
    return [text[start:end] for start, end in zip(ends, ends, strict=True)]  # two at a time


def content(line: bytes, label: int | float | None) -> Content:
    """What a fingerprint depends on, without making the example."""
    listed = json.loads(line)
    sides = listed[:2] if isinstance(listed[0], list) else [listed]
    lengths = [tuple(side[3]) for side in sides if len(side) > 2 and side[3] is not None]
    return [_tokens(*side[:2]) for side in sides], label, lengths


def content_of(example: AnyExample) -> Content:
    """The same of an example."""
    lengths = [text.sentence_lengths for text in example.texts if text.sentence_lengths is not None]
    return [text.tokens for text in example.texts], example.label, lengths
