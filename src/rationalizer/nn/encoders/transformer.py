"""Transformers of the Hugging Face Hub, with words as units."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from rationalizer.nn.encoders.base import EncodedSelection, Encoder, Punctuation, register
from rationalizer.nn.encoders.pretrained import Pretrained, encode, freeze, load_pretrained
from rationalizer.nn.encoders.stored_states import StoredStates
from rationalizer.nn.encoders.windows import Windows, lay_out
from rationalizer.ranges import CountOrNone, Number, NumberOrNone, Rate
from rationalizer.text import DataError, Example, SentenceRule, SplitRule, WordBatch
from rationalizer.text.subwords import MAX_SUBWORDS

# Settings of the training on top of a frozen network, which takes larger steps, and more of them.
FROZEN: Mapping[str, Any] = {"learning_rate": 1e-2, "epochs": 40, "min_epochs": 10, "full_text_epochs": 5}
ROWS_PER_CALL = 64  # without gradients: bounds the memory of texts of any length


@dataclass(frozen=True)
class SubwordBatch(WordBatch):
    """Words as the tokenizer's subwords."""

    tokens: Tensor  # (batch, n, k) int64
    sizes: Tensor  # (batch, n) int64, the number of the word's subwords; 0 on padding


@dataclass(frozen=True, kw_only=True)
class TransformerOptions:
    """The settings of `TransformerEncoder`."""

    revision: str | None = None  # branch, tag or commit of the encoder on the Hub
    shared: bool = False  # whether generator and predictor share one network, with learning rate generator_rate
    generator_rate: Rate = 5e-5  # learning rate of the generator's network; 0: frozen
    predictor_rate: Rate = 3e-5  # learning rate of the predictor's network; 0: frozen
    frozen_layers: Number = 0  # number of lowest layers that are frozen, together with the embeddings
    unselected: Literal["out", "mask", "zero"] = "out"  # excluded from attention; a mask's vector or 0 in their place
    gaps: Literal["kept", "marked", "closed"] = "closed"  # positions of unselected words: one each, one per run, none
    window: CountOrNone = None  # tokens per row; none: as many as the encoder can
    overlap: NumberOrNone = None  # tokens of context on either side of a window; none: an eighth of it
    checkpointing: bool = False  # whether layers are recomputed in the backward pass, to save memory
    frozen: bool = False  # train only what is on top of one frozen network; its states are computed once


