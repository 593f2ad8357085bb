"""HateXplain (Mathew et al., 2021): posts that two or three people labelled and annotated."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from rationalizer.data.annotation_parsing import parse_list
from rationalizer.data.dataset_registry import Dataset, ReadRequest, SplitTables, register_dataset
from rationalizer.data.file_content import open_bytes
from rationalizer.data.labels import Label
from rationalizer.data.safe_json import parse_json
from rationalizer.data.table_files import Row, Table
from rationalizer.paper.original_files import find_file
from rationalizer.text.budget import Budget
from rationalizer.text.errors import DataError, short_repr

UNDECIDED = "undecided"  # the label of posts without a majority
DIVISIONS = {"train": "train", "dev": "val", "test": "test"}


def read_hatexplain(folder: Path, request: ReadRequest) -> SplitTables | None:
    """Read the authors' `dataset.json` and `post_id_divisions.json`, gzipped or not.

    The label is that of more than half of the annotators. Posts without one are in no division; they are returned as
    "no split", to be dropped and counted. `rationale_mean` is, for each token, the share of annotators who marked it,
    among those who marked anything in the post.
    """
    files = {name: find_file(folder, name) for name in ("dataset.json", "post_id_divisions.json")}
    posts_file, divisions_file = files.values()
    if posts_file is None and divisions_file is None:
        return None
    if posts_file is None or divisions_file is None:
        missing, present = sorted(files, key=lambda name: files[name] is not None)
        remedy = f"copy it with {present} from the authors' repository"
        raise DataError(f"{missing} is missing", remedy, path=folder)
    posts = {
        name: (number, _row(post, f"{posts_file}, post {name}"))
        for number, (name, post) in enumerate(_read_object(posts_file).items(), 1)
    }
    divisions = _read_object(divisions_file)
    splits: SplitTables = {}
    for split, division in DIVISIONS.items():
        if division not in divisions and split != "train":
            continue
        names = divisions.get(division)
        if not isinstance(names, list):
            problem = f"expected a list of posts as {division!r}, among {list(divisions)}"
            raise DataError(problem, path=divisions_file)
        if unknown := [name for name in names if not isinstance(name, str) or name not in posts]:
            problem = f"the post {unknown[0]!r} of {division} is not in {posts_file.name}"
            raise DataError(problem, "use both files of the same release", path=divisions_file)
        splits[split] = [_table(posts_file, [posts[name] for name in names])]
    used = {name for division in DIVISIONS.values() for name in divisions.get(division, ())}
    others = [post for name, post in posts.items() if name not in used and post[1]["label"] == UNDECIDED]
    return splits | ({"no split": [_table(posts_file, others)]} if others else {})


def _read_object(path: Path) -> dict[str, Any]:
    with open_bytes(path) as raw:
        try:
            value = parse_json(raw.read())
        except ValueError as error:
            raise DataError(str(error), "copy the file again", path=path) from None
    if not isinstance(value, dict):
        raise DataError(f"expected one JSON object, got {short_repr(value)}", path=path)
    return value


def _row(post: Any, location: str) -> Row:
    try:
        labels = [annotator["label"] for annotator in post["annotators"]]
        tokens, rationales = post["post_tokens"], post["rationales"]
        # One annotation in the release has one flag too many: which tokens it marks is unknown.
        usable = [flags for flags in rationales if len(flags) == len(tokens)]
        shares = [sum(flags) / len(usable) for flags in zip(*usable, strict=True)]
        label, votes = Counter(labels).most_common(1)[0] if labels else (UNDECIDED, 0)
    except (KeyError, TypeError) as error:
        raise DataError(
            "expected 'annotators' (each with a 'label'), 'rationales' (lists of 0 and 1) and 'post_tokens'",
            f"{error} is missing or wrong",
            path=location,
        ) from None
    if rationales and not usable:
        raise DataError(f"none of the rationales has a flag for each of the {len(tokens)} tokens", path=location)
    return {
        "tokens": tokens,
        "label": label if 2 * votes > len(labels) else UNDECIDED,
        "rationale_mean": shares or None,
    }


def _table(path: Path, posts: list[tuple[int, Row]]) -> Table:
    columns = ("tokens", "label", "rationale_mean")
    return Table(path, columns, [row for _, row in posts], [number for number, _ in posts])


def prepare_hatexplain(table: Table, request: ReadRequest) -> Table:
    """Add the annotations of any annotator (`rationale_union`, which is also the `rationale_mask`) and of more than
    half of those who marked anything (`rationale_majority`).

    A post in which nothing is marked, as all normal posts, gets no annotation rather than an empty one: a model always
    selects something, and ERASER's averages would count that as wrong. The authors leave out normal posts as well.
    """
    sources = {
        convention: (name, threshold)
        for convention, threshold in (("rationale_union", 0.0), ("rationale_majority", 0.5))
        if (name := next((name for name in (convention, "rationale_mean") if name in table.columns), None))
    }
    rows: list[Row] = []
    for number, row in table.numbered():
        masks: Row = {}
        for convention, (name, threshold) in sources.items():
            try:
                masks[convention] = _above(row.get(name), threshold)
            except ValueError as error:
                raise DataError(f"the column {name}: {error}", path=table.path, row=number) from None
        default = {"rationale_mask": masks["rationale_union"]} if "rationale_union" in masks else {}
        rows.append(default | row | masks)
    added = [*sources, *(["rationale_mask"] if "rationale_union" in sources else [])]
    return Table(table.path, tuple(dict.fromkeys([*table.columns, *added])), rows, table.numbers)


def _above(shares: Any, threshold: float) -> list[bool] | None:
    """Return flags of the tokens with a share above the threshold; None if there is no such token."""
    if shares in (None, ""):
        return None
    values = parse_list(shares, "the rationale's shares")
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        numbers = [-1.0]
    if not all(0 <= number <= 1 for number in numbers):
        raise ValueError(f"expected a number from 0 to 1 for each token, got {str(shares)[:60]}")
    flags = [number > threshold for number in numbers]
    return flags if any(flags) else None


def toxicity(label: Label) -> Label:
    """Return the class of two: offensive posts and hate speech are toxic."""
    if label not in (*HATEXPLAIN.classes, UNDECIDED):
        raise ValueError(f"the label {label!r} is not one of {', '.join(HATEXPLAIN.classes)}")
    return label if label in ("normal", UNDECIDED) else "toxic"


HATEXPLAIN = register_dataset(
    Dataset(
        "hatexplain",
        ("normal", "offensive", "hatespeech"),
        Budget.share(0.3),
        rule="spaces",
        drop_labels=(UNDECIDED,),
        read_original=read_hatexplain,
        original_files="dataset.json with post_id_divisions.json",
        extra_columns=("rationale_union", "rationale_majority", "rationale_mean"),
        prepare=prepare_hatexplain,
        texts=17_305,
    )
)
register_dataset(
    replace(
        HATEXPLAIN,
        name="hatexplain-binary",
        classes=("normal", "toxic"),
        relabel=toxicity,
    )
)
