"""File formats in which researchers hold Beer, Hotels and Movies, read into the rows of users' own files.

Each reader takes a folder and an aspect and returns the splits it finds, or None where the folder does not
have its files. The rows have the columns `tokens`, `label` and `rationale_spans` or `rationale_mask`.
What is particular to these datasets in any file, an original or a table, comes after the readers' rows are there:
`prepare_beer`, `polarity`, `prepare_movies`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rationalizer.data.corpus_files import SPLIT_NAMES, SplitNames
from rationalizer.data.labels import Label
from rationalizer.data.row_parsing import parsed
from rationalizer.data.safe_json import parse_json
from rationalizer.data.table_files import Row, Table, open_bytes, read_table
from rationalizer.text.errors import DataError, at

BEER_ASPECTS = ("appearance", "aroma", "palate", "taste", "overall")
BEER_SPLITS: SplitNames = {**SPLIT_NAMES, "test": (*SPLIT_NAMES["test"], r"annotated(_\w+)?")}
HOTEL_ASPECTS = ("location", "service", "cleanliness")
BETWEEN = "between"  # the label of reviews that are neither negative nor positive


def read_beer(folder: Path, aspect: str) -> dict[str, list[Table]] | None:
    """Lei et al. (2016): `reviews.aspect0.{train,heldout}.txt[.gz]`, tested on `annotations.json[.gz]`.

    A line of reviews is the ratings of all aspects, a tab, the tokens. A line of annotations is an object
    with tokens `x`, ratings `y`, and by aspect number the human token spans; no span means that nobody
    marked one.
    """
    number = BEER_ASPECTS.index(aspect)
    train = existing(folder, f"reviews.aspect{number}.train.txt")
    if train is None:
        return None
    splits = {"train": [_beer_reviews(train, number)]}
    if heldout := existing(folder, f"reviews.aspect{number}.heldout.txt"):
        splits["dev"] = [_beer_reviews(heldout, number)]
    if annotations := existing(folder, "annotations.json"):
        splits["test"] = [_beer_annotations(annotations, number)]
    return splits


def existing(folder: Path, *names: str) -> Path | None:
    """The first of these files that is there, packed or not."""
    candidates = [folder / (name + suffix) for name in names for suffix in ("", ".gz")]
    return next((path for path in candidates if path.is_file()), None)


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file, without those that are blank."""
    with open_bytes(path) as raw:
        for number, line in enumerate(raw, 1):
            try:
                text = line.decode("utf-8").strip("\r\n")
            except UnicodeDecodeError:
                raise DataError(f"{at(path, number)}: the line is not UTF-8; save the file as UTF-8") from None
            if text.strip():
                yield text


def _beer_reviews(path: Path, aspect: int) -> Table:
    rows: list[Row] = []
    for number, line in enumerate(text_lines(path), 1):
        ratings, tab, tokens = line.partition("\t")
        if not tab:
            raise DataError(f"{at(path, number)}: expected ratings, a tab and tokens, got {line[:60]!r}")
        rows.append({"tokens": tokens, "label": _rating(ratings.split(), aspect, at(path, number))})
    return Table(path, ("tokens", "label"), rows)


def _rating(ratings: Sequence[object], aspect: int, place: str) -> float:
    try:
        return float(str(ratings[aspect]))
    except (IndexError, ValueError):
        raise DataError(
            f"{place}: expected a rating of {BEER_ASPECTS[aspect]} in place {aspect + 1} of got {ratings}"
        ) from None


def _beer_annotations(path: Path, aspect: int) -> Table:
    rows: list[Row] = []
    for number, line in enumerate(text_lines(path), 1):
        try:
            item = parse_json(line)
            tokens, ratings, spans = item["x"], item["y"], item.get(str(aspect))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{at(path, number)}: expected 'x' (tokens), 'y' (ratings) and spans by aspect ({error!r})"
            ) from None
        label = _rating(ratings, aspect, at(path, number))
        rows.append({"tokens": tokens, "label": label, "rationale_spans": spans or None})
    return Table(path, ("tokens", "label", "rationale_spans"), rows)


def prepare_beer(table: Table, aspect: str) -> Table:
    """The rows that are for this aspect, where a column `aspect` says so: as Lei et al. have them in a file of their
    own, chosen so that the other aspects tell little about it. `rationale_appearance`, say, holds the human spans.
    """
    mine = [(n, row) for n, row in table.numbered() if "aspect" not in table.columns or row.get("aspect") == aspect]
    rows, columns = [row for _, row in mine], table.columns
    spans = f"rationale_{aspect}"
    if spans in columns and "rationale_spans" not in columns:
        columns = (*columns, "rationale_spans")
        rows = [row | {"rationale_spans": _listed(row.get(spans), at(table.path, n)) or None} for n, row in mine]
    return Table(table.path, columns, rows, [n for n, _ in mine])


