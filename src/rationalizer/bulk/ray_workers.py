"""Explain on Ray: one machine or a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rationalizer.bulk.batch_explainer import Explainer
from rationalizer.data import Columns
from rationalizer.data.read_options import BATCHES_PER_ROUND
from rationalizer.inference.predict import BATCH
from rationalizer.model import Rationalizer
from rationalizer.ray_cluster import require_ray

# Retries of an item whose worker died, and restarts of a worker: bounded, as an item may kill every worker.
ITEM_RETRIES, WORKER_RESTARTS = 5, 20


def explain(
    dataset: Any,
    model: Rationalizer | str | Path,
    *,
    columns: Columns | None = None,
    batch_size: int = BATCH,
    skip_bad: bool = False,
    workers: int | None = None,
    gpus: float | None = None,
) -> Any:
    """Add the columns of explanations to a Ray Dataset, as `Rationalizer.explain` does to a table.

    >>> explained = rationalizer.bulk.explain(ray.data.read_parquet("reviews/"), "sentiment")
    >>> explained.write_parquet("explained/")

    The result is lazy and streams, with Ray's backpressure. The model is loaded here and sent to the workers, which
    need this package but not the model's files.

    Args:
        dataset: of texts, or of pairs of texts.
        model: a `Rationalizer`, used with its budget and constraints; or an argument of `Rationalizer.load`.
        columns, batch_size, skip_bad: see `Explainer`.
        workers: number of processes of one core each; by default all cores of the cluster but one, which reads and
            writes.
        gpus: GPUs per worker, may be a fraction; `workers` is then by default as many as there are GPUs for.
    """
    check_workers(workers, gpus)
    require_ray()
    from ray.data import ActorPoolStrategy

    model = model if isinstance(model, Rationalizer) else Rationalizer.load(model, device="cpu")
    check_on_cpu(model)
    count, resources, device = _resources(workers, gpus, spare=1)
    options = {"columns": columns, "batch_size": batch_size, "skip_bad": skip_bad, **device}
    return dataset.map_batches(
        Explainer,
        fn_constructor_args=(model,),
        fn_constructor_kwargs=options,
        batch_size=BATCHES_PER_ROUND * batch_size,
        batch_format="pyarrow",
        zero_copy_batch=True,
        compute=ActorPoolStrategy(size=count),
        **resources,
    )


def map_on_ray(
    worker: type, arguments: tuple[Any, ...], items: Sequence[Any], workers: int | None, gpus: float | None
) -> Iterator[Any]:
    """Yield the results of `worker(*arguments).explain(item)`, as they finish.

    Each process creates its worker once; if it dies, the worker is created again and its item is retried.
    """
    ray = require_ray()
    count, resources, device = _resources(workers, gpus)
    actor = ray.remote(max_restarts=WORKER_RESTARTS, max_task_retries=ITEM_RETRIES, **resources)(worker)
    references = [ray.put(argument) for argument in arguments]  # sent once per node
    pool = [actor.remote(*references, **device) for _ in range(min(count, len(items)))]
    # Only workers that are ready get an item: a cluster may have no room for some of them until it has grown.
    running = {one.__ray_ready__.remote(): (one, None) for one in pool}
    waiting, finished = list(reversed(items)), 0
    while finished < len(items):
        (reference,), _ = ray.wait(list(running), num_returns=1)
        one, item = running.pop(reference)
        try:
            result = ray.get(reference)
        except ray.exceptions.RayActorError:
            during = "during start" if item is None else f"on {item}"
            raise ChildProcessError(f"workers died repeatedly {during}; check the available memory") from None
        if waiting:
            following = waiting.pop()
            running[one.explain.remote(following)] = one, following
        if item is not None:
            finished += 1
            yield result


def _resources(workers: int | None, gpus: float | None, spare: int = 0) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Return the number of workers, the Ray resources of each, and the `Explainer` options of each."""
    available = require_ray().cluster_resources()
    if not gpus:
        return workers or max(1, int(available.get("CPU", 1)) - spare), {"num_cpus": 1}, {"threads": 1}
    count = workers or int(available.get("GPU", 0) / gpus)
    if not count:  # a cluster that grows may have them later, but only its owner knows how many
        raise ValueError(
            f"Ray has {available.get('GPU', 0):g} GPUs, but each worker needs {gpus:g}; leave gpus out, or give the "
            "number of workers"
        )
    return count, {"num_gpus": gpus}, {"device": "cuda"}


def check_on_cpu(model: Rationalizer) -> None:
    if model.trained.device.type != "cpu":
        raise ValueError(
            f"the model is on {model.trained.device}, which other processes do not have; load it on the CPU, and give "
            "gpus to move it to the workers' GPUs"
        )


def check_workers(workers: int | None, gpus: float | None) -> None:
    for name, count, minimum in (("workers", workers, 1), ("gpus", gpus, 0)):
        if count is not None and not count >= minimum:
            raise ValueError(f"{name} must be at least {minimum}, got {count}")
