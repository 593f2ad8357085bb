"""Transformer encoders: any of the Hugging Face Hub, with words for units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from rationalizer.nn.encoders.base import Encoder, Punctuation, Reading
from rationalizer.nn.encoders.pretrained import Pretrained, encode, freeze, load_pretrained, second
from rationalizer.nn.encoders.subwords import MOST
from rationalizer.nn.encoders.windows import Windows, lay_out
from rationalizer.ranges import CountOrNone, Number, NumberOrNone, Rate
from rationalizer.text import DataError, Example, SentenceRule, SplitRule, WordBatch

AT_ONCE = 64  # rows that are encoded together where no gradient is kept: a text of any length fits in memory


@dataclass(frozen=True)
class SubwordBatch(WordBatch):
    """Words as the encoder's tokens."""

    tokens: Tensor  # (batch, n, k) int64
    sizes: Tensor  # (batch, n) int64, how many of them are the word's; 0 on padding


@dataclass(frozen=True, kw_only=True)
class TransformerOptions:
    """What can be set of this encoder."""

    revision: str | None = None  # of the encoder on the Hub: a branch, tag or commit
    shared: bool = False  # whether one encoder serves generator and predictor; it learns at generator_rate
    generator_rate: Rate = 5e-5  # learning rate of the generator's encoder; 0: it stays as it is
    predictor_rate: Rate = 3e-5  # of the predictor's
    frozen_layers: Number = 0  # this many of the lowest layers stay as they are, and the embeddings with them
    unselected: Literal["out", "mask", "zero"] = "out"  # out of the attention; a mask's vector or 0 in their place
    gaps: Literal["kept", "marked", "closed"] = "kept"  # unselected words take up a place each, each run one, or none
    window: CountOrNone = None  # tokens read at once; none: as many as the encoder can
    overlap: NumberOrNone = None  # tokens of context on either side of a window; none: an eighth of it
    checkpointing: bool = False  # whether layers are computed again for the gradient, to save memory


