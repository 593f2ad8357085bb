"""What all encoders have in common: they alone know how text becomes words and words become states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any, ClassVar, Literal, NamedTuple, get_type_hints

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rationalizer.ranges import check_ranges, ranges_of
from rationalizer.text import Example, Offsets, SentenceRule, SplitRule, WordBatch, is_punctuation, split_words
from rationalizer.text.token_cache import TokenCache

Punctuation = Literal["free", "count"]
UNKNOWN, KNOWN, MARK = 0, 1, 2  # kinds of tokens


class Reading(NamedTuple):
    """What the predictor sees of a selection."""

    states: Tensor  # (batch, k, read_size) one for every position that is read
    weights: Tensor  # (batch, k) how much a position counts; 0 (False) where nothing is, as on padding
    whole: Tensor  # (batch, whole_size) what the encoder says of the selection as a whole; often nothing


class Encoder(nn.Module):
    """A encoder is saved with the model and serves training and use alike.

    Args:
        rule: how texts are cut into words, see `rationalizer.text.word_splitting`.
        punctuation: "free" marks use up none of the budget and are read along where the words on both sides are.
        WordBatch
            that the encoder does not know say nothing, and cannot be selected. "count" treats all tokens alike.
        sentences: where sentences end, see `rationalizer.text.sentence_splitting`; it matters to constraints on them.
    """

    name: ClassVar[str]  # in `ENCODERS`
    Options: ClassVar[type]  # a dataclass: what can be set of this encoder, with defaults
    size: int  # of what `states` gives for a word
    read_size: int  # of what `read` gives for a position
    whole_size: int = 0  # of what it gives for the selection as a whole
    alikeness: float = 1.0  # what the products of two words' states are multiplied with, to align them

    def __init__(self, *, rule: SplitRule, punctuation: Punctuation, sentences: SentenceRule) -> None:
        super().__init__()
        self.rule: SplitRule = rule
        self.punctuation: Punctuation = punctuation
        self.sentences: SentenceRule = sentences
        self._kind = TokenCache(self._kind_of)

    @classmethod
    def options(cls) -> dict[str, tuple[type, Any]]:
        """What can be set of this encoder: name -> (type, default)."""
        types = get_type_hints(cls.Options)
        return {item.name: (types[item.name], item.default) for item in fields(cls.Options)}

    @classmethod
    def check(cls, options: Mapping[str, Any]) -> None:
        """ValueError where the settings are out of their ranges."""
        check_ranges(ranges_of(cls.Options), options)

    @classmethod
    def prepare(cls, source: str, words: Counter[str], options: Any, **how: Any) -> Encoder:
        """A encoder for a training on texts in which the words come so often. `source` is the encoder's name or folder;
        `how` it reads: rule, punctuation, sentences, dropout, and what is asked of it (generates, predicts)."""
        raise NotImplementedError

    def split_words(self, text: str) -> tuple[tuple[str, ...], Offsets]:
        """The words of a text and where they stand in it, exactly as in training."""
        return split_words(text, self.rule)

    def knows(self, token: str) -> bool:
        """Whether the encoder can tell the word from others it has never met."""
        raise NotImplementedError

    def collate(self, texts: Sequence[Example]) -> WordBatch:
        """One text of each row of a batch."""
        raise NotImplementedError

    def states(self, words: WordBatch) -> Tensor:
        """(batch, n, size) what the generator sees of each word, in the context of the whole text; 0 on padding."""
        raise NotImplementedError

    def read(self, words: WordBatch, z: Tensor) -> Reading:
        """What the predictor sees. Nothing of a word with z = 0 comes through, not a bit of it."""
        raise NotImplementedError

    def rates(self) -> dict[str, float]:
        """Learning rates of its parts `generator` and `predictor`, where they have their own."""
        return {}

    def description(self) -> dict[str, Any]:
        """All that makes this encoder but its tensors, as JSON; `ENCODERS[name].restore` reads it again."""
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """What there is to say of it in a line."""
        return {"rule": self.rule, "punctuation": self.punctuation}

    def tables(self) -> dict[str, Tensor]:
        """Large constants, kept once beside the trained weights."""
        raise NotImplementedError

    @classmethod
    def restore(
        cls, description: Mapping[str, Any], tables: Mapping[str, Tensor], options: Any, **network: Any
    ) -> Encoder:
        """The encoder that was described; its weights come with the model's."""
        raise NotImplementedError

    def counts(self, texts: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor, Tensor]:
        """The masks of `WordBatch` for these tokens. In a text of punctuation and unknown words only, these count."""
        lengths = np.array([len(tokens) for tokens in texts])
        mask = np.arange(lengths.max()) < lengths[:, None]
        counted, marks = mask.copy(), np.zeros_like(mask)
        if self.punctuation == "free":
            kinds = self.kinds(chain.from_iterable(texts))
            marks[mask] = kinds == MARK
            counted[mask] = kinds == KNOWN
            nothing = ~counted.any(1, keepdims=True)
            counted |= mask & nothing
            marks &= ~nothing
        return torch.from_numpy(mask), torch.from_numpy(counted), torch.from_numpy(marks)

    def kinds(self, tokens: Iterable[str]) -> NDArray[np.int8]:
        """Of each token, whether it is a mark, a word that the encoder knows, or another."""
        return np.array(self._kind.of(tokens), dtype=np.int8)

    def _kind_of(self, token: str) -> int:
        if is_punctuation(token):
            return MARK
        return KNOWN if self.knows(token) else UNKNOWN

    def counted(self, tokens: Sequence[str]) -> NDArray[np.bool_]:
        """Which of a text's tokens can use up the budget."""
        counted: NDArray[np.bool_] = self.counts([tokens])[1][0].numpy()
        return counted
