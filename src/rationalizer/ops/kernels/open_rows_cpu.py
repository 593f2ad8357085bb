"""Solve open rows while a CUDA stream waits: compiled functions that need neither CUDA nor the GIL.

An open row is one that a CUDA kernel leaves to the CPU. A call of a CUDA op has a mailbox in page-locked memory. If a
row is open, the kernel asks for a solution there; a thread of the host, in `serve`, finds the request, solves the rows
and answers, and the stream goes on. The GIL may be held by a thread that waits for the stream, so that nothing here may
need it: the rows run on POSIX threads, and functions receive their arguments as the address of an int64 array.
"""

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

from rationalizer.ops.kernels.numba_runtime import jit

# The fields of a call. Its arguments follow: the addresses of three blocks of memory and of the sequences of all rows,
# then addresses and numbers whose meaning its solver knows.
MAILBOX, ROWS, FLAGS, OPEN, COUNT, NEXT, THREADS, THREAD_IDS, SOLVER = range(9)
ARGUMENTS = 9
FLOATS, INTEGERS, BOOLEANS, SUPPORT = range(ARGUMENTS, ARGUMENTS + 4)
VALUES = ARGUMENTS + 4
# The numbers in a mailbox: whether a solution is wanted, whether it is there, and how many rows were open.
REQUEST, ANSWER, OPENED = range(3)
# The fields of `serve`. The addresses of the calls follow.
STOP, ACTIVITY, CALLS = range(3)
FIRST_CALL = 3

SHORT_SLEEP, LONG_SLEEP = 10, 1000  # microseconds between two looks at all mailboxes: in use, unused for long
LONG_UNUSED = 5000  # looks

_pthread_create = types.ExternalFunction("pthread_create", types.int32(types.intp, types.intp, types.intp, types.intp))
_pthread_join = types.ExternalFunction("pthread_join", types.int32(types.intp, types.intp))
_usleep = types.ExternalFunction("usleep", types.int32(types.uint32))


@intrinsic
def _pointer(context, address):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, values):  # type: ignore[no-untyped-def]
        return builder.inttoptr(values[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@intrinsic
def _exchange(context, address, value):  # type: ignore[no-untyped-def]
    """Write to memory that other threads or the GPU read, and return what was there; all earlier writes come first."""

    def generate(context, builder, signature, values):  # type: ignore[no-untyped-def]
        place = builder.inttoptr(values[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("xchg", place, values[1], "acq_rel")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _fetch_and_add(context, address, value):  # type: ignore[no-untyped-def]
    """Add to memory that other threads or the GPU write, and return what was there."""

    def generate(context, builder, signature, values):  # type: ignore[no-untyped-def]
        place = builder.inttoptr(values[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", place, values[1], "acq_rel")

    return types.int64(types.int64, types.int64), generate


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
    index = _fetch_and_add(call + 8 * NEXT, 1)
    return index if index < integers(call, ARGUMENTS)[COUNT] else -1


@jit
def _solve_open_rows(call):
    """List the rows whose flag is not 0, and run the solver of the call on them, on several threads."""
    fields = integers(call, ARGUMENTS)
    flags, open_rows = integers(fields[FLAGS], fields[ROWS]), integers(fields[OPEN], fields[ROWS])
    count = 0
    for row in range(fields[ROWS]):
        if flags[row] != 0:
            open_rows[count] = row
            count += 1
    fields[COUNT], fields[NEXT] = count, 0
    started = 0
    for _ in range(min(fields[THREADS], count)):
        thread_id = fields[THREAD_IDS] + 8 * started
        started += _pthread_create(thread_id, 0, fields[SOLVER], call) == 0
    for thread in range(started):
        _pthread_join(integers(fields[THREAD_IDS], started)[thread], 0)


@jit
def answer_request(call):
    """Solve the open rows if a request is in the mailbox of the call; return whether there was one."""
    mailbox = integers(call, ARGUMENTS)[MAILBOX]
    if _exchange(mailbox + 8 * REQUEST, 0) == 0:
        return False
    _solve_open_rows(call)
    _exchange(mailbox + 8 * ANSWER, 1)
    return True


def answer_request_in_graph(call):  # type: ignore[no-untyped-def]
    """The same, for the CUDA driver, which calls it when the stream is there."""
    answer_request(call)


@jit
def serve(service):
    """Answer the requests in the mailboxes of all calls until STOP is set."""
    unused, activity = 0, 0
    while _fetch_and_add(service + 8 * STOP, 0) == 0:
        served = False
        count = _fetch_and_add(service + 8 * CALLS, 0)
        calls = integers(service + 8 * FIRST_CALL, count)
        for k in range(count):
            served |= answer_request(calls[k])
        now = _fetch_and_add(service + 8 * ACTIVITY, 0)
        unused = 0 if served or now != activity else unused + 1
        activity = now
        if not served:
            _usleep(SHORT_SLEEP if unused < LONG_UNUSED else LONG_SLEEP)
