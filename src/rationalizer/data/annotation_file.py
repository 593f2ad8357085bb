"""The file of `rationalizer annotate`: texts, and what people marked in them. It is only ever appended to.

Each line is a JSON object. The first one names the format; the others are texts with what the data say about them, what
a person said about a text, and a person's list of words that must never count:

    {"rationalizer": "annotations", "version": 1, "pairs": false, "multi": false, "classes": ["bad", "good"], ...}
    {"id": "0f3a…", "text": "A warm film.", "label": "good"}
    {"id": "0f3a…", "annotator": "Ana", "label": "good", "rationale_chars": [[2, 6]], "seconds": 4.1, "time": "…"}
    {"annotator": "Ana", "never": ["acme"]}

An annotation may also have `removed_words`: those that were marked when the person saw the text, because a model had
selected them, and that the person unmarked. A person's last line about a text holds, and so does the last list. All
functions that read tables read such a file as a table with one row per text (see `Annotations.rows`).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from threading import RLock
from typing import IO, Any

from rationalizer.data.safe_json import parse_json
from rationalizer.data.single_examples import example_from_known_row
from rationalizer.text.errors import DataError, short_repr
from rationalizer.text.example import AnyExample, Example, PairExample

FORMAT, VERSION = "annotations", 1
START = b'{"rationalizer": "annotations"'  # of the file
OTHER_FILE = "choose another file"
OFTEN = 3  # texts in which a word must have been unmarked to be evidence that it is no reason
Row = dict[str, Any]


def is_header(row: Any) -> bool:
    """Whether a row of a JSON-lines file is the header of an annotation file."""
    return isinstance(row, dict) and row.get("rationalizer") == FORMAT


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < math.inf


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


# The file may come from others: whether each value has its type. Texts, their labels and annotations are checked when
# they are read, as those of any table.
_FITS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("id", "annotator", "time", "rule", "task"), lambda value: isinstance(value, str)),
    **dict.fromkeys(("pairs", "multi", "not_enough"), lambda value: isinstance(value, bool)),
    **dict.fromkeys(("classes", "never", "removed_words"), _are_words),
    "seconds": lambda value: is_number(value) and value >= 0,
}
HEADER_KEYS = {"pairs", "multi", "task", "rule", "classes"}


def _foreign_line(row: Any) -> DataError:
    return DataError(f"{short_repr(row)} is not a line of an annotation file", "remove the line")


@dataclass
class Annotations:
    """What the lines of an annotation file say."""

    header: Row = field(default_factory=dict)
    texts: list[Row] = field(default_factory=list)  # in order; a text that the data have twice comes twice
    by_id: dict[str, Row] = field(default_factory=dict)
    people: dict[str, dict[str, Row]] = field(default_factory=dict)  # text -> person -> annotation
    never: dict[str, list[str]] = field(default_factory=dict)  # person -> words

    def add(self, row: Any) -> None:
        """Add a line; raise DataError if it is none of an annotation file."""
        if not isinstance(row, dict) or not all(_FITS[key](row[key]) for key in row.keys() & _FITS.keys()):
            raise _foreign_line(row)
        if is_header(row):
            if not row.keys() >= HEADER_KEYS:
                raise _foreign_line(row)
            if row.get("version") != VERSION:
                raise DataError(f"the version {row.get('version')!r} of the file is unknown", "update rationalizer")
            self.header = row
        elif "annotator" not in row and "id" in row:
            self.texts.append(row)
            self.by_id.setdefault(row["id"], row)
        elif "never" in row and "annotator" in row:
            self.never[row["annotator"]] = row["never"]
        elif "annotator" in row and "id" in row:
            own = self.people.setdefault(row["id"], {})
            own.pop(row["annotator"], None)  # the latest comes last
            own[row["annotator"]] = row
        else:
            raise _foreign_line(row)

    def never_words(self) -> tuple[str, ...]:
        """The words that must never count, in all people's lists."""
        return tuple(sorted({word.casefold() for words in self.never.values() for word in words}))

    def rows(self) -> Iterator[Row]:
        """The table for training and scoring.

        A text's label is that of most of its annotators, or the mean of their numbers; without an annotator it is that
        of the data. Each annotator has a list in `rationale_chars`; the links of a pair are those that anybody drew.
        Texts in which most people found too little to decide are left out, and so are texts without a label if others
        have one.
        """
        removed = self.removed_words()
        found = [row for text in self.texts if (row := self.merge(text, removed)) is not None]
        labelled = any(row.get("label") not in (None, "") for row in found)
        return (row for row in found if not labelled or row.get("label") not in (None, ""))

    def removed_words(self) -> dict[str, int]:
        """The words that people unmarked in several texts and marked in none, each with its number of texts, the most
        frequent first. Others, which people marked elsewhere or unmarked only once or twice, may be reasons.
        """
        counts: Counter[str] = Counter()
        for people in self.people.values():
            counts.update({word.casefold() for row in people.values() for word in row.get("removed_words", ())})
        often = {word: count for word, count in counts.most_common() if count >= OFTEN}
        for key in self.people.keys() & self.by_id.keys() if often else ():
            with suppress(DataError):  # those who read the rows report it
                row = self.merge(self.by_id[key])
                example = None if row is None else example_from_known_row(row, None, self.header["rule"])
                if isinstance(example, Example):
                    for k in example.annotated:
                        often.pop(example.tokens[k].casefold(), None)
        return often

    def merge(self, text: Row, removed: Collection[str] = ()) -> Row | None:
        """The row of a text: what the data and all its annotators say, with those of the `removed` words that somebody
        unmarked in it; None if most of them found too little."""
        row = {name: value for name, value in text.items() if name != "id"}
        everyone = list(self.people.get(text["id"], {}).values())
        people = [each for each in everyone if not each.get("not_enough")]
        if len(everyone) > 2 * len(people):
            return None
        labels = [each["label"] for each in people if each.get("label") not in (None, "")]
        if labels and self.header.get("task") == "regression":
            row["label"] = fmean(map(float, labels))
        elif labels:
            row["label"] = _most_frequent(labels, row.get("label"))
        if people and self.header.get("pairs"):
            row["alignment"] = sorted({tuple(link) for each in people for link in each.get("alignment", ())})
        elif people:
            row["rationale_chars"] = [each.get("rationale_chars", []) for each in people]
            own = {word.casefold() for each in people for word in each.get("removed_words", ())}
            row |= {"removed_words": sorted(own.intersection(removed))} if own.intersection(removed) else {}
        return row