class TransformerEncoder(Encoder):
    """A word's state is the mean of its tokens' states; a text longer than the window is read in overlapping ones.

    The predictor's encoder reads z ⊙ x, x the tokens' vectors, with unselected words out of the attention: each is
    one place with nothing in it, however many tokens the word had. What it still can tell is how many words there are
    and where the selected ones stand among them; with `gaps="closed"` the selection is read as a text of its own.

    Args:
        pretrained: the encoder.
        options: see `TransformerOptions`.
        rule, punctuation, sentences: see `Encoder`.
        generates, predicts: whether `states` and `read` will be asked for.
    """

    name = "transformer"
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
        self.chosen = options or TransformerOptions()
        self.pretrained = pretrained
        self.subwords = pretrained.subwords
        self.room, self.overlap = self._room()
        if self.chosen.unselected == "mask" and self.subwords.mask is None:
            raise DataError(f"{pretrained.source!r} has no mask token; use unselected=out or unselected=zero")
        self.generator = pretrained.network if generates else None
        alone = predicts and not (generates and self.chosen.shared)
        self.predictor = (second(pretrained.network) if generates else pretrained.network) if alone else None
        self.size = self.read_size = self.whole_size = int(pretrained.network.config.hidden_size)
        self.alikeness = self.size**-0.5  # states have about unit entries: so do their products then
        self._freeze()

    def _room(self) -> tuple[int, int]:
        """Tokens of words in a row, and how many of them are context on either side of a longer text's part."""
        window = self.chosen.window or self.pretrained.capacity
        overlap = max(MOST, window // 8) if self.chosen.overlap is None else self.chosen.overlap
        if window > self.pretrained.capacity:
            raise DataError(
                f"window={window}, but {self.pretrained.source!r} reads {self.pretrained.capacity} tokens at most"
            )
        room = window - self.subwords.special
        if overlap < MOST or room - 2 * overlap < MOST:
            raise DataError(
                f"window={window} with overlap={overlap}: the overlap must be at least {MOST} tokens, and twice of it "
                f"leave {MOST} tokens of the window"
            )
        return room, overlap

    def _freeze(self) -> None:
        rates = {"generator": self.chosen.generator_rate, "predictor": self.chosen.predictor_rate}
        for name, rate in rates.items():
            network = getattr(self, name)
            if network is None:
                continue
            if rate == 0:
                network.requires_grad_(False)
            freeze(network, self.chosen.frozen_layers, self.pretrained.source)
            if self.chosen.checkpointing:
                network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    @classmethod
    def prepare(
        cls,
        source: str,
        words: Counter[str],
        options: TransformerOptions,
        *,
        dropout: float = 0.1,
        **how: Any,
    ) -> TransformerEncoder:
        return cls(load_pretrained(source, options.revision, dropout), options, **how)

    def rates(self) -> dict[str, float]:
        return {"generator": self.chosen.generator_rate, "predictor": self.chosen.predictor_rate}

    def knows(self, token: str) -> bool:
        return self.subwords.knows(token)

    def collate(self, texts: Sequence[Example]) -> SubwordBatch:
        masks = self.counts([text.tokens for text in texts])
        mask = masks[0]
        found = [tokens for text in texts for tokens in self.subwords.of_text(text)]
        most = max((len(tokens) for tokens in found), default=1)
        sizes = torch.zeros(mask.shape, dtype=torch.int64)
        sizes[mask] = torch.tensor([len(tokens) for tokens in found], dtype=torch.int64)
        tokens = torch.zeros((*mask.shape, most), dtype=torch.int64)
        tokens[mask] = torch.tensor([each + (0,) * (most - len(each)) for each in found]).reshape(-1, most)
        return SubwordBatch(*masks, tokens, sizes)

    def states(self, words: WordBatch) -> Tensor:
        assert self.generator is not None, "this encoder was built without a generator"
        return self._encoded(self.generator, words, None)[0]

    def read(self, words: WordBatch, z: Tensor) -> Reading:
        network = self.generator if self.predictor is None else self.predictor
        assert network is not None
        states, whole = self._encoded(network, words, z)
        return Reading(states, z, whole)

    def _encoded(self, network: Any, words: WordBatch, z: Tensor | None) -> tuple[Tensor, Tensor]:
        """States of the words with z ≠ 0 (all of them if z is None), 0 elsewhere; and of the text as a whole: the first
        special token's, or where none comes first the mean of all that are attended to."""
        assert isinstance(words, SubwordBatch)
        shown = words.mask if z is None else words.mask & (z != 0)
        sizes = torch.where(shown, words.sizes, self._places(words.mask, shown))
        layout = lay_out(sizes, self.room, self.overlap)
        vectors, attended = self._input(network, words, z, shown, layout)
        if torch.is_grad_enabled():
            states = encode(network, vectors, attended)
        else:
            parts = zip(torch.split(vectors, AT_ONCE), torch.split(attended, AT_ONCE), strict=True)
            states = torch.cat([encode(network, *part) for part in parts])
        before = len(self.subwords.prefix)
        share = attended[..., None] / attended.sum(1)[:, None, None].clamp(min=1)
        first = states[:, 0] if before else (share * states).sum(1)
        rows = states.new_zeros(len(shown)).index_add(0, layout.text, states.new_ones(len(first)))
        whole = first.new_zeros((len(shown), self.size)).index_add(0, layout.text, first) / rows[:, None]
        length = layout.word.shape[1]
        flat = states[:, before : before + length].reshape(-1, self.size)
        own = torch.where(shown, sizes, 0).flatten()
        ends = own.cumsum(0)
        # The tokens of all words in their order: a word's home, and how far the token is behind its first one.
        behind = torch.arange(int(ends[-1]), device=flat.device) - (ends - own).repeat_interleave(own)
        at = layout.home.flatten().repeat_interleave(own) + behind
        means = nn.functional.embedding_bag(at, flat, ends - own, mode="mean")
        return means.view(*shown.shape, self.size), whole

    def _places(self, mask: Tensor, shown: Tensor) -> Tensor:
        """How many tokens stand in place of each unselected word."""
        hidden = mask & ~shown
        if self.chosen.gaps == "closed":
            hidden = torch.zeros_like(hidden)
        elif self.chosen.gaps == "marked":
            hidden = hidden & ~torch.nn.functional.pad(hidden, (1, 0))[:, :-1]
        return hidden.long()

    def _input(
        self, network: Any, words: SubwordBatch, z: Tensor | None, shown: Tensor, layout: Windows
    ) -> tuple[Tensor, Tensor]:
        """The vectors that the encoder reads, special tokens around every row, and where its attention may go."""
        text, prefix, suffix = layout.text[:, None], self.subwords.prefix, self.subwords.suffix
        around = (len(prefix), len(suffix))
        selected = shown[text, layout.word] & layout.real
        tokens = words.tokens[text, layout.word, torch.where(selected, layout.part, 0)]
        tokens = nn.functional.pad(torch.where(selected, tokens, self._blank), around, value=self._blank)
        ends = len(prefix) + layout.real.sum(1, keepdim=True)
        place = torch.arange(tokens.shape[1], device=tokens.device)
        special = (place < len(prefix)) | ((place >= ends) & (place < ends + len(suffix)))
        tokens[:, : len(prefix)] = tokens.new_tensor(prefix)
        behind = ends + torch.arange(len(suffix), device=tokens.device)
        tokens.scatter_(1, behind, tokens.new_tensor(suffix).expand_as(behind))
        attended = nn.functional.pad(selected if self.chosen.unselected == "out" else layout.real, around) | special
        table = network.get_input_embeddings()
        vectors = table(tokens)
        if z is not None:
            weights = torch.where(selected, z[text, layout.word].to(vectors.dtype), 0.0)
            weights = torch.where(special, 1.0, nn.functional.pad(weights, around))[..., None]
            vectors = weights * vectors
            if self.chosen.unselected != "zero" and self.subwords.mask is not None:
                vectors = vectors + (1 - weights) * table(tokens.new_tensor(self.subwords.mask))
        return vectors, attended.long()

    @property
    def _blank(self) -> int:
        """What stands where nothing is read."""
        return self.subwords.mask or 0

    def description(self) -> dict[str, Any]:
        how = {"rule": self.rule, "punctuation": self.punctuation, "sentences": self.sentences}
        return {**how, **self.pretrained.to_json()}

    def facts(self) -> dict[str, Any]:
        revision = {} if self.pretrained.revision is None else {"revision": self.pretrained.revision}
        layers = self.pretrained.network.config.num_hidden_layers
        return {**super().facts(), **revision, "layers": layers, "size": self.size}

    def tables(self) -> dict[str, Tensor]:
        return {}

    @classmethod
    def restore(
        cls,
        description: Mapping[str, Any],
        tables: Mapping[str, Tensor],
        options: TransformerOptions,
        *,
        dropout: float = 0.1,
        **network: Any,
    ) -> TransformerEncoder:
        how = {key: description[key] for key in ("rule", "punctuation", "sentences")}
        return cls(Pretrained.from_json(description, dropout), options, **how, **network)
