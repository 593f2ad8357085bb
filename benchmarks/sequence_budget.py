"""Compare the highlight layers with sparsemax and with a general QP layer.

Forward and backward pass in float32, batch size 32, budget 20% of the words.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import entmax
import torch
from torch import Tensor

from benchmarks.timing import median_ms, print_table, processor_ms, verdict
from rationalizer import ops

BATCH = 32
SPREAD = 0.3
LENGTHS = (20, 64, 256, 1024, 4096)
TEMPERATURES = (0.05, 0.2)
LIMITS = {20: 10, 64: 10, 256: 2, 1024: 1.3}  # of sequence_budget, relative to entmax.sparsemax


def step(layer: Callable[[Tensor], Tensor], scores: Tensor) -> Callable[[], None]:
    def run() -> None:
        z = layer(scores)
        z.backward(torch.ones_like(z))
        scores.grad = None

    return run


def layers(n: int, temperature: float) -> dict[str, Callable[[Tensor], Tensor]]:
    limit = max(1, round(0.2 * n))
    return {
        "entmax.sparsemax": lambda s: entmax.sparsemax(s / temperature, dim=-1),
        "sparsemax": lambda s: ops.sparsemax(s, temperature=temperature),
        "fusedmax": lambda s: ops.fusedmax(s, temperature=temperature),
        "budget": lambda s: ops.budget(s, limit, temperature=temperature),
        "pair_budget": lambda s: ops.pair_budget(s, limit, transition=0.001, temperature=temperature),
        "sequence_budget": lambda s: ops.sequence_budget(s, limit, transition=0.001, temperature=temperature),
        "seq. r = spread": lambda s: ops.sequence_budget(s, limit, transition=SPREAD, temperature=temperature),
        "seq. r = 10 spread": lambda s: ops.sequence_budget(s, limit, transition=10 * SPREAD, temperature=temperature),
    }


def against_sparsemax() -> None:
    print("Processor times on one core. The column entmax is in milliseconds; the other layers are relative to it. The")
    print("column closed is the share of rows that the closed form solves, with transition 0.001 / with transition =")
    print("spread of the scores.\n")
    torch.set_num_threads(1)
    rows = []
    for temperature in TEMPERATURES:
        for n in LENGTHS:
            torch.manual_seed(n)
            scores = (SPREAD * torch.randn(BATCH, n)).requires_grad_()
            steps = {name: step(layer, scores) for name, layer in layers(n, temperature).items()}
            for run in steps.values():
                run()  # the first one compiles
            times = {name: processor_ms(run, seconds=0.3, most=200) for name, run in steps.items()}
            base = times.pop("entmax.sparsemax")
            closed = [
                ops.sequence_budget(
                    scores, max(1, round(0.2 * n)), transition=r, temperature=temperature, return_info=True
                )[1].iterations.eq(0)
                for r in (0.001, SPREAD)
            ]
            shares = "/".join(f"{c.float().mean():.0%}" for c in closed)
            ratios = [f"{time / base:.1f}x" for time in times.values()]
            targets = [(times["pair_budget"] / base, 5 if n <= 1024 else None)]
            targets.append((times["sequence_budget"] / base, LIMITS.get(n)))
            if n == 256:
                targets.append((times["seq. r = spread"] / times["sequence_budget"], 10))
            met = all(limit is None or value <= limit for value, limit in targets)
            rows.append([temperature, n, f"{base:.2f} ms", *ratios, shares, verdict(met)])
    names = list(layers(20, 1.0))[1:]
    print_table(["T", "n", "entmax", *names, "closed", "targets"], rows)


def flow_program(n: int, limit: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return H:SeqBudget as a flow problem for a general QP solver: (token, edge, balance, supply).

    A unit flow passes through the states (words so far, ones so far, last bit). `token` and `edge` map the flow on the
    arcs to z and to the pair marginals; `balance` @ flow = `supply` is the conservation of flow.
    """
    arcs: list[tuple[tuple[int, int, int], tuple[int, int, int], int, int]] = []
    for t in range(n):
        for used in range(min(t, limit) + 1):
            for bit in (0, 1):
                if (bit and not used) or (t == 0 and bit):
                    continue
                arcs.append(((t, used, bit), (t + 1, used, 0), -1, -1))
                if used < limit:
                    arcs.append(((t, used, bit), (t + 1, used + 1, 1), t, t - 1 if bit else -1))
    nodes = sorted({node for arc in arcs for node in arc[:2] if node[0] < n})
    index = {node: i for i, node in enumerate(nodes)}
    balance = torch.zeros(len(nodes), len(arcs), dtype=torch.float64)
    token = torch.zeros(n, len(arcs), dtype=torch.float64)
    edge = torch.zeros(max(n - 1, 0), len(arcs), dtype=torch.float64)
    for a, (start, end, chosen, pair) in enumerate(arcs):
        balance[index[start], a] += 1
        if end in index:
            balance[index[end], a] -= 1
        if chosen >= 0:
            token[chosen, a] = 1
        if pair >= 0:
            edge[pair, a] = 1
    supply = torch.zeros(len(nodes), dtype=torch.float64)
    supply[index[(0, 0, 0)]] = 1
    return token, edge, balance, supply


