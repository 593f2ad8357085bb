"""Workers on Ray: one machine or a cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rationalizer.bulk.explainer import Explainer
from rationalizer.data import Columns
from rationalizer.learn.inference import BATCH, TOGETHER
from rationalizer.rationalizer import Rationalizer

MiB = 2**20
# Of shared memory, on a machine where we start Ray. Texts do not pass through it, the model does, once; what it cannot
# hold goes to the disk. Ray's own default is a third of the machine.
OBJECT_STORE = 512 * MiB
RETRIES = 5  # of a piece whose worker dies: a text that ends every process that reads it must not do so for ever


def explain(
    dataset: Any,
    model: Rationalizer | str | Path,
    *,
    columns: Columns | None = None,
    batch_size: int = BATCH,
    skip_bad: bool = False,
    workers: int | None = None,
    gpus: int | None = None,
) -> Any:
    """A Ray Dataset with what a model says of each row in further columns, as `Rationalizer.explain` adds to a table.

    >>> explained = rationalizer.bulk.explain(ray.data.read_parquet("reviews/"), "sentiment")
    >>> explained.write_parquet("explained/")

    Nothing is computed before the dataset is used, and it streams: Ray holds back what comes faster than it is
    explained. The model is loaded here and sent to the workers, which need this package but not the model's files.

    Args:
        dataset: of texts, or of pairs of texts.
        model: a `Rationalizer`, with the budget and the constraints that it shall keep to; or what `Rationalizer.load`
            takes.
        columns, batch_size, skip_bad: see `Explainer`.
        workers: processes of one core each; by default one less than the cluster has cores, which reads and writes.
        gpus: processes of one GPU each, in their place.
    """
    check_workers(workers, gpus)
    model = model if isinstance(model, Rationalizer) else Rationalizer.load(model)
    pool, resources, on = _pool(workers, gpus, spare=1)
    how = {"columns": columns, "batch_size": batch_size, "skip_bad": skip_bad, **on}
    return dataset.map_batches(
        Explainer,
        fn_constructor_args=(model,),
        fn_constructor_kwargs=how,
        batch_size=TOGETHER * batch_size,
        batch_format="pyarrow",
        zero_copy_batch=True,
        compute=pool,
        **resources,
    )


def each(
    worker: type, arguments: tuple[Any, ...], items: Sequence[dict[str, Any]], workers: int | None, gpus: int | None
) -> Iterator[dict[str, Any]]:
    """What workers say of items, as they finish, while Ray is `running`. A worker is made once in each process; one
    that dies is replaced, and its item comes again."""
    pool, resources, on = _pool(workers, gpus, at_once=1, most=len(items))
    dataset = require_ray().data.from_items(list(items), override_num_blocks=len(items))
    said = dataset.map(
        worker,
        fn_constructor_args=arguments,
        fn_constructor_kwargs=on,
        compute=pool,
        ray_remote_args_fn=lambda: {"max_task_retries": RETRIES},
        **resources,
    )
    return said.iter_rows()


def require_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    try:
        import ray.data
    except ImportError as error:
        raise ImportError('explaining on Ray needs the package ray: pip install ".[ray]" in a checkout') from error
    return ray


@contextmanager
def running(address: str | None, workers: int | None) -> Iterator[None]:
    """Ray as it runs in this process, that of a cluster, or one of our own, which ends with us; in any case silent."""
    ray = require_ray()
    begun = not ray.is_initialized()
    if begun:
        own = {} if address else {"num_cpus": workers, "include_dashboard": False, "object_store_memory": OBJECT_STORE}
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        with _nothing_on_stderr():  # where Ray tells that the level was set
            ray.init(address=address or "local", logging_level=logging.ERROR, log_to_driver=False, **own)
    context, logger = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
    bars, level = context.enable_progress_bars, logger.level
    context.enable_progress_bars = False
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        context.enable_progress_bars = bars
        logger.setLevel(level)
        if begun:
            ray.shutdown()


@contextmanager
def _nothing_on_stderr() -> Iterator[None]:
    """Not even of what is compiled. Exceptions are raised all the same."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _pool(
    workers: int | None, gpus: int | None, *, spare: int = 0, at_once: int | None = None, most: int | None = None
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """A pool of workers, what each takes of the cluster, and what each is told of its device."""
    ray = require_ray()
    resources: dict[str, Any]
    on: dict[str, Any]
    if gpus is not None:
        count, resources, on = gpus, {"num_gpus": 1}, {"device": "cuda"}
    else:
        cores = int(ray.cluster_resources().get("CPU", 1))
        count, resources, on = workers or max(1, cores - spare), {"num_cpus": 1}, {"threads": 1}
    count = min(count, most or count)
    return ray.data.ActorPoolStrategy(size=count, max_tasks_in_flight_per_actor=at_once), resources, on


def check_workers(workers: int | None, gpus: int | None) -> None:
    for name, count in (("workers", workers), ("gpus", gpus)):
        if count is not None and count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
    if workers is not None and gpus is not None:
        raise ValueError("a worker has a core or a GPU; give workers or gpus, not both")
