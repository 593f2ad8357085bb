"""Explain on a real Ray on this machine: the same results, also if a worker dies."""

import os
import signal
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from rationalizer.bulk import BulkResult, Explainer, explain, explain_files, ray_workers
from rationalizer.data import Columns
from rationalizer.ray_cluster import ray_session
from tests.bulk.conftest import ROWS

pytestmark = pytest.mark.long

ray = pytest.importorskip("ray", reason="pip install ray[data]")
REVIEW = Columns(text="review")


def test_on_ray(small, table, tmp_path, monkeypatch):
    """One test, because starting Ray takes longer than everything else."""
    with ray_session(None, cores=2):
        check_dead_worker(small, table, tmp_path)
        check_dataset(small, table)
        check_item_that_kills_every_worker(monkeypatch)
        check_gpus(small, table)
    assert not ray.is_initialized()


def same(found, expected):
    """Row for row; probabilities to 1e-5, since the last digits depend on which texts were read together."""
    found, expected = (table.sort_by("id").combine_chunks() for table in (found, expected))
    assert found.drop(["probability"]).equals(expected.drop(["probability"]))
    for one, other in zip(found["probability"].to_pylist(), expected["probability"].to_pylist(), strict=True):
        assert one == (None if other is None else pytest.approx(other, abs=1e-5))


def workers():
    """Return the worker processes of this Ray."""
    parents, found = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if (folder / "cmdline").read_bytes().startswith(b"ray::ChunkWorker"):
                found.append(int(folder.name))
        except OSError:  # the process has ended
            continue

    def is_ours(process):
        return process == os.getpid() or (process in parents and is_ours(parents[process]))

    return [process for process in found if is_ours(process)]


def check_dead_worker(small, table, tmp_path):
    """No row is lost or duplicated, and no file is left over."""
    parquet.write_table(table, tmp_path / "in.parquet")
    killed = []

    def kill(_):
        if not killed:  # one shard is finished, and each worker has another one left
            killed.append(workers()[0])
            os.kill(killed[0], signal.SIGKILL)

    how = {"columns": REVIEW, "rows": 15}
    done = explain_files(
        tmp_path / "in.parquet", tmp_path / "ray", small, engine="ray", on_progress=lambda _: nullcontext(kill), **how
    )
    assert killed
    assert done == BulkResult(explained=ROWS - 2, empty=2, written=8)
    explain_files(tmp_path / "in.parquet", tmp_path / "local", small, **how)
    same(parquet.read_table(tmp_path / "ray"), parquet.read_table(tmp_path / "local"))
    names = [sorted(path.name for path in (tmp_path / engine).iterdir()) for engine in ("ray", "local")]
    assert names[0] == names[1]


def check_dataset(small, table):
    found = explain(ray.data.from_arrow(table), small, columns=REVIEW, workers=1)
    same(pa.concat_tables(ray.get(found.to_arrow_refs())), Explainer(small, columns=REVIEW)(table))


def check_item_that_kills_every_worker(monkeypatch):
    class Deadly:
        def __init__(self, **on):
            pass

        def explain(self, item):
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(ray_workers, "ITEM_RETRIES", 1)
    with pytest.raises(ChildProcessError, match="on the item"):
        list(ray_workers.map_on_ray(Deadly, (), ["the item"], 1, None))


def check_gpus(small, table):
    with pytest.raises(ValueError, match=r"0 GPUs.* 0\.5"):
        explain(ray.data.from_arrow(table), small, gpus=0.5)
    with pytest.raises(ValueError, match="gpus must be at least 0, got -1"):
        explain(ray.data.from_arrow(table), small, gpus=-1)
    assert ray_workers._resources(3, 0.5) == (3, {"num_gpus": 0.5}, {"device": "cuda"})
    assert ray_workers._resources(None, 0) == (2, {"num_cpus": 1}, {"threads": 1})