def against_a_general_layer() -> None:
    import cvxpy
    from cvxpylayers.torch import CvxpyLayer

    print("\nThe same problem as a general convex layer (cvxpylayers).\n")
    rows = []
    temperature = 0.2
    for n in (10, 20):
        torch.manual_seed(n)
        limit = max(1, round(0.2 * n))
        scores = (SPREAD * torch.randn(BATCH, n, dtype=torch.float64)).requires_grad_()
        token, edge, balance, supply = (part.numpy() for part in flow_program(n, limit))
        flow, selected, parameter = cvxpy.Variable(token.shape[1]), cvxpy.Variable(n), cvxpy.Parameter(n)
        gain = parameter @ selected + 0.001 / temperature * cvxpy.sum(edge @ flow)
        constraints = [balance @ flow == supply, selected == token @ flow, flow >= 0]
        problem = cvxpy.Problem(cvxpy.Maximize(gain - 0.5 * cvxpy.sum_squares(selected)), constraints)
        layer = CvxpyLayer(problem, parameters=[parameter], variables=[selected])

        def general(s: Tensor, layer: CvxpyLayer = layer) -> Tensor:
            return layer(s / temperature)[0]

        ours = layers(n, temperature)["sequence_budget"]
        difference = (general(scores) - ours(scores)).abs().max().item()
        slow = median_ms(step(general, scores), seconds=1, least=2)
        fast = median_ms(step(ours, scores))
        ratio = slow / fast
        rows.append([n, f"{slow:.0f} ms", f"{ratio:.0f}x", f"{difference:.1e}", verdict(ratio >= 50)])
    print_table(["n", "cvxpylayers", "cvxpylayers / sequence_budget", "largest difference", ">= 50x"], rows)


def memory() -> None:
    script = """
import torch
from rationalizer import ops
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) // 1024
base = peak()
torch.manual_seed(0)
s = (0.3 * torch.randn(8, 10_000)).requires_grad_()
z = ops.{op}(s, 2000, transition={transition}, temperature=0.05)
z.sum().backward()
print(base, peak())
"""
    rows = []
    for op, transition in (("pair_budget", 0.001), ("sequence_budget", 0.001), ("sequence_budget", 3.0)):
        command = [sys.executable, "-c", script.format(op=op, transition=transition)]
        before, after = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        rows.append([op, transition, f"{before} MiB", f"{after} MiB", verdict(int(after) < 954)])
    print("\nPeak memory of a process, n = 10,000, batch 8, forward + backward.\n")
    print_table(["op", "transition", "after import", "peak", "< 1 GB"], rows)


def main() -> None:
    against_sparsemax()
    against_a_general_layer()
    memory()


if __name__ == "__main__":
    main()
