"""The thread that solves rows for a CUDA stream, without a GPU: the test posts the requests."""

import importlib.util
import time

import pytest
import torch

from rationalizer import ops

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


@pytest.fixture
def service():
    from rationalizer.ops.kernels.open_rows_cuda import _Service

    service = _Service()
    yield service
    service.stop()
    assert not service.thread.is_alive()


def post(open_rows, rows, n, scores, mask, budget, transition) -> None:
    """Write what the CUDA kernel writes for rows that are all open, and wait for the answer."""
    open_rows.floats[: rows * n] = scores.flatten()
    open_rows.floats[2 * rows * n : 2 * rows * n + rows * (n - 1)] = transition
    open_rows.integers[:rows] = -1
    open_rows.integers[2 * rows : 4 * rows] = torch.tensor([budget] * rows + [0] * rows)
    open_rows.booleans[: rows * n] = mask.flatten()
    open_rows.mailbox[0] = 1
    until = time.monotonic() + 60
    while not open_rows.mailbox[1] and time.monotonic() < until:
        time.sleep(0.001)
    assert open_rows.mailbox[1] == 1, "the thread does not answer"
    open_rows.mailbox[1] = 0


def test_requests_of_several_calls_are_answered(service, generator):
    from rationalizer.ops.kernels.open_rows_cuda import OpenRows, new_support
    from rationalizer.ops.kernels.sequence_budget_open_rows_cpu import solve_sequence_budget

    calls = [OpenRows(torch.device("cpu"), in_graph=False) for _ in range(3)]
    for open_rows in calls:
        service.add(open_rows)
    for step in range(12):
        open_rows, rows, n = calls[step % 3], 5 + step, 20 + step
        scores = 0.5 + 0.05 * torch.randn(rows, n, dtype=torch.float64, generator=generator)
        mask = torch.rand(rows, n, generator=generator) < 0.8
        support = new_support(rows, n)
        open_rows.make_room(((3 * n + 1) * rows, 5 * rows, (n + 1) * rows))
        open_rows.prepare(solve_sequence_budget, rows, support, n, 10_000, 0.0)
        post(open_rows, rows, n, scores, mask, 6, transition=0.1)
        size = open_rows.integers[:rows]
        assert (size > 0).any()
        z = open_rows.floats[rows * n : 2 * rows * n].reshape(rows, n)
        expected = ops.sequence_budget(scores, 6, transition=0.1, mask=mask)
        torch.testing.assert_close(z[size > 0], expected[size > 0], rtol=0, atol=1e-12)


def test_more_calls_than_there_is_room_for(service):
    from rationalizer.ops.kernels.open_rows_cuda import MOST_CALLS, OpenRows

    open_rows = OpenRows(torch.device("cpu"), in_graph=False)
    for _ in range(MOST_CALLS):
        service.add(open_rows)
    with pytest.raises(RuntimeError, match=str(MOST_CALLS)):
        service.add(open_rows)