@register("transformer")
class TransformerEncoder(Encoder):
    """A word's state is the mean of its subwords' states; texts longer than the window are encoded in overlapping
    windows.

    The predictor's network encodes z ⊙ x, x the subwords' vectors, without the unselected words: the selection is
    encoded as a text of its own. With `gaps="kept"` each unselected word takes one empty position that is excluded from
    attention, however many subwords it has; the network can then tell how many words there are and where the selected
    ones stand.

    Args:
        pretrained: the pretrained network and its tokenizer.
        options: see `TransformerOptions`.
        rule, punctuation, sentences: see `Encoder`.
        generates, predicts: whether `states` and `encode_selection` will be used.
    """

    loads_pretrained = True
    supports_xavier = False
    uses_threads = True
    prefers_bf16 = True
    preset: ClassVar[Mapping[str, Any]] = {
        "optimizer": "adamw",  # small steps, with warm-up and decay
        "learning_rate": 1e-3,
        "weight_decay": 0.01,
        "warmup": 0.1,
        "decay": True,
        "clip": 1.0,
        "checkpoint_seconds": 600.0,  # a checkpoint takes gigabytes
        "epochs": 6,
        "full_text_weight": 1.0,
        "full_text_epochs": 1,  # a predictor that knows words already tells the generator what is worth selecting
        "dropout": 0.1,
        "averaging": 0.0,
        "keep_by": "score",
        "pooling": "mean",
    }
    Options = TransformerOptions

    def __init__(
        self,
        pretrained: Pretrained,
        options: TransformerOptions | None = None,
        *,
        rule: SplitRule = "words",
        punctuation: Punctuation = "free",
        sentences: SentenceRule = "punctuation",
        generates: bool = True,
        predicts: bool = True,
    ) -> None:
        super().__init__(rule=rule, punctuation=punctuation, sentences=sentences)
        self.settings = options or TransformerOptions()
        self.pretrained = pretrained
        self.subwords = pretrained.subwords
        self.room, self.overlap = self._row_sizes()
        if self.settings.unselected == "mask" and self.subwords.mask is None:
            raise DataError(f"{pretrained.source!r} has no mask token; use unselected=out or unselected=zero")
        self.generator = pretrained.network if generates else None
        alone = predicts and not (generates and (self.settings.shared or self.settings.frozen))
        self.predictor = (copy.deepcopy(pretrained.network) if generates else pretrained.network) if alone else None
        self.size = self.selection_size = self.global_size = int(pretrained.network.config.hidden_size)
        self.ignores_gaps = self.settings.gaps == "closed"
        self.score_scale = self.size**-0.5  # entries of states are of order 1, and so are these products
        self._freeze()
        self._stored: StoredStates | None = None  # only in training

    def _row_sizes(self) -> tuple[int, int]:
        """Tokens per row without special ones, and the tokens of context on either side of a window."""
        window = self.settings.window or self.pretrained.capacity
        overlap = max(MAX_SUBWORDS, window // 8) if self.settings.overlap is None else self.settings.overlap
        if window > self.pretrained.capacity:
            raise DataError(
                f"window={window}, but {self.pretrained.source!r} takes at most {self.pretrained.capacity} tokens"
            )
        room = window - self.subwords.special
        if overlap < MAX_SUBWORDS or room - 2 * overlap < MAX_SUBWORDS:
            raise DataError(
                f"window={window} with overlap={overlap}: the overlap must be at least {MAX_SUBWORDS} tokens, and the "
                f"window must exceed twice the overlap by {MAX_SUBWORDS} tokens"
            )
        return room, overlap

    def _freeze(self) -> None:
        for name, rate in self.rates().items():
            network = getattr(self, name)
            if network is None:
                continue
            if rate == 0:
                network.requires_grad_(False)
            freeze(network, self.settings.frozen_layers, self.pretrained.source)
            if self.settings.checkpointing:
                network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    @classmethod
    def preset_for(cls, chosen: Mapping[str, Any]) -> Mapping[str, Any]:
        return FROZEN if str(chosen.get("frozen")).lower() == "true" else {}

    @classmethod
    def prepare(
        cls,
        source: str,
        words: Counter[str],
        options: TransformerOptions,
        *,
        dropout: float = 0.1,
        **arguments: Any,
    ) -> TransformerEncoder:
        if options.unselected == "mask" and options.gaps == "closed":
            raise ValueError("unselected=mask has no effect with gaps=closed; use gaps=kept or gaps=marked")
        return cls(load_pretrained(source, options.revision, dropout), options, **arguments)

    def rates(self) -> dict[str, float]:
        if self.settings.frozen:
            return {"generator": 0.0, "predictor": 0.0}
        return {"generator": self.settings.generator_rate, "predictor": self.settings.predictor_rate}

    def train(self, mode: bool = True) -> TransformerEncoder:
        super().train(mode)
        if self.settings.frozen:  # without dropout, so that a text always has the same states
            for network in (self.generator, self.predictor):
                if network is not None:
                    network.eval()
        return self

    @contextmanager
    def storing_states(self) -> Iterator[None]:
        self._stored = StoredStates() if self.settings.frozen else None
        try:
            yield
        finally:
            self._stored = None

    def knows(self, token: str) -> bool:
        return self.subwords.knows(token)

    def collate(self, texts: Sequence[Example]) -> SubwordBatch:
        masks = self.word_masks([text.tokens for text in texts])
        mask = masks[0]
        subwords = [tokens for text in texts for tokens in self.subwords.tokenize(text)]
        most = max((len(tokens) for tokens in subwords), default=1)
        sizes = torch.zeros(mask.shape, dtype=torch.int64)
        sizes[mask] = torch.tensor([len(tokens) for tokens in subwords], dtype=torch.int64)
        tokens = torch.zeros((*mask.shape, most), dtype=torch.int64)
        tokens[mask] = torch.tensor([each + (0,) * (most - len(each)) for each in subwords]).reshape(-1, most)
        return SubwordBatch(*masks, tokens, sizes)

    def states(self, words: WordBatch) -> Tensor:
        assert self.generator is not None, "this encoder was built without a generator"
        return self._encode_text(self.generator, words)[0]

    def encode_selection(self, words: WordBatch, z: Tensor) -> EncodedSelection:
        network = self.generator if self.predictor is None else self.predictor
        assert network is not None
        if self._stored is not None and not z.requires_grad and torch.equal(z, words.mask.to(z.dtype)):
            states, global_state = self._encode_text(network, words)  # nothing is left out
        else:
            states, global_state = self._encode(network, words, z)
        return EncodedSelection(states, z, global_state)

    def _encode_text(self, network: Any, words: WordBatch) -> tuple[Tensor, Tensor]:
        """As `_encode`, of all words. The states of a frozen network are computed once for each text."""
        if self._stored is None:
            return self._encode(network, words, None)
        assert isinstance(words, SubwordBatch)
        keys = self._stored.keys(words.tokens, words.sizes)
        if (found := self._stored.find(keys, words.mask.shape[1])) is None:
            with torch.no_grad():
                found = self._encode(network, words, None)
            self._stored.add(keys, words.mask, *found)
        return found

    def _encode(self, network: Any, words: WordBatch, z: Tensor | None) -> tuple[Tensor, Tensor]:
        """States of the words with z ≠ 0 (of all words if z is None), 0 elsewhere; and the global state: that of the
        first special token, or, for tokenizers without one, the mean of all attended tokens."""
        assert isinstance(words, SubwordBatch)
        visible = words.mask if z is None else words.mask & (z != 0)
        sizes = torch.where(visible, words.sizes, self._gap_sizes(words.mask, visible))
        layout = lay_out(sizes, self.room, self.overlap)
        vectors, attended = self._input(network, words, z, visible, layout)
        if torch.is_grad_enabled():
            states = encode(network, vectors, attended)
        else:
            parts = zip(torch.split(vectors, ROWS_PER_CALL), torch.split(attended, ROWS_PER_CALL), strict=True)
            states = torch.cat([encode(network, *part) for part in parts])
        before = len(self.subwords.prefix)
        share = attended[..., None] / attended.sum(1)[:, None, None].clamp(min=1)
        first = states[:, 0] if before else (share * states).sum(1)
        rows = states.new_zeros(len(visible)).index_add(0, layout.text, states.new_ones(len(first)))
        whole = first.new_zeros((len(visible), self.size)).index_add(0, layout.text, first) / rows[:, None]
        length = layout.word.shape[1]
        flat = states[:, before : before + length].reshape(-1, self.size)
        own = torch.where(visible, sizes, 0).flatten()
        ends = own.cumsum(0)
        # The tokens of all words in order: the word's home position plus the offset within the word.
        behind = torch.arange(int(ends[-1]), device=flat.device) - (ends - own).repeat_interleave(own)
        at = layout.home.flatten().repeat_interleave(own) + behind
        means = nn.functional.embedding_bag(at, flat, ends - own, mode="mean")
        return means.view(*visible.shape, self.size), whole

    def _gap_sizes(self, mask: Tensor, visible: Tensor) -> Tensor:
        """The number of empty positions in place of each unselected word."""
        hidden = mask & ~visible
        if self.settings.gaps == "closed":
            hidden = torch.zeros_like(hidden)
        elif self.settings.gaps == "marked":
            hidden = hidden & ~torch.nn.functional.pad(hidden, (1, 0))[:, :-1]
        return hidden.long()

    def _input(
        self, network: Any, words: SubwordBatch, z: Tensor | None, visible: Tensor, layout: Windows
    ) -> tuple[Tensor, Tensor]:
        """The input vectors, with special tokens around every row, and the attention mask."""
        text, prefix, suffix = layout.text[:, None], self.subwords.prefix, self.subwords.suffix
        around = (len(prefix), len(suffix))
        selected = visible[text, layout.word] & layout.real
        tokens = words.tokens[text, layout.word, torch.where(selected, layout.part, 0)]
        tokens = nn.functional.pad(torch.where(selected, tokens, self._filler), around, value=self._filler)
        ends = len(prefix) + layout.real.sum(1, keepdim=True)
        position = torch.arange(tokens.shape[1], device=tokens.device)
        special = (position < len(prefix)) | ((position >= ends) & (position < ends + len(suffix)))
        tokens[:, : len(prefix)] = tokens.new_tensor(prefix)
        behind = ends + torch.arange(len(suffix), device=tokens.device)
        tokens.scatter_(1, behind, tokens.new_tensor(suffix).expand_as(behind))
        attended = nn.functional.pad(selected if self.settings.unselected == "out" else layout.real, around) | special
        table = network.get_input_embeddings()
        vectors = table(tokens)
        if z is not None:
            # Not z[text, word]: with several threads its backward adds in an order that differs from call to call.
            at = text * z.shape[1] + layout.word
            weights = z.flatten().index_select(0, at.flatten()).view_as(at).to(vectors.dtype)
            weights = torch.where(selected, weights, 0.0)
            weights = torch.where(special, 1.0, nn.functional.pad(weights, around))[..., None]
            vectors = weights * vectors
            if self.settings.unselected != "zero" and self.subwords.mask is not None:
                vectors = vectors + (1 - weights) * table(tokens.new_tensor(self.subwords.mask))
        return vectors, attended.long()

    @property
    def _filler(self) -> int:
        """The token at empty positions."""
        return self.subwords.mask or 0

    def description(self) -> dict[str, Any]:
        rules = {"rule": self.rule, "punctuation": self.punctuation, "sentences": self.sentences}
        return {**rules, **self.pretrained.to_json()}

    def summary(self) -> dict[str, Any]:
        revision = {} if self.pretrained.revision is None else {"revision": self.pretrained.revision}
        layers = self.pretrained.network.config.num_hidden_layers
        return {**super().summary(), **revision, "layers": layers, "size": self.size}

    @classmethod
    def restore(
        cls,
        description: Mapping[str, Any],
        tables: Mapping[str, Tensor],
        options: TransformerOptions,
        *,
        dropout: float = 0.1,
        **arguments: Any,
    ) -> TransformerEncoder:
        rules = {key: description[key] for key in ("rule", "punctuation", "sentences")}
        return cls(Pretrained.from_json(description, dropout), options, **rules, **arguments)