def polarity(rating: Label) -> str:
    """The class of a rating, as the literature on Beer as a binary task has it."""
    if isinstance(rating, str) or not 0 <= rating <= 1:
        raise ValueError(f"the rating {rating!r} is not a number from 0 to 1; scale the ratings to this range")
    rating = round(rating, 6)  # in 32 bits, 0.4 is a little more than that
    return "positive" if rating >= 0.6 else "negative" if rating <= 0.4 else BETWEEN


def _listed(spans: Any, place: str) -> Sequence[Any]:
    try:
        return [] if spans in (None, "") else parsed(spans, "the rationale's spans")
    except ValueError as error:
        raise DataError(f"{place}: {error}") from None


def read_hotels(folder: Path, aspect: str) -> dict[str, list[Table]] | None:
    """Bao et al. (2018): `hotel_Location.{train,dev,test}`: task, label, text, maybe rationale, between tabs.

    The reviews with human rationales, where the folder `annotated` has them, are the test split.
    """
    name = f"hotel_{aspect.capitalize()}"
    train = existing(folder, f"{name}.train", f"{name}.train.tsv")
    if train is None:
        return None
    splits = {"train": [_hotel_reviews(train)]}
    if dev := existing(folder, f"{name}.dev", f"{name}.dev.tsv"):
        splits["dev"] = [_hotel_reviews(dev)]
    annotated = [f"annotated/{name}.train", f"annoated/{name}.train"]  # the second as some copies spell it
    if test := existing(folder, *annotated, f"{name}.test", f"{name}.test.tsv"):
        splits["test"] = [_hotel_reviews(test)]
    return splits


def _hotel_reviews(path: Path) -> Table:
    lines = [line.split("\t") for line in text_lines(path)]
    header = ["task", "label", "text", "rationale"]
    if lines and "text" in lines[0] and "label" in lines[0]:
        header = lines.pop(0)
    rows: list[Row] = []
    for number, values in enumerate(lines, 1):
        row = dict(zip(header, values, strict=False))
        if not {"label", "text"} <= row.keys():
            raise DataError(f"{at(path, number)}: expected {', '.join(header)} between tabs, got {len(values)} of them")
        rows.append({"tokens": row["text"], "label": row["label"], "rationale_mask": row.get("rationale")})
    return Table(path, ("tokens", "label", "rationale_mask"), rows)


def read_movies(folder: Path, aspect: str) -> dict[str, list[Table]] | None:
    """DeYoung et al. (2020): `{train,val,test}.jsonl` with evidences, the tokens in `docs/` by name.

    The evidences of a review, whatever their group, are united into one rationale.
    """
    docs = folder / "docs"
    if not docs.is_dir() or not (folder / "train.jsonl").is_file():
        return None
    files = {"train": "train.jsonl", "dev": "val.jsonl", "test": "test.jsonl"}
    return {s: [_eraser_reviews(folder / f, docs)] for s, f in files.items() if (folder / f).is_file()}


def _eraser_reviews(path: Path, docs: Path) -> Table:
    rows: list[Row] = []
    for number, item in enumerate(read_table(path).rows, 1):
        place = at(path, number)
        try:
            evidences = [evidence for group in item["evidences"] for evidence in group]
            spans = [[evidence["start_token"], evidence["end_token"]] for evidence in evidences]
            names = {evidence["docid"] for evidence in evidences} or {item["annotation_id"]}
            label = {"NEG": "negative", "POS": "positive"}[item["classification"]]
        except (KeyError, TypeError) as error:
            raise DataError(
                f"{place}: expected 'annotation_id', 'classification' (NEG or POS) and 'evidences' "
                f"as ERASER writes them; {error} is missing or wrong"
            ) from None
        if len(names) > 1:
            raise DataError(f"{place}: the evidences lie in several documents: {', '.join(sorted(names))}")
        document = docs / str(names.pop())
        if not document.is_file():
            raise DataError(f"{place}: the document {document} is missing; unpack the whole archive")
        tokens = document.read_text(encoding="utf-8")
        lengths = [len(line.split()) for line in tokens.splitlines()]  # a sentence a line
        rows.append({"tokens": tokens, "label": label, "rationale_spans": spans or None, "sentence_lengths": lengths})
    return Table(path, ("tokens", "label", "rationale_spans", "sentence_lengths"), rows)


def prepare_movies(table: Table, aspect: str) -> Table:
    """Spans without those that are empty, as some of ERASER's test file are: they mark nothing.

    In users' own files such a span is an error: more often than not its end is meant to be included.
    """
    if "rationale_spans" not in table.columns:
        return table
    rows: list[Row] = []
    for number, row in table.numbered():
        spans = _listed(row.get("rationale_spans"), at(table.path, number))
        rows.append(row | {"rationale_spans": [span for span in spans if not _is_empty(span)] or None})
    return Table(table.path, table.columns, rows, table.numbers)


def _is_empty(span: Any) -> bool:
    return isinstance(span, Sequence) and len(span) == 2 and span[0] == span[1]
