"""Annotations in the formats of other tools: Label Studio, Prodigy, doccano, ERASER.

Each format is read into rows, one per text and annotator, and written from an `Annotations`:

    {"text": "A warm film.", "annotator": "Ana", "label": "good", "rationale_chars": [[2, 6]]}

A text that nobody annotated has one row without an annotator. Texts that are tokenized have `tokens` instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from rationalizer.data.annotation_file import AnnotationFile, Annotations, Row, read_annotations, text_row
from rationalizer.data.single_examples import example_from_known_row, make_example
from rationalizer.data.table_files import read_table
from rationalizer.text.errors import DataError, InputError, short_repr
from rationalizer.text.example import Example

Format = Literal["rationalizer", "label-studio", "prodigy", "doccano", "eraser"]
MARK = "rationale"  # the name of our spans in other tools
UNKNOWN = "imported"  # the annotator, if a format names none


def detect_format(path: Path) -> Format:
    """The format of a file, by its content; DataError if it is none of them."""
    if read_annotations(path) is not None:
        return "rationalizer"
    table = read_table(path)
    columns = set(table.columns)
    if {"data", "annotations"} <= columns:
        return "label-studio"
    if "evidences" in columns:
        return "eraser"
    if columns & {"spans", "answer"}:
        return "prodigy"
    if {"annotation_id", "lead_time"} <= columns:
        raise DataError("this is Label Studio's JSON-MIN", "export the project as JSON", path=path)
    lists = [row.get(name) for row in table.rows for name in ("label", "labels")]
    if columns & {"entities", "cats"} or any(isinstance(value, list) for value in lists):
        return "doccano"
    known = ", ".join(get_args(Format))
    raise DataError(f"the file is in none of the formats {known}", "name its format (--from)", path=path)


def read_exchange(path: str | Path, kind: Format | None = None) -> list[Row]:
    """The rows of a file in one of the formats, by default detected."""
    path = Path(path)
    kind = kind or detect_format(path)
    rows: list[Row] = []
    items = [] if kind == "rationalizer" else read_table(path).rows
    for number, item in enumerate(items, 1):
        try:
            rows += map(_checked, _READERS[kind](item, path))
        except InputError as error:
            raise DataError.from_error(error, path=path, row=number) from None
        except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
            raise DataError(
                f"not {kind}'s format: {error!r}", "name its format (--from)", path=path, row=number
            ) from None
    return rows if kind != "rationalizer" else list(_own_rows(path))


def _checked(row: Row) -> Row:
    """The row with each span once and without empty ones, as ERASER's Movies have them and a click in Label Studio
    leaves one; DataError if a span is outside of the text."""
    if "rationale_chars" not in row:
        return row
    spans = [[start, end] for start, end in dict.fromkeys(map(tuple, row["rationale_chars"])) if start != end]
    make_example(text=row.get("text"), tokens=row.get("tokens"), characters=spans)
    return {**row, "rationale_chars": spans}


def convert(source: str | Path, target: str | Path, to: Format, kind: Format | None = None) -> int:
    """Convert a file of annotations; return its number of texts. An annotation file that exists is added to."""
    target = Path(target)
    rows = read_exchange(source, kind)
    if to != "rationalizer":
        annotations = Annotations()
        for line in _lines(rows, annotations.by_id):
            annotations.add(line)
        _WRITERS[to](annotations, target)
        return len(annotations.by_id)
    labels = [label for row in rows for label in _as_list(row.get("label"))]
    multi = any(isinstance(row.get("label"), list) for row in rows)
    header = {"pairs": False, "rule": "words", "task": "classification", "classes": sorted(set(map(str, labels)))}
    lines = list(_lines(rows, {}))
    file = AnnotationFile.open(target, {**header, "multi": multi}, [line for line in lines if "annotator" not in line])
    file.append(*(line for line in lines if "annotator" in line))
    return len({line["id"] for line in lines})


def _lines(rows: list[Row], known: Mapping[str, Any]) -> Iterator[Row]:
    """The lines of an annotation file."""
    seen = set(known)
    for row in rows:
        example = make_example(text=row.get("text"), tokens=row.get("tokens"))
        given = None if row["annotator"] else row.get("label")
        text = text_row(example, given, tokenized="tokens" in row)
        if text["id"] not in seen:
            seen.add(text["id"])
            yield text
        if row["annotator"]:
            facts = {"seconds": row.get("seconds", 0), "time": row.get("time", "")}
            yield {
                "id": text["id"],
                "annotator": row["annotator"],
                "label": row.get("label"),
                "rationale_chars": row.get("rationale_chars", []),
            } | facts


def _own_rows(path: Path) -> Iterator[Row]:
    annotations = read_annotations(path) or Annotations()
    if annotations.header.get("pairs"):
        raise DataError("links between two texts have no place in the other formats", path=path)
    for key, text in annotations.by_id.items():
        shared: Row = {name: text[name] for name in ("text", "tokens") if name in text}
        yield {**shared, "annotator": None, "label": text.get("label")}
        for person, row in annotations.people.get(key, {}).items():
            if not row.get("not_enough"):
                yield {**row, **shared, "annotator": person}


def _text(annotations: Annotations, key: str) -> str:
    example = example_from_known_row(annotations.by_id[key], None, "words")
    assert isinstance(example, Example)
    return example.text


def _as_list(label: Any) -> list[Any]:
    return list(label) if isinstance(label, (list, tuple)) else [] if label in (None, "") else [label]


def _single(labels: list[Any]) -> Any:
    """One label as itself, several as a list."""
    return labels[0] if len(labels) == 1 else labels or None


def _from_utf16(text: str, start: int, end: int, marked: str | None) -> list[int]:
    """A span in characters. Browsers count characters beyond the first 65,536, such as emoji, twice."""
    if marked is None or text[start:end] == marked:
        return [start, end]
    units = text.encode("utf-16-le", "surrogatepass")
    return [len(units[: 2 * place].decode("utf-16-le", "replace")) for place in (start, end)]


# Label Studio: a list of tasks, each with a list of annotations


def _read_label_studio(task: Row, path: Path) -> Iterator[Row]:
    texts = [value for value in task["data"].values() if isinstance(value, str)]
    if not texts:
        raise DataError("the task has no text", "export tasks with a text")
    text = task["data"]["text"] if isinstance(task["data"].get("text"), str) else max(texts, key=len)
    found = [each for each in task.get("annotations") or [] if not each.get("was_cancelled")]
    given = task["data"].get("label")
    if not found or given is not None:
        yield {"text": text, "annotator": None, "label": given}
    for each in found:
        by = each.get("completed_by") or UNKNOWN
        person = (by.get("email") or by.get("id") or UNKNOWN) if isinstance(by, dict) else by
        values = [item["value"] for item in each.get("result") or () if "value" in item]  # relations have none
        # A choice about a region is none about the text.
        labels = [choice for value in values if "start" not in value for choice in value.get("choices", ())]
        spans = [_studio_span(text, value) for value in values if "start" in value]
        yield {"text": text, "annotator": str(person), "label": _single(labels), "rationale_chars": spans}


def _studio_span(text: str, value: Row) -> list[int]:
    place = value.get("globalOffsets") or value  # beside the place in an HTML document
    if not isinstance(place["start"], int) or not isinstance(place["end"], int):
        raise DataError(f"the region {short_repr(value)} has no place in the text", "annotate plain texts (<Text>)")
    marked = value.get("text")
    if marked is not None:  # Label Studio writes the two characters \\n for a line break
        marked = marked if marked in text else marked.replace("\\n", "\n")
    start, end = _from_utf16(text, place["start"], place["end"], marked)
    if marked is not None and text[start:end] != marked:
        raise DataError(f"{short_repr(marked)} is not at {start} to {end} of the text", "annotate plain texts (<Text>)")
    return [start, end]


def _write_label_studio(annotations: Annotations, path: Path) -> None:
    tasks = []
    for key, row in annotations.by_id.items():
        text, people = _text(annotations, key), []
        for person, found in annotations.people.get(key, {}).items():
            parts: list[Row] = [
                {
                    "from_name": MARK,
                    "to_name": "text",
                    "type": "labels",
                    "value": {"start": start, "end": end, "text": text[start:end], "labels": [MARK]},
                }
                for start, end in found["rationale_chars"]
            ]
            if labels := _as_list(found["label"]):
                choices = {"choices": list(map(str, labels))}
                parts.append({"from_name": "label", "to_name": "text", "type": "choices", "value": choices})
            people.append({"completed_by": {"email": person}, "result": parts})
        data: Row = {"text": text}
        if row.get("label") is not None:
            data["label"] = row["label"]
        tasks.append({"data": data, "annotations": people})
    path.write_text(json.dumps(tasks, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


# Prodigy: one line per text and annotator


def _read_prodigy(item: Row, path: Path) -> Iterator[Row]:
    if item.get("answer", "accept") != "accept":
        return
    spans = [[span["start"], span["end"]] for span in item.get("spans") or ()]
    label = _single(list(map(str, _as_list(item.get("accept") or item.get("label")))))
    person = item.get("_annotator_id") or item.get("_session_id") or UNKNOWN
    is_annotated = "answer" in item or bool(spans)
    yield {
        "text": item["text"],
        "annotator": person if is_annotated else None,
        "label": label,
        "rationale_chars": spans,
    }


def _write_prodigy(annotations: Annotations, path: Path) -> None:
    def lines() -> Iterator[Row]:
        for key, row in annotations.by_id.items():
            text = _text(annotations, key)
            people = annotations.people.get(key, {})
            if not people or row.get("label") is not None:
                yield {"text": text, **({} if row.get("label") is None else {"label": row["label"]})}
            for person, found in people.items():
                spans = [{"start": start, "end": end, "label": MARK} for start, end in found["rationale_chars"]]
                accept = {"accept": list(map(str, _as_list(found["label"])))}
                yield {"text": text, "spans": spans, **accept, "answer": "accept", "_annotator_id": person}

    _write_lines(path, lines())


# doccano: one line per text, with the spans as `label` or as `entities`, and the classes as `cats`


def _read_doccano(item: Row, path: Path) -> Iterator[Row]:
    keys = ("start_offset", "end_offset", "label")
    listed = [*(item.get("entities") or ()), *_as_list(item.get("label")), *_as_list(item.get("labels"))]
    entities = [tuple(each[key] for key in keys) for each in listed if isinstance(each, Mapping)]
    entities += [tuple(each) for each in listed if isinstance(each, (list, tuple))]
    cats = item.get("cats") or ()  # names, or as in spaCy the probability of each
    named = [name for name, share in cats.items() if share > 0.5] if isinstance(cats, Mapping) else list(cats)
    labels = [*named, *(each for each in listed if isinstance(each, str))]
    labels = labels or sorted({name for *_, name in entities if name != MARK})
    spans = [[start, end] for start, end, _ in entities]
    label = _single(labels)
    yield {"text": item["text"], "annotator": None, "label": None if spans else label}
    if spans:  # a class alone does not tell whether anybody looked for words
        yield {"text": item["text"], "annotator": UNKNOWN, "label": label, "rationale_chars": spans}


def _write_doccano(annotations: Annotations, path: Path) -> None:
    def lines() -> Iterator[Row]:
        for number, (key, text) in enumerate(annotations.by_id.items(), 1):
            row = annotations.merge(text) or {}
            spans = sorted({tuple(span) for one in row.get("rationale_chars", ()) for span in one})
            entities = [
                {"id": k, "label": MARK, "start_offset": start, "end_offset": end}
                for k, (start, end) in enumerate(spans)
            ]
            cats = list(map(str, _as_list(row.get("label"))))
            yield {"id": number, "text": _text(annotations, key), "entities": entities, "cats": cats}

    _write_lines(path, lines())


# ERASER: a line per text with spans of tokens, and the tokens in docs/ beside the file


def _read_eraser(item: Row, path: Path) -> Iterator[Row]:
    evidences = [each for group in item["evidences"] for each in group]
    documents = {each["docid"] for each in evidences} or set(item.get("docids") or [item["annotation_id"]])
    if len(documents) > 1:
        raise DataError(f"the evidence is in {len(documents)} documents", "convert rows with one document")
    document = path.parent / "docs" / str(documents.pop())
    if not document.is_file():
        raise DataError(f"there is no file {document}", "put the folder docs beside the file")
    tokens = document.read_text(encoding="utf-8").split()
    spans = [(each["start_token"], each["end_token"]) for each in evidences]
    example = make_example(tokens=tokens, spans=[span for span in spans if span[0] < span[1]])
    chars = [[example.offsets[start][0], example.offsets[end - 1][1]] for start, end in spans if start < end]
    label = item.get("classification")
    yield {"tokens": tokens, "annotator": None, "label": label}
    if chars:
        yield {"tokens": tokens, "annotator": UNKNOWN, "label": label, "rationale_chars": chars}


def _write_eraser(annotations: Annotations, path: Path) -> None:
    docs = path.parent / "docs"
    docs.mkdir(parents=True, exist_ok=True)

    def lines() -> Iterator[Row]:
        for key, text in annotations.by_id.items():
            row = annotations.merge(text)
            if row is None:
                continue
            example = example_from_known_row(row, None, "words")
            assert isinstance(example, Example)
            (docs / key).write_text(" ".join(example.tokens), encoding="utf-8")
            evidences = []
            for start, end in _token_runs(example):
                words = {"text": " ".join(example.tokens[start:end]), "docid": key}
                evidences.append(
                    [{**words, "start_token": start, "end_token": end, "start_sentence": -1, "end_sentence": -1}]
                )
            yield {"annotation_id": key, "classification": row.get("label"), "evidences": evidences, "query": ""}

    _write_lines(path, lines())


def _token_runs(example: Example) -> Iterator[tuple[int, int]]:
    marked = [False, *(example.annotation or [False] * len(example.tokens)), False]
    edges = [k for k, (one, other) in enumerate(pairwise(marked)) if one != other]
    return zip(edges[::2], edges[1::2], strict=True)


def _write_lines(path: Path, rows: Iterator[Row]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


_READERS: dict[str, Callable[[Row, Path], Iterator[Row]]] = {
    "label-studio": _read_label_studio,
    "prodigy": _read_prodigy,
    "doccano": _read_doccano,
    "eraser": _read_eraser,
}
_WRITERS: dict[str, Callable[[Annotations, Path], None]] = {
    "label-studio": _write_label_studio,
    "prodigy": _write_prodigy,
    "doccano": _write_doccano,
    "eraser": _write_eraser,
}
