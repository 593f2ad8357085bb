"""The structured layers on a GPU against their targets. Needs CUDA.

python -m benchmarks gpu
"""

from __future__ import annotations

import torch

from benchmarks.graph import engine, groups
from benchmarks.timing import interleaved_ms, print_skipped, print_table, verdict
from benchmarks.training_step import (
    BUDGET,
    TEMPERATURE,
    TRANSITION,
    highlight_model,
    highlight_ratio,
    pair_rows,
    planted_texts,
    spans_ratio,
    train_on_planted,
    training_step,
)
from rationalizer import ops

SPECTRA_RATIO, PAIR_RATIO, WIDE_RATIO = 1.10, 1.15, 1.2
LAYER_MS, PAIR_LAYER_MS = 1.5, 2.0
ENGINE_RATIO = 5
KINDS = {"xor-at-most-one": {"columns": "exactly_one"}, "at-most-one": {}, "budget": {"budget": 4}}


def layer_ms(layer, scores: torch.Tensor) -> float:
    """Forward and backward."""
    weights = torch.randn_like(scores)

    def step() -> None:
        layer(scores.detach().requires_grad_()).backward(weights)

    return interleaved_ms([step])[0]


def highlights() -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for n in (20, 64, 256, 1024):
        model = highlight_model()
        for state in ("start", "trained"):
            if state == "trained":
                train_on_planted(model, n, steps=100)
            base, ours = highlight_ratio(model, n)
            rows.append((f"step, spectra, n = {n}, {state}", ours, f"{ours / base:.3f}x of {base:.2f} ms"))
            rows[-1] += (f"<= {SPECTRA_RATIO}x", verdict(ours / base <= SPECTRA_RATIO))
            if n == 256:
                rows += layer_alone(model, state)
            if n == 256 and state == "start":
                rows.append(wide_batch(model, ours))
    return rows


def constrained() -> list[tuple[object, ...]]:
    """`ops.spans`, which runs on the host. It has no target."""
    rows: list[tuple[object, ...]] = []
    for n in (64, 256):
        base, ours = spans_ratio(highlight_model(), n)
        rows.append((f"step, spectra, spans=2, n = {n}, start", ours, f"{ours / base:.3f}x of {base:.2f} ms", "", ""))
    return rows


def layer_alone(model, state: str) -> list[tuple[object, ...]]:
    words, _ = planted_texts(32, 256, seed=1)
    mask, budget = words.mask, BUDGET.word_limit(words.counted)
    with torch.no_grad():
        scores = model(words, budget=BUDGET).scores
    layer = lambda s: ops.sequence_budget(s, budget, transition=TRANSITION, mask=mask, temperature=TEMPERATURE)  # noqa: E731
    _, info = ops.sequence_budget(
        scores, budget, transition=TRANSITION, mask=mask, temperature=TEMPERATURE, return_info=True
    )
    closed = float((info.iterations == 0).float().mean())
    ms = layer_ms(layer, scores)
    what = f"layer alone, n = 256, {state} ({closed:.0%} of rows closed form)"
    return [(what, ms, "", f"<= {LAYER_MS} ms", verdict(ms <= LAYER_MS))]


def wide_batch(model, narrow: float) -> tuple[object, ...]:
    words, labels = planted_texts(256, 256, seed=2)
    wide = interleaved_ms([training_step(model, [words], labels, BUDGET, rate=1e-7)])[0]
    ratio = wide / narrow
    return (
        "step, spectra, n = 256, batch 256",
        wide,
        f"{ratio:.3f}x of batch 32",
        f"<= {WIDE_RATIO}x",
        verdict(ratio <= WIDE_RATIO),
    )


def matchings() -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for size, kind, base, ms, ratio in pair_rows():
        comparison = f"{ratio:.3f}x of {base:.2f} ms"
        rows.append((f"step, {kind}, {size}", ms, comparison, f"<= {PAIR_RATIO}x", verdict(ratio <= PAIR_RATIO)))
    generator = torch.Generator().manual_seed(0)
    for m, n in ((16, 10), (32, 24)):
        for scale in (3.0, 60.0):
            scores = (scale * torch.randn(16, m, n, generator=generator)).cuda()
            for kind, options in KINDS.items():
                ms = layer_ms(lambda s, options=options: ops.matching(s, **options), scores)
                rows.append(
                    (
                        f"layer alone, {kind}, {m}x{n}, scale {scale:g}",
                        ms,
                        "",
                        f"<= {PAIR_LAYER_MS} ms",
                        verdict(ms <= PAIR_LAYER_MS),
                    )
                )
    return rows


def engine_rows() -> list[tuple[object, ...]]:
    """Factor graphs on CUDA tensors against CPU tensors. Both are solved on the host."""
    rows: list[tuple[object, ...]] = []
    graphs = {"M:Budget 12x16": (engine, (16, 12, 16)), "AtMostOne of 8 + Budget n=64": (groups, (16, 8, 8))}
    for name, (graph, shape) in graphs.items():
        scores = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        ours, base = layer_ms(graph, scores.cuda()), layer_ms(graph, scores)
        rows.append((f"engine, {name}", ours, f"{ours / base:.2f}x the CPU"))
        rows[-1] += (f"<= {ENGINE_RATIO}x", verdict(ours / base <= ENGINE_RATIO))
    return rows


def main() -> None:
    if not torch.cuda.is_available():
        print_skipped("no CUDA device")
        return
    print("Milliseconds are medians.\n")
    rows = [*highlights(), *constrained(), *matchings(), *engine_rows()]
    print_table(("what", "ms", "ratio", "target", ""), rows)


if __name__ == "__main__":
    main()
