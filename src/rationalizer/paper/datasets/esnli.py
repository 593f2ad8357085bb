"""e-SNLI (Camburu et al., 2018): SNLI's pairs with the words that people marked as the reason for the label."""

from __future__ import annotations

from typing import Any

from rationalizer.data.annotation_parsing import mask_from_flags, parse_list
from rationalizer.data.corpus_files import SplitNames
from rationalizer.data.dataset_registry import Dataset, ReadRequest, register_dataset
from rationalizer.data.table_files import Row, Table
from rationalizer.paper.datasets.nli import CLASSES, NO_GOLD_LABEL
from rationalizer.text.budget import Budget
from rationalizer.text.errors import DataError
from rationalizer.text.word_splitting import join

SPLITS: SplitNames = {"dev": ("dev", "esnli_dev"), "test": ("test", "esnli_test")}
SIDES = {"premise": 1, "hypothesis": 2}  # number of the sentence in the authors' files
ANNOTATORS = (1, 2, 3)  # of the dev and test splits
MARKED = {side: [f"Sentence{number}_marked_{k}" for k in ANNOTATORS] for side, number in SIDES.items()}

CharSpans = list[tuple[int, int]] | None


def prepare_esnli(table: Table, request: ReadRequest) -> Table:
    """Add `premise_chars` and `hypothesis_chars`: what any annotator marked. All texts are split by one rule.

    The authors' files have columns such as `Sentence1_marked_1` with "Two *women* are *embracing*."; tables have tokens
    and `premise_highlight` or `hypothesis_highlight`, with 0 or 1 for each token.
    """
    rows: list[Row] = []
    for number, original in table.numbered():
        row: Row = {"label": original.get("label", original.get("gold_label"))}
        for side in SIDES:
            try:
                row[side], row[f"{side}_chars"] = _text_and_spans(original, side)
            except (KeyError, ValueError) as error:
                raise DataError(f"the {side}: {error}", path=table.path, row=number) from None
        rows.append(row)
    columns = tuple(name for side in SIDES for name in (side, f"{side}_chars"))
    return Table(table.path, (*columns, "label"), rows, table.numbers)


def _text_and_spans(row: Row, side: str) -> tuple[Any, CharSpans]:
    marked = [str(row[name]) for name in MARKED[side] if row.get(name)]
    if marked:
        return _from_stars(marked)
    if row.get(f"{side}_highlight") is not None:
        return _from_flags(row[f"{side}_tokens"], row[f"{side}_highlight"])
    return row.get(side, row.get(f"Sentence{SIDES[side]}")), None


def _from_stars(versions: list[str]) -> tuple[str, CharSpans]:
    """Return the text and the spans between stars in any of its versions."""
    texts = {version.replace("*", "") for version in versions}
    if len(texts) > 1:
        raise ValueError(f"the annotators' versions have different texts: {' / '.join(sorted(texts))}")
    spans: set[tuple[int, int]] = set()
    for version in versions:
        start = 0
        for k, part in enumerate(version.split("*")):
            if k % 2 and part:
                spans.add((start, start + len(part)))
            start += len(part)
    return texts.pop(), sorted(spans) or None


def _from_flags(tokens: Any, flags: Any) -> tuple[str, CharSpans]:
    words = [str(token) for token in parse_list(tokens, "tokens")]
    text, offsets = join(words)
    mask = mask_from_flags(parse_list(flags, "the highlights"), len(words))
    return text, [span for span, flag in zip(offsets, mask, strict=True) if flag] or None


register_dataset(
    Dataset(
        "esnli",
        CLASSES,
        Budget.count(4),
        drop_labels=NO_GOLD_LABEL,
        original_files="esnli_dev.csv",
        extra_columns=(
            *("gold_label", "Sentence1", "Sentence2", *MARKED["premise"], *MARKED["hypothesis"]),
            *("premise_highlight", "hypothesis_highlight"),
        ),
        prepare=prepare_esnli,
        splits=SPLITS,
        pairs=True,
    )
)