def _most_frequent(labels: Sequence[Any], given: Any) -> Any:
    """The label that most people chose, on a tie the given one; for lists, the labels that half of the people chose."""
    if any(isinstance(label, list) for label in labels):
        counts = Counter(name for label in labels for name in label)
        return [name for name, count in counts.items() if 2 * count >= len(labels)]
    counts = Counter(map(str, labels))
    most = [label for label in labels if counts[str(label)] == max(counts.values())]
    return given if str(given) in map(str, most) else most[0]


class AnnotationFile:
    """An annotation file that this process, and possibly others at the same time, append to.

    A line is on disk when `append` returns. A line that was cut off, because its process was killed, does not count.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.content = Annotations()
        self._end = self._lines = 0  # bytes and lines that have been read
        self._lock = RLock()

    @classmethod
    def open(cls, path: str | Path, header: Mapping[str, Any], texts: Iterable[Row] = ()) -> AnnotationFile:
        """Open a file, or create it. Texts that it lacks are added; new classes are added to the header."""
        file = cls(path)
        file.path.parent.mkdir(parents=True, exist_ok=True)
        file.path.touch()
        given = list(texts)

        def missing() -> list[Row]:
            known = file.content.header
            if known and known["pairs"] != header["pairs"]:
                kinds = ("single texts", "pairs of texts")
                problem = f"the file holds {kinds[known['pairs']]}, the data {kinds[header['pairs']]}"
                raise DataError(problem, OTHER_FILE, path=path)
            classes = list(dict.fromkeys([*known.get("classes", ()), *header["classes"]]))
            merged = {"rationalizer": FORMAT, "version": VERSION, **header, **known, "classes": classes}
            new = [text for text in given if text["id"] not in file.content.by_id]
            return new if merged == known else [merged, *new]

        file._append(missing)
        return file

    def append(self, *lines: Row) -> None:
        """Write lines, and wait until they are on disk."""
        self._append(lambda: lines)

    def add_text(self, text: Row) -> None:
        """Write the line of a text if there is none."""
        self._append(lambda: [] if text["id"] in self.content.by_id else [text])

    def _append(self, lines: Callable[[], Sequence[Row]]) -> None:
        with self._lock, self.path.open("r+b") as file, _locked(file):
            self._read(file)
            file.truncate(self._end)  # removes a line that was cut off
            file.seek(self._end)
            file.write(b"".join(map(_encode, lines())))
            file.flush()
            os.fsync(file.fileno())
            self._read(file)

    def refresh(self) -> None:
        """Read what other processes have appended."""
        with self._lock:
            if self.path.stat().st_size != self._end:
                with self.path.open("rb") as file:
                    self._read(file)

    def _read(self, file: IO[bytes]) -> None:
        if os.fstat(file.fileno()).st_size < self._end:  # another file has taken its place
            self.content, self._end, self._lines = Annotations(), 0, 0
        file.seek(self._end)
        content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        if content and not self._end and not content.startswith(START):
            raise DataError("this is not a file of annotations", OTHER_FILE, path=self.path)
        for line in whole.split(b"\n")[:-1]:
            self._lines += 1
            try:
                self.content.add(parse_json(line))
            except ValueError as error:
                raise DataError(str(error), path=self.path, line=self._lines) from None
        self._end += len(whole)


def read_annotations(path: str | Path) -> Annotations | None:
    """What an annotation file says; None if the file is of another kind."""
    path = Path(path)
    if not path.is_file():
        return None
    with path.open("rb") as raw:
        if raw.read(len(START)) != START:
            return None
    file = AnnotationFile(path)
    file.refresh()
    return file.content


def _encode(row: Row) -> bytes:
    try:
        return (json.dumps(row, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # half a surrogate pair, from a broken text
        return (json.dumps(row) + "\n").encode()


@contextmanager
def _locked(file: IO[bytes]) -> Iterator[None]:
    """Wait until no other process writes to the file. The system unlocks it when it is closed."""
    with suppress(OSError):  # some network file systems have no locks
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
    yield


def text_id(texts: Sequence[str]) -> str:
    """The id of a text, or of a premise and its hypothesis."""
    return hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def text_row(example: AnyExample, label: Any = None, *, tokenized: bool = False) -> Row:
    """The line of a text: `tokenized` if it must be read as tokens."""
    row: Row = {"id": text_id([part.text for part in example.texts])}
    for part, side in zip(example.texts, ("premise", "hypothesis") if len(example.texts) == 2 else ("",), strict=True):
        if tokenized:
            row[f"{side}_tokens".lstrip("_")] = list(part.tokens)
        else:
            row[side or "text"] = part.text
    if label not in (None, ""):
        row["label"] = label
    if isinstance(example, PairExample):
        return row if example.alignment is None else {**row, "alignment": [list(link) for link in example.alignment]}
    if example.sentence_lengths is not None:
        row["sentence_lengths"] = list(example.sentence_lengths)
    masks = example.annotator_masks or (None if example.annotation is None else (example.annotation,))
    return row if masks is None else {**row, "rationale_chars": [mask_characters(mask, example) for mask in masks]}


def mask_characters(mask: Sequence[Any], example: Example) -> list[list[int]]:
    """The character spans of runs of marked tokens."""
    spans: list[list[int]] = []
    before = False
    for marked, (start, end) in zip(mask, example.offsets, strict=True):
        if marked and before:
            spans[-1][1] = end
        elif marked and start < end:
            spans.append([start, end])
        before = bool(marked) and bool(spans)
    return spans
