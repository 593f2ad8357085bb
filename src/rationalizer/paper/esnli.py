"""e-SNLI (Camburu et al., 2018): the words of SNLI's pairs that people marked as the reason for the label."""

from __future__ import annotations

from typing import Any

from rationalizer.data.corpus_files import SplitNames
from rationalizer.data.row_parsing import from_mask, parsed
from rationalizer.data.table_files import Row, Table
from rationalizer.text.errors import DataError, at
from rationalizer.text.word_splitting import join

ESNLI_SPLITS: SplitNames = {"dev": ("dev", "esnli_dev"), "test": ("test", "esnli_test")}
_SIDES = {"premise": 1, "hypothesis": 2}  # which sentence each is in the authors' files
_PEOPLE = (1, 2, 3)  # who marked a pair of dev or test
_MARKED = {side: [f"Sentence{number}_marked_{k}" for k in _PEOPLE] for side, number in _SIDES.items()}
ESNLI_COLUMNS = (
    *("gold_label", "Sentence1", "Sentence2", *_MARKED["premise"], *_MARKED["hypothesis"]),
    *("premise_highlight", "hypothesis_highlight"),
)


def prepare_esnli(table: Table, aspect: str) -> Table:
    """The pairs with `premise_chars` and `hypothesis_chars`: what anyone marked, of texts that are cut by one rule.

    The authors' files have `Sentence1_marked_1` and the like, "Two *women* are *embracing*."; tables have tokens with
    `premise_highlight` or `hypothesis_highlight`, a 0 or 1 each.
    """
    rows: list[Row] = []
    for number, row in table.numbered():
        made: Row = {"label": row.get("label", row.get("gold_label"))}
        for side, place in _SIDES.items():
            try:
                marked = [str(row[name]) for name in _MARKED[side] if row.get(name)]
                if marked:
                    made[side], made[f"{side}_chars"] = _starred(marked)
                elif row.get(f"{side}_highlight") is not None:
                    made[side], made[f"{side}_chars"] = _flagged(row[f"{side}_tokens"], row[f"{side}_highlight"])
                else:
                    made[side], made[f"{side}_chars"] = row.get(side, row.get(f"Sentence{place}")), None
            except (KeyError, ValueError) as error:
                raise DataError(f"{at(table.path, number)}: the {side}: {error}") from None
        rows.append(made)
    columns = tuple(name for side in _SIDES for name in (side, f"{side}_chars"))
    return Table(table.path, (*columns, "label"), rows, table.numbers)


def _starred(versions: list[str]) -> tuple[str, list[tuple[int, int]] | None]:
    """The text, and the character spans that stand between stars in any version of it."""
    texts = {version.replace("*", "") for version in versions}
    if len(texts) > 1:
        raise ValueError(f"the marked versions are of different sentences: {' / '.join(sorted(texts))}")
    spans: set[tuple[int, int]] = set()
    for version in versions:
        start = 0
        for k, part in enumerate(version.split("*")):
            if k % 2 and part:
                spans.add((start, start + len(part)))
            start += len(part)
    return texts.pop(), sorted(spans) or None


def _flagged(tokens: Any, flags: Any) -> tuple[str, list[tuple[int, int]] | None]:
    words = [str(token) for token in parsed(tokens, "tokens")]
    text, offsets = join(words)
    marked = from_mask(parsed(flags, "the highlights"), len(words))
    return text, [span for span, flag in zip(offsets, marked, strict=True) if flag] or None
