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

SPECTRA_RATIO, SPANS_RATIO, PAIR_RATIO, WIDE_RATIO = 1.05, 1.10, 1.15, 1.2
LAYER_MS, PAIR_LAYER_MS = 1.1, 2.0
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
    """`ops.spans`, whose rows are solved on the CPU, against `ops.sequence_budget`."""
    rows: list[tuple[object, ...]] = []
    for n in (20, 64, 256):
        base, ours = spans_ratio(highlight_model(), n)
        rows.append((f"step, spectra, spans=2, n = {n}, start", ours, f"{ours / base:.3f}x of {base:.2f} ms"))
        rows[-1] += (f"<= {SPANS_RATIO}x", verdict(ours / base <= SPANS_RATIO))
    return rows


PARTS = {  # of a training step, by names of kernels
    "structured layer": ("_closed_form_kernel", "_read_", "_backward_kernel"),
    "LSTMs and linear layers": ("RNN", "LSTM", "rnn", "lstm", "gemm", "cutlass", "nvjet", "splitK", "gemv"),
    "optimizer and clipping": ("multi_tensor", "foreach", "lpnorm", "adam"),
    "all other": ("",),
}


def step_profile(n: int, steps: int = 10) -> list[tuple[object, ...]]:
    """Return the milliseconds of a training step, those of the device by part, and those of Python in the layer."""
    model = highlight_model()
    words, labels = planted_texts(32, n, seed=0)
    step = training_step(model, [words], labels, BUDGET, rate=1e-7)
    ms = interleaved_ms([step])[0]
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profile:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    device = dict.fromkeys(PARTS, 0.0)
    host = 0.0
    for event in profile.key_averages():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            part = next(part for part, names in PARTS.items() if any(name in event.key for name in names))
            device[part] += event.self_device_time_total / steps / 1e3
        elif event.key in ("rationalizer::sequence_budget", "rationalizer::sequence_budget_backward"):
            host += event.cpu_time_total / steps / 1e3
    idle = max(ms - sum(device.values()), 0.0)
    return [(n, ms, *device.values(), idle, host)]


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
    print(
        "\nWhere the milliseconds of a `spectra` step go: the device by part, and Python in the ops (while profiled).\n"
    )
    rows = [row for n in (20, 64, 256, 1024) for row in step_profile(n)]
    print_table(("n", "step", *PARTS, "device idle", "Python, structured layer"), rows)


if __name__ == "__main__":
    main()
