"""What the server has done so far, in the text format of Prometheus.

The metrics are few and fixed, so that they fit into a row of numbers: the processes of a server have a row each in
shared memory, and whichever is asked tells the sum.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import MutableSequence
from itertools import accumulate

PATHS = (
    *("/", "/docs", "/explain", "/render/html", "/render/svg"),
    *("/models", "/examples", "/health", "/ready", "/metrics"),
)
STATUSES = (200, 400, 401, 404, 405, 408, 413, 421, 422, 499, 500, 503)
OTHER = "other"

REQUESTS, TEXTS, WAITING = "rationalizer_requests_total", "rationalizer_texts_total", "rationalizer_waiting_texts"
SECONDS, BATCH = "rationalizer_answer_seconds", "rationalizer_batch_texts"
FAMILIES = {
    REQUESTS: ("counter", "Requests answered, by path and status; 5xx are errors of the server."),
    TEXTS: ("counter", "Texts (or pairs of texts) explained."),
    WAITING: ("gauge", "Texts accepted and not yet answered."),
    SECONDS: ("histogram", "Seconds from a request for explanations to its answer."),
    BATCH: ("histogram", "Texts of a batch for one model."),
}
BOUNDS: dict[str, tuple[float, ...]] = {
    SECONDS: (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30),
    BATCH: (1, 2, 4, 8, 16, 32, 64),
}


def _request(path: str, status: int | str) -> str:
    return f'{REQUESTS}{{path="{path}",status="{status}"}}'


BUCKETS = {
    name: tuple(f'{name}_bucket{{le="{bound}"}}' for bound in (*bounds, "+Inf")) for name, bounds in BOUNDS.items()
}
SAMPLES = (
    *(_request(path, status) for path in (*PATHS, OTHER) for status in (*STATUSES, OTHER)),
    TEXTS,
    WAITING,
    *(bucket for buckets in BUCKETS.values() for bucket in buckets),
    *(f"{name}_{part}" for name in BOUNDS for part in ("sum", "count")),
)
ROW = len(SAMPLES)
_AT = {sample: k for k, sample in enumerate(SAMPLES)}


class Metrics:
    """Counts of one process; `table` has a row for each."""

    def __init__(self, table: MutableSequence[float] | None = None, row: int = 0) -> None:
        self._table = [0.0] * ROW if table is None else table
        self._start = row * ROW
        self.set(WAITING, 0)  # a process that died here may have left something else

    def set(self, sample: str, value: float) -> None:
        self._table[self._start + _AT[sample]] = value

    def add(self, sample: str, amount: float = 1) -> None:
        self._table[self._start + _AT[sample]] += amount

    def request(self, path: str, status: int) -> None:
        self.add(_request(path if path in PATHS else OTHER, status if status in STATUSES else OTHER))

    def observe(self, name: str, value: float) -> None:
        self.add(BUCKETS[name][bisect_left(BOUNDS[name], value)])  # its own; Prometheus is told those below as well
        self.add(f"{name}_sum", value)
        self.add(f"{name}_count")

    def exposition(self) -> str:
        """All metrics of all processes; of the requests those kinds that there have been."""
        totals = {sample: sum(self._table[k::ROW]) for sample, k in _AT.items()}
        for buckets in BUCKETS.values():
            totals |= zip(buckets, accumulate(totals[bucket] for bucket in buckets), strict=True)
        lines = []
        for name, (kind, description) in FAMILIES.items():
            lines += [f"# HELP {name} {description}", f"# TYPE {name} {kind}"]
            own = {sample: total for sample, total in totals.items() if sample.startswith(name)}
            lines += [f"{sample} {total!r}" for sample, total in own.items() if total or name != REQUESTS]
        return "\n".join(lines) + "\n"
