"""BeerAdvocate reviews with ratings of five aspects (McAuley et al., 2012), in the format of Lei et al. (2016)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rationalizer.data.corpus_files import SPLIT_NAMES, SplitNames
from rationalizer.data.dataset_registry import Dataset, ReadRequest, SplitTables, register_dataset
from rationalizer.data.labels import Label
from rationalizer.data.safe_json import parse_json
from rationalizer.data.table_files import Row, Table
from rationalizer.paper.original_files import find_file, iter_lines, parse_spans
from rationalizer.text.budget import Budget
from rationalizer.text.errors import DataError, short_repr

ASPECTS = ("appearance", "aroma", "palate", "taste", "overall")
SPLITS: SplitNames = {**SPLIT_NAMES, "test": (*SPLIT_NAMES["test"], r"annotated(_\w+)?")}
BETWEEN = "between"  # the label of reviews that are neither negative nor positive


def read_beer(folder: Path, request: ReadRequest) -> SplitTables | None:
    """Read `reviews.aspect0.{train,heldout}.txt[.gz]`, and `annotations.json[.gz]` as the test split.

    A line of reviews holds the ratings of all aspects, a tab and the tokens. A line of annotations is an object with
    tokens `x`, ratings `y`, and the annotated token spans by aspect number; no span means that nobody annotated it.
    """
    aspect = ASPECTS.index(request.aspect)
    train = find_file(folder, f"reviews.aspect{aspect}.train.txt")
    if train is None:
        return None
    splits = {"train": [_reviews(train, aspect)]}
    if heldout := find_file(folder, f"reviews.aspect{aspect}.heldout.txt"):
        splits["dev"] = [_reviews(heldout, aspect)]
    if annotations := find_file(folder, "annotations.json"):
        splits["test"] = [_annotated_reviews(annotations, aspect)]
    return splits


def _reviews(path: Path, aspect: int) -> Table:
    rows: list[Row] = []
    for number, line in enumerate(iter_lines(path), 1):
        ratings, tab, tokens = line.partition("\t")
        if not tab:
            raise DataError(f"expected ratings, a tab and tokens, got {short_repr(line)}", path=path, row=number)
        rows.append({"tokens": tokens, "label": _rating(ratings.split(), aspect, path, number)})
    return Table(path, ("tokens", "label"), rows)


def _rating(ratings: Sequence[object], aspect: int, path: Path, row: int) -> float:
    try:
        return float(str(ratings[aspect]))
    except (IndexError, ValueError):
        problem = f"expected a rating of {ASPECTS[aspect]} as number {aspect + 1} of the ratings, got {ratings}"
        raise DataError(problem, path=path, row=row) from None


def _annotated_reviews(path: Path, aspect: int) -> Table:
    rows: list[Row] = []
    for number, line in enumerate(iter_lines(path), 1):
        try:
            item = parse_json(line)
            tokens, ratings, spans = item["x"], item["y"], item.get(str(aspect))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"expected 'x' (tokens), 'y' (ratings) and spans by aspect ({error!r})"
            raise DataError(problem, path=path, row=number) from None
        label = _rating(ratings, aspect, path, number)
        rows.append({"tokens": tokens, "label": label, "rationale_spans": spans or None})
    return Table(path, ("tokens", "label", "rationale_spans"), rows)


def prepare_beer(table: Table, request: ReadRequest) -> Table:
    """Keep the rows of the aspect, if there is a column `aspect`, and use its annotations (`rationale_appearance`).

    Lei et al. have a file per aspect, with reviews chosen so that the other aspects tell little about it.
    """
    numbered = [
        (n, row) for n, row in table.numbered() if "aspect" not in table.columns or row.get("aspect") == request.aspect
    ]
    rows, columns = [row for _, row in numbered], table.columns
    spans = f"rationale_{request.aspect}"
    if spans in columns and "rationale_spans" not in columns:
        columns = (*columns, "rationale_spans")
        annotations = [parse_spans(row.get(spans), table.path, n) for n, row in numbered]
        rows = [row | {"rationale_spans": found or None} for row, found in zip(rows, annotations, strict=True)]
    return Table(table.path, columns, rows, [n for n, _ in numbered])


def polarity(rating: Label) -> str:
    """Return the class of a rating, as in the literature on Beer as a binary task."""
    if isinstance(rating, str) or not 0 <= rating <= 1:
        raise ValueError(f"the rating {rating!r} is not a number from 0 to 1; scale the ratings to this range")
    rating = round(rating, 6)  # 0.4 in 32 bits is slightly more than 0.4
    return "positive" if rating >= 0.6 else "negative" if rating <= 0.4 else BETWEEN


BEER = register_dataset(
    Dataset(
        "beer",
        budget=Budget.share(0.1),
        rule="spaces",
        label_columns=("{aspect}", "label"),
        aspects=ASPECTS,
        read_original=read_beer,
        original_files="reviews.aspect*.train.txt",
        extra_columns=("aspect", "rationale_{aspect}"),
        prepare=prepare_beer,
        splits=SPLITS,
        texts=90_000,
    )
)
register_dataset(
    replace(
        BEER,
        name="beer-binary",
        classes=("negative", "positive"),
        budget=Budget.share(0.18),
        relabel=polarity,
        drop_labels=(BETWEEN,),
    )
)
