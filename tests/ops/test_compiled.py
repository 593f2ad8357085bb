"""Functions that kernels call are compiled once, into the kernels."""

import numba
import numpy as np
import pytest

from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.sorting_cpu import ascending


@jit
def one_more(k):
    return k + 1


@jit
def count_to(n):
    k = 0  # a literal at first
    for _ in range(n):
        k = one_more(k)
    return k


@jit
def assign(target, source):
    target[:] = source


def test_callee_has_one_version_and_no_machine_code():
    count_to.compile((numba.int64,))
    (version,) = one_more.overloads.values()
    assert version.signature == numba.int64(numba.int64)
    assert version.library.get_pointer_to_function(version.fndesc.llvm_func_name) == 0
    assert not one_more.kernel.signatures
    assert (count_to(3), one_more(3)) == (3, 4)
    assert one_more.kernel.signatures


def test_assigning_an_array_of_another_shape_raises():
    target = np.zeros(3)
    assign(target, np.arange(3.0))
    assert target.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="another shape"):
        assign(target, np.zeros(2))


def test_ascending_is_stable():
    generator = np.random.default_rng(0)
    for n in (0, 1, 2, 3, 7, 8, 9, 100):
        values = generator.integers(0, 10, n).astype(np.float64)
        assert ascending(values).tolist() == np.argsort(values, kind="stable").tolist()
