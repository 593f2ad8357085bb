"""Word vectors and BiLSTMs: the encoder of the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from rationalizer.nn.bilstm import BiLSTM, read_by_length
from rationalizer.nn.dropout import Dropout
from rationalizer.nn.encoders.base import EncodedSelection, Encoder, LeftOut, Punctuation, register
from rationalizer.nn.lstm_without_words import leave_out
from rationalizer.ranges import Count, Size
from rationalizer.text import (
    BUNDLED,
    DataError,
    Example,
    SentenceRule,
    SplitRule,
    VectorLookup,
    Vocabulary,
    WordBatch,
    WordVectors,
    is_punctuation,
    load_vectors,
)
from rationalizer.text.token_cache import TokenCache
from rationalizer.text.word_batch import closing_order, gather_words

MIN_COVERAGE = 0.7  # the share of running words with a vector from which the bundled English vectors are used


@dataclass(frozen=True)
class VectorWordBatch(WordBatch):
    """Words as rows of the encoder's two tables; row 0 is empty."""

    parts: Tensor  # (batch, n, k) int64, rows of the pretrained table; a word's vector is the mean of its parts'
    seen: Tensor  # (batch, n) int64, rows of the table learned in training


@dataclass(frozen=True, kw_only=True)
class VectorOptions:
    """The settings of `VectorEncoder`."""

    embeddings: str | None = "auto"  # word vectors: a known name, a file, none; auto: English ones if they fit
    vector_size: Size = 64  # size of word vectors learned from scratch
    tuned: bool = True  # whether words of the training texts learn vectors in addition to pretrained ones
    lower: bool = True  # whether words are lower-cased
    min_count: Count = 1  # words with fewer occurrences learn no vector
    hidden: Size = 64  # units of the LSTMs in each direction
    word_scores: bool = True  # whether the generator sees a word's own vector in addition to its state
    word_sums: bool = True  # whether the predictor sees the sum of the selected words' vectors in addition to states
    shared: bool = False  # whether generator and predictor share one network
    gaps: Literal["kept", "closed"] = "kept"  # whether unselected words keep their positions, or the gaps are closed


