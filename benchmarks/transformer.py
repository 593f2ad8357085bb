"""Measure how much time the structured layer adds to a training step of a transformer. Needs CUDA.

python -m benchmarks transformer

One step is a training step with the default settings: generator, selection, predictor on the selection and on the whole
text, clipping, AdamW, bf16. It is compared with the same model with entmax.sparsemax as the mask.
"""

from __future__ import annotations

import contextlib
import copy
import sys

import entmax
import torch

from benchmarks.timing import interleaved_ms, print_skipped, print_table, verdict
from benchmarks.training_step import device_kind
from rationalizer.nn import HighlightModel, TransformerEncoder
from rationalizer.nn.encoders.pretrained import Pretrained
from rationalizer.nn.encoders.transformer import SubwordBatch
from rationalizer.text import Budget
from rationalizer.text.subwords import Subwords

TARGET = 1.05
BUDGET = Budget.share(0.2)
BATCH = 32


def main() -> None:
    if device_kind() != "cuda":
        print_skipped("no CUDA device")
        return
    rows = []
    for n in (64, 256, 1024):
        for temperature, transition in ((1.0, 1.0), (0.1, 0.1)):
            model = shaped_like_minilm(temperature, transition)
            for state in ("start", "trained"):
                if state == "trained":
                    train_on_planted(model, n, steps=60)
                words, labels = planted_texts(n, seed=1)
                base, ours = interleaved_ms([step(with_sparsemax(model), words, labels), step(model, words, labels)])
                ratio = ours / base
                rows.append((n, temperature, transition, state, base, ours, ratio, verdict(ratio <= TARGET)))
                print(rows[-1], file=sys.stderr, flush=True)
    print_table(
        ("n", "T", "transition", "model", "sparsemax step, ms", "spectra step, ms", "ratio", f"<= {TARGET:.2f}"), rows
    )


def shaped_like_minilm(temperature: float, transition: float) -> HighlightModel:
    """A model of MiniLM-L6's size with random weights; the timing does not depend on them."""
    import transformers
    from tokenizers import Tokenizer, models

    config = transformers.BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, vocab_size=30_522
    )
    torch.manual_seed(0)
    network = transformers.BertModel(config, add_pooling_layer=False)
    subwords = Subwords(Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]")), (101,), (102,), 103, 0)
    encoder = TransformerEncoder(Pretrained(network, {}, subwords, 512, "drawn", None))
    options = {"temperature": temperature, "transition": transition}
    return HighlightModel(encoder, method_options=options, pooling="mean").to(device_kind()).train()


def planted_texts(n: int, seed: int) -> tuple[SubwordBatch, torch.Tensor]:
    """Return texts in which six neighbouring words determine the label and the rest is noise, and the labels."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(2000, 20_000, (BATCH, n), generator=generator)
    labels = torch.randint(0, 2, (BATCH,), generator=generator)
    start = torch.randint(0, n - 6, (BATCH, 1), generator=generator)
    signal = torch.randint(1000, 1100, (BATCH, 6), generator=generator) + 300 * labels[:, None]
    tokens.scatter_(1, start + torch.arange(6), signal)
    mask = torch.ones_like(tokens, dtype=torch.bool)
    words = SubwordBatch(mask, mask, ~mask, tokens[..., None], torch.ones_like(tokens))
    return words.to(device_kind()), labels.to(device_kind())


def with_sparsemax(model: HighlightModel) -> HighlightModel:
    """Return a copy whose mask is entmax.sparsemax of the same scores."""
    other = copy.deepcopy(model)
    temperature = model.method.temperature
    other.method.relax = lambda scores, mask, budget, constraints: (
        entmax.sparsemax(scores / temperature, dim=-1),
        None,
    )
    return other


def step(model: HighlightModel, words: SubwordBatch, labels: torch.Tensor, rate: float = 1e-9):
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    short = torch.autocast("cuda", torch.bfloat16) if device_kind() == "cuda" else contextlib.nullcontext()

    def one() -> None:
        optimizer.zero_grad()
        with short:
            output = model(words, budget=BUDGET)
            whole = model.head.loss(model.full_text_outputs(words), labels).mean()
            loss = model.method_loss(output, model.head.loss(output.outputs, labels)).loss + 3 * whole
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return one


def train_on_planted(model: HighlightModel, n: int, steps: int) -> None:
    for seed in range(steps):
        step(model, *planted_texts(n, seed), rate=1e-4)()


if __name__ == "__main__":
    main()
