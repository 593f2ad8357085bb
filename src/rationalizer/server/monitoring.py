"""Metrics for Prometheus, summed over all worker processes."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

# Labels are restricted to these values: clients choose paths, and each value would be a new time series.
PATHS = frozenset(
    {
        *("/", "/docs", "/explain", "/render/html", "/render/svg"),
        *("/models", "/examples", "/health", "/ready", "/metrics"),
    }
)
STATUSES = frozenset({200, 400, 401, 404, 405, 408, 413, 421, 422, 499, 500, 503})
OTHER = "other"
# prometheus_client shares metrics between processes through files in the folder that this variable names.
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._requests = Counter(
            "rationalizer_requests",
            "Requests answered, by path and status; 5xx are errors of the server.",
            ["path", "status"],
            registry=registry,
        )
        self.texts = Counter("rationalizer_texts", "Texts (or pairs of texts) explained.", registry=registry)
        self.waiting = Gauge(
            "rationalizer_waiting_texts",
            "Texts accepted and not yet answered.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.seconds = Histogram(
            "rationalizer_answer_seconds",
            "Seconds from a request for explanations to its answer.",
            buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30),
            registry=registry,
        )
        self.batches = Histogram(
            "rationalizer_batch_texts",
            "Texts of a batch for one model.",
            buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=registry,
        )

    def count_request(self, path: str, status: int) -> None:
        labels = path if path in PATHS else OTHER, str(status) if status in STATUSES else OTHER
        self._requests.labels(*labels).inc()

    def exposition(self) -> bytes:
        """Return the metrics of all processes in Prometheus' text format."""
        registry = self.registry
        if SHARED_FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
