"""The base class of encoders, which turn texts into words and words into states, and their registry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from itertools import chain
from typing import Any, ClassVar, NamedTuple, get_type_hints

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rationalizer.discovery import Registry
from rationalizer.ranges import check_ranges, ranges_of
from rationalizer.text import Example, Offsets, SentenceRule, SplitRule, WordBatch, split_words
from rationalizer.text.token_cache import TokenCache
from rationalizer.text.token_kinds import Punctuation as Punctuation  # also imported from here
from rationalizer.text.token_kinds import counted_tokens, selectable_tokens, token_kind


class EncodedSelection(NamedTuple):
    """What the predictor sees of a selection."""

    states: Tensor  # (batch, k, selection_size) one state per position
    weights: Tensor  # (batch, k) the weight of each position; 0 (False) on padding
    global_state: Tensor  # (batch, global_size) one state of the selection as a whole; often of size 0


class LeftOut(NamedTuple):
    """Each text, followed by its variants without one word."""

    states: Tensor  # (texts + variants, selection_size) the maximum of each state over the positions
    global_state: Tensor  # (texts + variants, global_size)


class Encoder(nn.Module):
    """An encoder is saved with the model, so that inference splits and encodes texts exactly as training did.

    Args:
        rule: how texts are split into words, see `rationalizer.text.word_splitting`.
        punctuation: "free": punctuation does not use the budget, and is read if the words on both sides are. Words
            that the encoder does not know carry no information and cannot be selected. "count" treats all tokens alike,
            except that empty tokens and white space, as some tokenized corpora have them, can never be selected.
        sentences: where sentences end, see `rationalizer.text.sentence_splitting`; constraints on sentences use it.
    """

    name: ClassVar[str]  # key of the class in `ENCODERS`
    Options: ClassVar[type]  # dataclass with the encoder's settings and their defaults
    loads_pretrained: ClassVar[bool] = False  # whether the setting `encoder` is a name on the Hub or a folder
    supports_xavier: ClassVar[bool] = True  # whether `initial_weights=xavier` may replace all initial weights
    supports_last_pooling: ClassVar[bool] = (
        False  # whether a state is the concatenation of two directions, as in a BiLSTM
    )
    uses_threads: ClassVar[bool] = False  # whether it is large enough to be faster on several CPU threads
    prefers_bf16: ClassVar[bool] = False  # whether training in bfloat16 is faster without lower scores
    preset: ClassVar[Mapping[str, Any]] = {}  # training settings that replace the defaults for this encoder
    pair_preset: ClassVar[Mapping[str, Any]] = {"pooling": "max-mean", "budget": 0.5}  # further settings for pairs
    uses_dataset_presets: ClassVar[bool] = False  # whether the presets of datasets apply
    size: int  # size of a word's state from `states`
    selection_size: int  # size of a position's state from `encode_selection`
    global_size: int = 0  # size of the global state from `encode_selection`
    ignores_gaps: bool = False  # whether `encode_selection` depends on selected words and their order only, not on gaps
    score_scale: float = 1.0  # factor applied to the dot products of states that score alignments

    def __init__(self, *, rule: SplitRule, punctuation: Punctuation, sentences: SentenceRule) -> None:
        super().__init__()
        self.rule: SplitRule = rule
        self.punctuation: Punctuation = punctuation
        self.sentences: SentenceRule = sentences
        self._kind = TokenCache(self._kind_of)

    @classmethod
    def options(cls) -> dict[str, tuple[type, Any]]:
        """The encoder's settings: name -> (type, default)."""
        types = get_type_hints(cls.Options)
        return {item.name: (types[item.name], item.default) for item in fields(cls.Options)}

    @classmethod
    def check(cls, options: Mapping[str, Any]) -> None:
        """Raise ValueError if a setting is out of its range."""
        check_ranges(ranges_of(cls.Options), options)

    @classmethod
    def preset_for(cls, chosen: Mapping[str, Any]) -> Mapping[str, Any]:
        """Further settings that replace the defaults, because of those that the user has chosen."""
        return {}

    @classmethod
    def prepare(cls, source: str, words: Counter[str], options: Any, **arguments: Any) -> Encoder:
        """A new encoder for training on texts with these word counts.

        Args:
            source: the setting `encoder`: the encoder's name, or what it loads.
            words: how often each word occurs in the training texts.
            options: an instance of `Options`.
            arguments: rule, punctuation, sentences, dropout, generates, predicts.
        """
        raise NotImplementedError

    def split_words(self, text: str) -> tuple[tuple[str, ...], Offsets]:
        """The words of a text and their offsets, exactly as in training."""
        return split_words(text, self.rule)

    def knows(self, token: str) -> bool:
        """Whether the encoder can distinguish the word from words it has never seen."""
        raise NotImplementedError

    def collate(self, texts: Sequence[Example]) -> WordBatch:
        """A batch with one text per row."""
        raise NotImplementedError

    def states(self, words: WordBatch) -> Tensor:
        """(batch, n, size) the generator's state of each word in the context of the whole text; 0 on padding."""
        raise NotImplementedError

    def encode_selection(self, words: WordBatch, z: Tensor) -> EncodedSelection:
        """What the predictor sees of the selection z. Words with z = 0 must not change a single bit of it."""
        raise NotImplementedError

    def encode_selections(self, words: WordBatch, z: Tensor) -> EncodedSelection:
        """`encode_selection` of several selections z (batch, labels, n) of each text: batch · labels rows."""
        return self.encode_selection(words.repeat(z.shape[1]), z.flatten(0, 1))

    @property
    def can_leave_out(self) -> bool:
        """Whether `max_states_without` is available."""
        return False

    def max_states_without(self, words: WordBatch, z: Tensor, places: Sequence[Sequence[int]]) -> LeftOut:
        """`encode_selection`, with max pooling, of the selection z (batch, n) of each text and of the same selection
        with z = 0 at each of the text's `places`, in ascending order. Faster, and only available if `can_leave_out`."""
        raise NotImplementedError

    def storing_states(self) -> AbstractContextManager[None]:
        """A context in which states that do not change during a training may be stored; used by the training only."""
        return nullcontext()

    def rates(self) -> dict[str, float]:
        """The learning rates of the submodules `generator` and `predictor`, if they differ from the model's."""
        return {}

    def description(self) -> dict[str, Any]:
        """Everything that defines this encoder but its tensors, as JSON; `restore` reads it."""
        raise NotImplementedError

    def summary(self) -> dict[str, Any]:
        """A few facts for `info` and the training's first line."""
        return {"rule": self.rule, "punctuation": self.punctuation}

    def tables(self) -> dict[str, Tensor]:
        """Large constants, stored once beside the trained weights."""
        return {}

    @classmethod
    def restore(
        cls, description: Mapping[str, Any], tables: Mapping[str, Tensor], options: Any, **arguments: Any
    ) -> Encoder:
        """The encoder of a description; its weights are loaded with the model's."""
        raise NotImplementedError

    def word_masks(self, texts: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor, Tensor]:
        """The masks of `WordBatch` for these tokens, see `text.token_kinds`."""
        lengths = np.array([len(tokens) for tokens in texts])
        mask = np.arange(lengths.max()) < lengths[:, None]
        counted, punctuation = selectable_tokens(self.kinds(chain.from_iterable(texts)), mask, self.punctuation)
        return torch.from_numpy(mask), torch.from_numpy(counted), torch.from_numpy(punctuation)

    def kinds(self, tokens: Iterable[str]) -> NDArray[np.int8]:
        """PUNCTUATION, BLANK, KNOWN or UNKNOWN of `text.token_kinds`, for each token."""
        return np.array(self._kind.get_all(tokens), dtype=np.int8)

    def _kind_of(self, token: str) -> int:
        return token_kind(token, self.knows)

    def counted(self, tokens: Sequence[str]) -> NDArray[np.bool_]:
        """Which of a text's tokens can use the budget."""
        return counted_tokens(self.kinds(tokens), self.punctuation)


ENCODERS: Registry[type[Encoder]] = Registry("encoder")
register = ENCODERS.register
