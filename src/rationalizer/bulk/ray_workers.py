"""Workers on Ray: one machine or a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rationalizer.bulk.batch_explainer import Explainer
from rationalizer.data import Columns
from rationalizer.inference.predict import BATCH, BATCHES_PER_ROUND
from rationalizer.model import Rationalizer
from rationalizer.ray_cluster import require_ray

# How often an item is tried again whose worker died, and a worker made anew: what ends every process that reads it must
# not do so for ever.
RETRIES, DEATHS = 5, 20


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
        gpus: of each worker, a part of one if below 1; by default there are then as many workers as there are GPUs for.
    """
    check_workers(workers, gpus)
    require_ray()
    from ray.data import ActorPoolStrategy

    model = model if isinstance(model, Rationalizer) else Rationalizer.load(model)
    check_can_be_sent(model)
    count, resources, on = _share(workers, gpus, spare=1)
    how = {"columns": columns, "batch_size": batch_size, "skip_bad": skip_bad, **on}
    return dataset.map_batches(
        Explainer,
        fn_constructor_args=(model,),
        fn_constructor_kwargs=how,
        batch_size=BATCHES_PER_ROUND * batch_size,
        batch_format="pyarrow",
        zero_copy_batch=True,
        compute=ActorPoolStrategy(size=count),
        **resources,
    )


def each(
    worker: type, arguments: tuple[Any, ...], items: Sequence[Any], workers: int | None, gpus: float | None
) -> Iterator[Any]:
    """What workers' `explain` says of items, as they finish, while Ray is connected. A worker is made once in each
    process; one that dies is made anew, and its item comes again."""
    ray = require_ray()
    count, resources, on = _share(workers, gpus)
    actor = ray.remote(max_restarts=DEATHS, max_task_retries=RETRIES, **resources)(worker)
    sent = [ray.put(argument) for argument in arguments]  # once, however many workers
    pool = [actor.remote(*sent, **on) for _ in range(min(count, len(items)))]
    # An item goes to a worker that is there: a cluster may have no room for some until it has grown.
    busy = {one.__ray_ready__.remote(): (one, None) for one in pool}
    waiting, answers = list(reversed(items)), 0
    while answers < len(items):
        (done,), _ = ray.wait(list(busy), num_returns=1)
        one, item = busy.pop(done)
        try:
            answer = ray.get(done)
        except ray.exceptions.RayActorError:
            what = "when they were made" if item is None else f"of {item}"
            raise ChildProcessError(f"workers died again and again {what}; is there enough memory?") from None
        if waiting:
            following = waiting.pop()
            busy[one.explain.remote(following)] = one, following
        if item is not None:
            answers += 1
            yield answer


def _share(workers: int | None, gpus: float | None, spare: int = 0) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """How many workers, what each takes of the cluster, and what each is told of it."""
    there = require_ray().cluster_resources()
    if not gpus:
        return workers or max(1, int(there.get("CPU", 1)) - spare), {"num_cpus": 1}, {"threads": 1}
    count = workers or int(there.get("GPU", 0) / gpus)
    if not count:  # a cluster that grows has them later, but only its owner knows how many
        raise ValueError(
            f"Ray has {there.get('GPU', 0):g} GPUs here, but each worker asks for {gpus:g}; leave gpus out, or say by "
            "workers how many there shall be"
        )
    return count, {"num_gpus": gpus}, {"device": "cuda"}


def check_can_be_sent(model: Rationalizer) -> None:
    if model.trained.device.type != "cpu":
        raise ValueError(
            f"the model is on {model.trained.device}, which other processes do not have; load it on the CPU, and give "
            "gpus for workers that move it to theirs"
        )


def check_workers(workers: int | None, gpus: float | None) -> None:
    for name, count, least in (("workers", workers, 1), ("gpus", gpus, 0)):
        if count is not None and not count >= least:
            raise ValueError(f"{name} must be at least {least}, got {count}")