@register("bilstm")
class VectorEncoder(Encoder):
    """A word's vector is a pretrained one plus a learned one, x = mean of pretrained[parts] + learned[seen].

    The pretrained table holds every word that the vectors know, seen in training or not, and never changes. The
    learned one has a row for every word of the training texts; it starts at 0 for words that have a pretrained vector.
    A word in neither table is unknown: its vector is 0.

    One BiLSTM computes the generator's states and another one the predictor's, from z ⊙ x. The states of opinion words
    leak into those of their neighbours, so the generator also sees each word's own vector. The predictor also sees
    Σ z x / √(Σ z), in which every selected word counts.

    Args:
        vocabulary: the words of the training texts.
        vectors: the pretrained vectors; None to learn all of them.
        options: see `VectorOptions`.
        rule, punctuation, sentences: see `Encoder`.
        dropout: of vectors and states.
        generates, predicts: whether `states` and `encode_selection` will be used.
    """

    supports_last_pooling = True
    pair_preset: ClassVar[Mapping[str, Any]] = {
        "pooling": "max-mean",  # as in ESIM
        "budget": 0.5,
        "word_scores": False,
        "dropout": 0.1,
        "averaging": 0.0,
        "keep_by": "score",
        "epochs": 25,
    }
    uses_dataset_presets = True
    Options = VectorOptions
    Network: ClassVar[type[Any]] = BiLSTM  # built with (size_in, hidden); (vectors, mask) -> states of `size_out`
    codes: Tensor
    scales: Tensor

    def __init__(
        self,
        vocabulary: Vocabulary,
        vectors: WordVectors | None = None,
        options: VectorOptions | None = None,
        *,
        rule: SplitRule = "words",
        punctuation: Punctuation = "free",
        sentences: SentenceRule = "punctuation",
        dropout: float = 0.1,
        generates: bool = True,
        predicts: bool = True,
    ) -> None:
        super().__init__(rule=rule, punctuation=punctuation, sentences=sentences)
        options = options or VectorOptions()
        self.vocabulary = vocabulary
        self.vectors = vectors
        self.lookup = None if vectors is None else VectorLookup(vectors.words)
        self._table_rows = TokenCache(self._rows)
        size = options.vector_size if vectors is None else vectors.size
        codes = np.zeros((0, size), dtype=np.int8) if vectors is None else vectors.codes
        scales = np.zeros(0, dtype=np.float32) if vectors is None else vectors.scales
        # Row 0 is empty. Not persistent: these constants are stored as tables, not as weights.
        self.register_buffer("codes", torch.from_numpy(np.pad(codes, ((1, 0), (0, 0)))), persistent=False)
        self.register_buffer("scales", torch.from_numpy(np.pad(scales, (1, 0))), persistent=False)
        self.learned = nn.Embedding(len(vocabulary), size, padding_idx=0)
        self.learned.weight.requires_grad_(options.tuned or vectors is None)
        self.dropout = Dropout(dropout)
        self.generator = self.Network(size, options.hidden) if generates else None
        self.predicts = predicts
        alone = predicts and not (generates and options.shared)
        self.predictor = self.Network(size, options.hidden) if alone else None
        self.settings = options
        network = self._predictor_network
        assert network is not None, "an encoder needs a generator or a predictor"
        self.ignores_gaps = self.settings.gaps == "closed"
        self.selection_size = network.size_out
        self.size = self.selection_size + (size if options.word_scores else 0)
        self.global_size = size if options.word_sums else 0

    @classmethod
    def prepare(cls, source: str, words: Counter[str], options: VectorOptions, **arguments: Any) -> VectorEncoder:
        vocabulary = Vocabulary.from_counts(words, lower=options.lower, min_count=options.min_count)
        vectors = _load_vectors(options.embeddings, words, vocabulary)
        encoder = cls(vocabulary, vectors, options, **arguments)
        encoder._initialize_vectors()
        return encoder

    @torch.no_grad()
    def _initialize_vectors(self) -> None:
        """Draw the learned vectors: 0 for words with a pretrained vector."""
        weight = self.learned.weight
        if self.vectors is None:
            if self.predicts:
                weight.mul_(0.3)  # the scale of pretrained vectors; pairs are aligned by differences between words
            return
        weight.mul_(float(self.vectors.decoded()[:10_000].std()))
        assert self.lookup is not None
        known = [index for index, word in enumerate(self.vocabulary.words, 1) if self.lookup.find_rows(word)]
        weight[known] = 0

    def knows(self, token: str) -> bool:
        parts, seen = self._table_rows[token]
        return bool(parts or seen)

    def _rows(self, token: str) -> tuple[tuple[int, ...], int]:
        """The word's rows of the pretrained table, and its row of the learned one."""
        seen = self.vocabulary.id(token)
        # Look up a seen word in the vocabulary's spelling, as when its learned vector was initialized.
        form = self.vocabulary.words[seen - 1] if seen else token
        return () if self.lookup is None else tuple(row + 1 for row in self.lookup.find_rows(form)), seen

    def collate(self, texts: Sequence[Example]) -> VectorWordBatch:
        masks = self.word_masks([text.tokens for text in texts])
        mask = masks[0]
        looked_up = self._table_rows.get_all(chain.from_iterable(text.tokens for text in texts))
        seen = torch.zeros(mask.shape, dtype=torch.int64)
        seen[mask] = torch.tensor([row for _, row in looked_up], dtype=torch.int64)
        rows = [rows for rows, _ in looked_up]
        count = np.fromiter(map(len, rows), np.int64, len(rows))
        table = np.zeros((len(rows), max(1, count.max(initial=0))), dtype=np.int64)
        used = np.arange(table.shape[1]) < count[:, None]
        table[used] = np.fromiter(chain.from_iterable(rows), np.int64, count.sum())
        parts = torch.zeros((*mask.shape, table.shape[1]), dtype=torch.int64)
        parts[mask] = torch.from_numpy(table)
        return VectorWordBatch(*masks, parts, seen)

    def word_vectors(self, words: WordBatch) -> Tensor:
        """(batch, n, vector size); 0 on padding and unknown words."""
        assert isinstance(words, VectorWordBatch)
        learned = self.learned(words.seen)
        if self.vectors is None:
            return learned
        scales = (self.scales[words.parts] / (words.parts != 0).sum(-1, keepdim=True).clamp(min=1)).to(learned.dtype)
        if words.parts.is_cuda:  # finding words with several parts would make the host wait for the device
            return (self.codes[words.parts].to(learned.dtype) * scales[..., None]).sum(-2) + learned
        # Few words have several parts; gathering all parts of all words would take several times the memory.
        pretrained = self.codes[words.parts[..., 0]].to(learned.dtype) * scales[..., 0, None]
        for part in range(1, words.parts.shape[-1]):
            where = words.parts[..., part].nonzero(as_tuple=True)
            rows = words.parts[where][:, part]
            pretrained[where] += self.codes[rows].to(learned.dtype) * scales[where][:, part, None]
        return pretrained + learned

    def states(self, words: WordBatch) -> Tensor:
        assert self.generator is not None, "this encoder was built without a generator"
        vectors = self.dropout(self.word_vectors(words))
        states = self.dropout(self.generator(vectors, words.mask))
        return torch.cat([states, vectors], dim=-1) if self.settings.word_scores else states

    def encode_selection(self, words: WordBatch, z: Tensor) -> EncodedSelection:
        """Vectors of words with z = 0 are replaced by zeros: not even the sign of 0 · x is visible."""
        network = self._predictor_network
        assert network is not None
        vectors = self.dropout(self.word_vectors(words))
        weights = z.to(vectors.dtype)[..., None]
        visible = torch.where(weights != 0, weights * vectors, vectors.new_zeros(()))
        total = weights.sum(1).clamp(min=1e-6).sqrt()
        global_state = visible.sum(1) / total if self.settings.word_sums else visible[:, 0, :0]
        mask = words.mask
        if self.settings.gaps == "closed":
            order = closing_order(z != 0)
            visible, mask = gather_words(visible, order), (z != 0).gather(1, order)
        return EncodedSelection(network(visible, mask), mask, global_state)

    def encode_selections(self, words: WordBatch, z: Tensor) -> EncodedSelection:
        """With `gaps="closed"` the vectors are looked up once, and the network reads selected words only, on a CPU of
        selections of similar lengths at a time."""
        if self.settings.gaps != "closed":
            return super().encode_selections(words, z)
        network = self._predictor_network
        assert network is not None
        vectors = self.dropout(self.word_vectors(words))
        labels, n = z.shape[1:]
        z = z.flatten(0, 1).to(vectors.dtype)
        order = closing_order(z != 0)
        weights = z.gather(1, order)
        text = torch.arange(len(words), device=z.device).repeat_interleave(labels)
        at = (text[:, None] * n + order).flatten()  # as one index: its backward adds in a fixed order
        own = vectors.flatten(0, 1).index_select(0, at).view(*order.shape, -1)
        mask = weights != 0
        visible = torch.where(mask[..., None], weights[..., None] * own, vectors.new_zeros(()))
        total = weights.sum(1, keepdim=True).clamp(min=1e-6).sqrt()
        global_state = visible.sum(1) / total if self.settings.word_sums else visible[:, 0, :0]
        read = network if visible.is_cuda else partial(read_by_length, network)  # lengths are not known on the host
        return EncodedSelection(read(visible, mask), mask, global_state)

    @property
    def _predictor_network(self) -> Any:
        """The predictor's network, which may be the generator's."""
        return self.generator if self.predictor is None else self.predictor

    @property
    def can_leave_out(self) -> bool:
        network, weight = self._predictor_network, self.learned.weight
        single = weight.device.type == "cpu" and weight.dtype == torch.float32
        return single and type(network) is BiLSTM and self.settings.gaps != "closed"

    def max_states_without(self, words: WordBatch, z: Tensor, places: Sequence[Sequence[int]]) -> LeftOut:
        network = self._predictor_network
        selected = words.only(z != 0)
        vectors = self.word_vectors(selected)[selected.mask]
        states, global_state = leave_out(network, vectors, z, words.mask.sum(1), places)
        return LeftOut(states, global_state[:, : self.global_size])

    def description(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "punctuation": self.punctuation,
            "sentences": self.sentences,
            "vector_size": self.learned.embedding_dim,
            "pretrained_words": 0 if self.vectors is None else len(self.vectors),
            "vocabulary": self.vocabulary.to_json(),
        }

    def summary(self) -> dict[str, Any]:
        pretrained = 0 if self.vectors is None else len(self.vectors)
        return {**super().summary(), "pretrained": pretrained, "seen in training": len(self.vocabulary.words)}

    def tables(self) -> dict[str, Tensor]:
        if self.vectors is None:
            return {}
        return {name: torch.from_numpy(array) for name, array in self.vectors.to_arrays().items()}

    @classmethod
    def restore(
        cls, description: Mapping[str, Any], tables: Mapping[str, Tensor], options: VectorOptions, **arguments: Any
    ) -> VectorEncoder:
        missing = [key for key in ("vector_size", "pretrained_words", "vocabulary") if key not in description]
        if missing:
            raise ValueError(f"{missing[0]!r} is missing")
        vectors = WordVectors.from_arrays({name: table.numpy() for name, table in tables.items()}) if tables else None
        if (0 if vectors is None else len(vectors)) != description["pretrained_words"]:
            raise ValueError(
                f"the encoder was saved with {description['pretrained_words']} pretrained words, but its table has "
                f"{0 if vectors is None else len(vectors)}"
            )
        return cls(
            Vocabulary.from_json(description["vocabulary"]),
            vectors,
            options,
            rule=description["rule"],
            punctuation=description["punctuation"],
            sentences=description["sentences"],
            **arguments,
        )


def _load_vectors(source: str | None, words: Counter[str], vocabulary: Vocabulary) -> WordVectors | None:
    if source is None:
        return None
    if source != "auto":
        vectors = load_vectors(source, keep=set(vocabulary.words))
        if vocabulary.words and not coverage(VectorLookup(vectors.words), words):
            raise DataError(
                f"{source}: none of the {len(vocabulary.words)} words of the training texts has a vector; check the "
                "language of the vectors and the format of the file"
            )
        return vectors
    vectors = load_vectors(BUNDLED)
    return vectors if coverage(VectorLookup(vectors.words), words) >= MIN_COVERAGE else None


def coverage(lookup: VectorLookup, words: Counter[str]) -> float:
    """The share of running words that have a vector."""
    running = {word: count for word, count in words.items() if not is_punctuation(word)}
    known = sum(count for word, count in running.items() if lookup.find_rows(word))
    return known / sum(running.values()) if running else 1.0
