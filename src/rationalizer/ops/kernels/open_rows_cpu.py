"""Solve open rows in the order of a CUDA stream: compiled functions that the CUDA driver calls, without Python.

An open row is one that a CUDA kernel leaves to the CPU. The driver calls `solve_open_rows` when the stream reaches it,
in a thread that must not call CUDA. Nothing here may need the GIL, which a thread that waits for the stream may hold:
the rows run on POSIX threads, functions receive their arguments as the address of an int64 array, and solvers catch all
exceptions, which need it as well.
"""

import numpy as np
from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from rationalizer.ops.kernels.numba_runtime import jit

# The fields of a call. Its arguments follow: the addresses of three blocks of memory and of the sequences of all rows,
# then addresses and numbers whose meaning its solver knows.
ROWS, FLAGS, OPEN, COUNT, NEXT, THREADS, THREAD_IDS, SOLVER, REPORT = range(9)
ARGUMENTS = 9
FLOATS, INTEGERS, BOOLEANS, SUPPORT = range(ARGUMENTS, ARGUMENTS + 4)
VALUES = ARGUMENTS + 4

UNKNOWN = -1  # at the address REPORT, before the number of open rows is there

_pthread_create = types.ExternalFunction("pthread_create", types.int32(types.intp, types.intp, types.intp, types.intp))
_pthread_join = types.ExternalFunction("pthread_join", types.int32(types.intp, types.intp))


@intrinsic
def _pointer(context, address):
    def generate(context, builder, signature, values):
        return builder.inttoptr(values[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@intrinsic
def _fetch_and_add_one(context, address):
    def generate(context, builder, signature, values):
        number = ir.IntType(64)
        return builder.atomic_rmw("add", builder.inttoptr(values[0], number.as_pointer()), number(1), "monotonic")

    return types.int64(types.int64), generate


@intrinsic
def _call(context, function, argument):
    """Call a C function of an int64 at an address."""

    def generate(context, builder, signature, values):
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)])
        builder.call(builder.inttoptr(values[0], kind.as_pointer()), [values[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@jit
def integers(address, shape):
    return carray(_pointer(address), shape, np.int64)


@jit
def floats(address, shape):
    return carray(_pointer(address), shape, np.float64)


@jit
def booleans(address, shape):
    return carray(_pointer(address), shape, np.bool_)


@jit
def bits(address, shape):
    return carray(_pointer(address), shape, np.uint64)


@jit
def next_open_row(call):
    """Return the index, in the list of open rows, of the next row to solve; −1 if there is none."""
    fields = integers(call, ARGUMENTS)
    index = _fetch_and_add_one(call + 8 * NEXT)
    return index if index < fields[COUNT] else -1


def solve_open_rows(call):
    """List the rows whose flag is not 0, and run the solver of the call on them, here and in other threads."""
    fields = integers(call, ARGUMENTS)
    flags, open_rows = integers(fields[FLAGS], fields[ROWS]), integers(fields[OPEN], fields[ROWS])
    count = 0
    for row in range(fields[ROWS]):
        if flags[row] != 0:
            open_rows[count] = row
            count += 1
    fields[COUNT], fields[NEXT] = count, 0
    integers(fields[REPORT], 1)[0] = count
    started = 0
    for _ in range(min(fields[THREADS], count) - 1):
        thread_id = fields[THREAD_IDS] + 8 * started
        started += _pthread_create(thread_id, 0, fields[SOLVER], call) == 0
    if count > 0:
        _call(fields[SOLVER], call)
    for thread in range(started):
        _pthread_join(integers(fields[THREAD_IDS], started)[thread], 0)
