"""The layers on a toy score vector, drawn in the terminal: what `make demo` runs."""

import sys

import torch
from torch import Tensor

from rationalizer import ops

TEXT = "The beer pours a dull brown , but the taste is simply wonderful and long ."
TOKENS = TEXT.split()
SCORES = torch.tensor(
    [[-1.0, 0.1, 0.2, -0.6, 0.9, 0.3, -1.2, 0.2, -0.4, 1.1, 0.3, 1.0, 2.0, -0.1, 0.7, -1.5]], requires_grad=True
)
BUDGET = 4
SHADES = "░▒▓█"


def draw(name: str, z: Tensor, colour: bool) -> None:
    """The text, each selected token underlined by a bar as dark as its weight (and in colour on a terminal)."""
    text, bars = [], []
    for token, weight in zip(TOKENS, z[0].tolist(), strict=True):
        bar = SHADES[min(3, int(weight * 4))] * len(token) if weight > 0 else " " * len(token)
        text.append(f"\033[1;32m{token}\033[0m" if colour and weight > 0 else token)
        bars.append(bar)
    print(f"\n{name}\n  {' '.join(text)}\n  {' '.join(bars)}".rstrip())


def main() -> None:
    colour = sys.stdout.isatty()
    temperature = 0.5
    shared = {"transition": 0.4, "temperature": temperature}
    print(f"scores {[round(s, 1) for s in SCORES[0].tolist()]}\nbudget {BUDGET}, temperature {temperature}")
    draw("sparsemax", ops.sparsemax(SCORES, temperature=temperature), colour)
    draw("fusedmax", ops.fusedmax(SCORES, temperature=temperature, tv=0.2), colour)
    draw("budget", ops.budget(SCORES, BUDGET, temperature=temperature), colour)
    draw("pair_budget", ops.pair_budget(SCORES, BUDGET, **shared), colour)
    z, info = ops.sequence_budget(SCORES, BUDGET, return_info=True, **shared)
    draw(f"sequence_budget  converged in {int(info.iterations[0])} steps, gap {float(info.gap[0]):.0e}", z, colour)
    draw("sequence_budget_map, as at test time", ops.sequence_budget_map(SCORES, BUDGET, transition=0.4), colour)
    (gradient,) = torch.autograd.grad(z[0, TOKENS.index("long")], SCORES)
    shown = {token: round(g, 2) for token, g in zip(TOKENS, gradient[0].tolist(), strict=True) if abs(g) > 1e-9}
    print(f"\nhow the weight of 'long' answers to each score: {shown}")


if __name__ == "__main__":
    main()
