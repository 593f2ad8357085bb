"""TripAdvisor hotel reviews about one of three aspects (Wang et al., 2010), in the format of Bao et al. (2018)."""

from __future__ import annotations

from pathlib import Path

from rationalizer.data.dataset_registry import Dataset, ReadRequest, SplitTables, register_dataset
from rationalizer.data.table_files import Row, Table
from rationalizer.paper.original_files import find_file, iter_lines
from rationalizer.text.budget import Budget
from rationalizer.text.errors import DataError

HEADER = ["task", "label", "text", "rationale"]


def read_hotels(folder: Path, request: ReadRequest) -> SplitTables | None:
    """Read `hotel_Location.{train,dev,test}`: task, label, text and, in annotated files, rationale, separated by tabs.

    If there is a folder `annotated`, its reviews are the test split.
    """
    name = f"hotel_{request.aspect.capitalize()}"
    train = find_file(folder, f"{name}.train", f"{name}.train.tsv")
    if train is None:
        return None
    splits = {"train": [_reviews(train)]}
    if dev := find_file(folder, f"{name}.dev", f"{name}.dev.tsv"):
        splits["dev"] = [_reviews(dev)]
    annotated = [f"annotated/{name}.train", f"annoated/{name}.train"]  # the second as some copies spell it
    if test := find_file(folder, *annotated, f"{name}.test", f"{name}.test.tsv"):
        splits["test"] = [_reviews(test)]
    return splits


def _reviews(path: Path) -> Table:
    lines = [line.split("\t") for line in iter_lines(path)]
    header = HEADER
    if lines and {"label", "text"} <= set(lines[0]):
        header = lines.pop(0)
    rows: list[Row] = []
    for number, values in enumerate(lines, 1):
        row = dict(zip(header, values, strict=False))
        if not {"label", "text"} <= row.keys():
            problem = f"expected {', '.join(header)} separated by tabs, got {len(values)} fields"
            raise DataError(problem, path=path, row=number)
        rows.append({"tokens": row["text"], "label": row["label"], "rationale_mask": row.get("rationale")})
    return Table(path, ("tokens", "label", "rationale_mask"), rows)


register_dataset(
    Dataset(
        "hotels",
        ("negative", "positive"),
        Budget.share(0.15),
        rule="spaces",
        aspects=("location", "service", "cleanliness"),
        read_original=read_hotels,
        original_files="hotel_*.train",
    )
)
