"""Compare whole training steps (forward, backward, clip, Adam) of models with and without a structured layer.

Highlights: the paper's BiLSTM rationalizer (300d, hidden 200), with H:SeqBudget and with entmax.sparsemax as the mask.
Matchings: the pair model, with each of SPECTRA's three graphs and with softmax (plain ESIM).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import entmax
import torch
from torch import Tensor, nn

from benchmarks.timing import interleaved_ms, print_table
from rationalizer.constraints import LayerConstraints
from rationalizer.nn import HighlightModel, Model, PairModel, VectorEncoder
from rationalizer.nn.encoders.vector_bilstm import VectorOptions, VectorWordBatch
from rationalizer.text import Budget, Vocabulary

VOCABULARY, EMBEDDING, HIDDEN = 20_000, 300, 200
BUDGET, TEMPERATURE, TRANSITION = Budget.share(0.2), 0.05, 0.001  # the paper's for IMDB
GRAPHS = ("xor-at-most-one", "at-most-one", "budget")
Step = Callable[[], object]


def device_kind() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def encoder(*, pairs: bool = False) -> VectorEncoder:
    """The paper's encoder, with fixed word vectors."""
    options = VectorOptions(vector_size=EMBEDDING, hidden=HIDDEN, word_scores=False, word_sums=False, gaps="kept")
    encoder = VectorEncoder(Vocabulary([str(k) for k in range(VOCABULARY)]), None, options, predicts=not pairs)
    encoder.learned.weight.requires_grad_(False)
    return encoder


def words_of(ids: Tensor) -> VectorWordBatch:
    """Return a batch of texts with these word ids, without padding or punctuation."""
    ids = ids.to(device_kind())
    mask = torch.ones_like(ids, dtype=torch.bool)
    return VectorWordBatch(mask, mask, ~mask, torch.zeros_like(ids)[..., None], ids)


def planted_texts(batch: int, n: int, seed: int) -> tuple[VectorWordBatch, Tensor]:
    """Return texts in which six neighbouring words determine the label and the rest is noise, and the labels."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(1000, VOCABULARY, (batch, n), generator=generator)
    labels = torch.randint(0, 2, (batch,), generator=generator)
    start = torch.randint(0, n - 6, (batch, 1), generator=generator)
    words = torch.randint(2, 200, (batch, 6), generator=generator) + 300 * labels[:, None]
    tokens.scatter_(1, start + torch.arange(6), words)
    return words_of(tokens), labels.to(device_kind())


def highlight_model() -> HighlightModel:
    torch.manual_seed(0)
    options = {"temperature": TEMPERATURE, "transition": TRANSITION}
    return HighlightModel(encoder(), method_options=options).to(device_kind()).train()


def copy_model(model: HighlightModel) -> HighlightModel:
    other = copy.deepcopy(model)
    for part in other.modules():
        if isinstance(part, nn.LSTM):
            part.flatten_parameters()  # the weights of a copy are not contiguous and would be gathered at every step
    return other


def with_sparsemax(model: HighlightModel) -> HighlightModel:
    """Return a copy whose mask is entmax.sparsemax of the same scores."""
    other = copy_model(model)
    other.method.relax = lambda scores, mask, budget, constraints: (
        entmax.sparsemax(scores / TEMPERATURE, dim=-1),
        None,
    )
    return other


def training_step(
    model: Model,
    texts: Sequence[VectorWordBatch],
    labels: Tensor,
    budget: Budget,
    rate: float,
    constraints: LayerConstraints | None = None,
) -> Step:
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=rate)

    def step() -> None:
        optimizer.zero_grad()
        output = model(*texts, budget=budget, constraints=constraints)
        model.head.loss(output.outputs, labels).mean().backward()
        nn.utils.clip_grad_norm_(trained, 5.0)
        optimizer.step()

    return step


def train_on_planted(model: HighlightModel, n: int, steps: int) -> None:
    """Train for some steps, so that the scores are those of a trained model."""
    for seed in range(steps):
        words, labels = planted_texts(32, n, seed)
        if seed == 0:
            optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)
        optimizer.zero_grad()
        output = model(words, budget=BUDGET)
        model.head.loss(output.outputs, labels).mean().backward()
        optimizer.step()


def highlight_ratio(model: HighlightModel, n: int, batch: int = 32) -> tuple[float, float]:
    """Return the milliseconds of the sparsemax step and of the spectra step, at a learning rate near 0."""
    words, labels = planted_texts(batch, n, seed=10_000)
    steps = [
        training_step(one, [words], labels, BUDGET, rate=1e-7) for one in (with_sparsemax(model), copy_model(model))
    ]
    return tuple(interleaved_ms(steps))  # type: ignore[return-value]


def spans_ratio(model: HighlightModel, n: int, batch: int = 32) -> tuple[float, float]:
    """Return the milliseconds of the spectra step without and with the constraint of two spans."""
    words, labels = planted_texts(batch, n, seed=10_000)
    cases = (None, LayerConstraints(spans=2))
    steps = [training_step(copy_model(model), [words], labels, BUDGET, 1e-7, constraints) for constraints in cases]
    return tuple(interleaved_ms(steps))  # type: ignore[return-value]


def pair_steps_ms(m: int, n: int, batch: int = 16) -> list[float]:
    """Return the milliseconds of the softmax step, then of the step with each matching."""
    generator = torch.Generator().manual_seed(0)
    device = device_kind()
    texts = [words_of(torch.randint(2, VOCABULARY, (batch, k), generator=generator)) for k in (m, n)]
    labels = torch.randint(0, 3, (batch,), generator=generator).to(device)
    steps = []
    for method in ("softmax", *GRAPHS):
        torch.manual_seed(0)
        model = PairModel(encoder(pairs=True), method=method).to(device).train()
        steps.append(training_step(model, texts, labels, Budget.count(4), rate=1e-7))
    return interleaved_ms(steps)


def pair_rows() -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for m, n in ((16, 10), (32, 24)):
        base, *graphs = pair_steps_ms(m, n)
        rows += [(f"{m}x{n}", graph, base, ms, ms / base) for graph, ms in zip(GRAPHS, graphs, strict=True)]
    return rows


def main() -> None:
    print(f"On {device_kind()}, {torch.get_num_threads()} threads.\n")
    model = highlight_model()
    rows = []
    for n in (20, 64, 256):
        base, ours = highlight_ratio(model, n)
        unlimited, limited = spans_ratio(model, n)
        rows.append((n, base, ours, ours / base, limited, limited / unlimited))
    columns = ("n", "sparsemax step, ms", "spectra step, ms", "ratio", "spectra, 2 spans, ms", "to spectra's")
    print_table(columns, rows)
    print()
    print_table(("pairs", "graph", "softmax step, ms", "step, ms", "ratio"), pair_rows())


if __name__ == "__main__":
    main()
