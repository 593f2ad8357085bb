"""The constraints of a batch of texts, and checks that each text can satisfy them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from rationalizer.constraints import (
    BatchItem,
    ConstraintConflict,
    LayerConstraints,
    PairLayerConstraints,
    build_layer_constraints,
    build_pair_layer_constraints,
)
from rationalizer.constraints.base import list_constraints
from rationalizer.data import Corpus
from rationalizer.models.config import Config
from rationalizer.nn import ALIGNERS, Encoder
from rationalizer.text import AnyExample, Example, PairExample
from rationalizer.text.errors import short_repr

CHECKED_TEXTS = 256  # texts per batch of the check


@dataclass(frozen=True)
class BatchConstraints:
    """Builds the constraints of a batch, as layers take them.

    Args:
        config: has the constraints, the budget and the method.
        encoder: knows where sentences end.
        texts: the number of texts in the dataset.
        check: whether to raise `ConstraintConflict` for texts that cannot satisfy the constraints.
    """

    config: Config
    encoder: Encoder
    texts: int
    check: bool = True

    def __call__(
        self, examples: Sequence[tuple[int, AnyExample]], counted: Sequence[Tensor]
    ) -> LayerConstraints | PairLayerConstraints | None:
        """Return the constraints of (position, example) pairs; `counted` masks the words that can be selected."""
        if not self.config.constraints:
            return None
        if self.config.pairs:
            pairs = [BatchItem(cast("PairExample", example), position, self.texts) for position, example in examples]
            return self._build_for_pairs(pairs, counted)
        texts = [BatchItem(cast("Example", example), position, self.texts) for position, example in examples]
        how: dict[str, Any] = {"rule": self.encoder.sentences, "check": self.check}
        return build_layer_constraints(self.config.constraints, texts, counted[0], self.config.budget, **how)

    def _build_for_pairs(self, pairs: Sequence[BatchItem], counted: Sequence[Tensor]) -> PairLayerConstraints:
        """A pair can satisfy the constraints if the method decodes an alignment, whatever the scores."""
        constraints = self.config.constraints
        built, drafts = build_pair_layer_constraints(constraints, pairs, counted)
        if not self.check or (built.fixed is None and built.exactly is None):
            return built
        aligner = ALIGNERS[self.config.method](**self.config.options)
        decode: Any = aligner.decode
        allowed = self.config.budget.word_limit(*counted)
        for row, draft in enumerate(drafts):
            own = [side[row : row + 1] for side in (*counted, allowed)]
            reason = draft.find_conflict(own[0][0].numpy(), own[1][0].numpy(), monotone=built.monotone)
            if reason is None:
                try:
                    decode(torch.zeros(1, own[0].shape[1], own[1].shape[1]), *own, constraints=built.for_row(row))
                except ValueError:  # these arguments allow no other error
                    words = " and ".join(str(int(side.sum())) for side in own[:2])
                    most = f", budget {int(own[2])}" if aligner.uses_budget else ""
                    reason = f"no alignment by {self.config.method} satisfies all of them ({words} words{most})"
            if reason is not None:
                raise draft.item.conflict(constraints, reason, "leave a constraint out, or change it")
        return built


def find_conflicts(examples: Sequence[AnyExample], config: Config, encoder: Encoder) -> dict[int, ConstraintConflict]:
    """Return the conflicts of all examples that cannot satisfy the constraints, by the example's index."""
    build = BatchConstraints(config, encoder, len(examples))
    found: dict[int, ConstraintConflict] = {}
    for index, example in enumerate(examples):
        try:
            build([(index, example)], [encoder.word_masks([text.tokens])[1] for text in example.texts])
        except ConstraintConflict as error:
            found[index] = error
    return found


def check_constraints(corpus: Corpus, config: Config, encoder: Encoder) -> None:
    """Raise `ConstraintConflict` if a train or dev text has no feasible selection; warn if only the empty one is."""
    if not config.constraints:
        return
    for split, examples in (("train", corpus.train), ("dev", corpus.dev)):
        build = BatchConstraints(config, encoder, len(examples))
        empty: list[int] = []
        for start in range(0, len(examples), CHECKED_TEXTS):
            part = list(enumerate(examples[start : start + CHECKED_TEXTS], start))
            counted = [
                encoder.word_masks([text.tokens for text in side])[1]
                for side in zip(*(example.texts for _, example in part), strict=True)
            ]
            try:
                built = build(part, counted)
            except ConstraintConflict as error:
                raise error.with_place(f"{corpus.name} {split}: {error.place}") from None
            assert built is not None
            possible = built.allow_any(config.budget.word_limit(*counted), *counted)
            empty += [part[row][0] for row in torch.nonzero(~possible).flatten().tolist()]
        if len(empty) == len(examples) > 0:
            raise ConstraintConflict(
                f"no word can be selected in any text under {list_constraints(config.constraints)} and a budget of "
                f"{config.budget.describe()}",
                "raise the budget, or leave a constraint out",
                place=f"{corpus.name} {split}:",
            )
        if empty:
            warn_about_empty_rationales(empty, examples, config, f" of {corpus.name} {split}")


def warn_about_empty_rationales(
    empty: Sequence[int], examples: Sequence[AnyExample], config: Config, where: str = ""
) -> None:
    """Warn about texts in which nothing is selected, and name the first."""
    text = " / ".join(part.text for part in examples[empty[0]].texts)
    warnings.warn(
        f"under {list_constraints(config.constraints)} and a budget of {config.budget.describe()} nothing is selected "
        f"in {len(empty)} of {len(examples)} texts{where}, first in text {empty[0] + 1} ({short_repr(text)}); "
        "their predictions are guesses; raise the budget",
        stacklevel=3,
    )
