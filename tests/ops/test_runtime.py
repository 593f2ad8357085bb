"""Compilation is cached on disk and never stale; threads and forks are safe."""

import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import numba
import numpy as np
import pytest
import torch

import rationalizer
from rationalizer import graph, nn, ops
from rationalizer.compile import GROUPS
from rationalizer.ops.kernels.budget_cpu import budget_rows
from rationalizer.ops.kernels.numba_compiler import Compiled
from rationalizer.ops.kernels.numba_runtime import compile_plainly, for_rows, for_slow_rows, source_hash
from rationalizer.ops.kernels.parallel_compilation import argument_types
from rationalizer.ops.sequence_budget import KERNELS as SEQUENCE_BUDGET_KERNELS

pytestmark = pytest.mark.long

# Two kernels as small as can be, of which one calls the other, compiled as all of them are.
KERNELS = {
    "inner_cpu.py": "from rationalizer.ops.kernels.numba_runtime import jit\n\n\n"
    "@jit\ndef inner(x):\n    return 2.0 * x\n",
    "outer_cpu.py": "from rationalizer.ops.kernels.inner_cpu import inner\n"
    "from rationalizer.ops.kernels.numba_runtime import jit\n\n\n@jit\ndef outer(x):\n    return inner(x) + 1.0\n",
}
SOLVE = """
import sys
from rationalizer.ops.kernels.outer_cpu import outer
print(outer(1.0), sum(outer.kernel.stats.cache_hits.values()), sum(outer.kernel.stats.cache_misses.values()))
print("numba.np.arrayobj" in sys.modules)
"""


def run(source: Path, cache: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", SOLVE], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def write_kernels(folder: Path) -> None:
    for name in ("numba_compiler.py", "numba_runtime.py", "parallel_compilation.py"):
        shutil.copy(Path(rationalizer.__file__).parent / "ops" / "kernels" / name, folder)
    for name, code in KERNELS.items():
        (folder / name).write_text(code)


def test_cache_is_reused_and_invalidated_by_edits(tmp_path):
    source = tmp_path / "src"
    kernels = source / "rationalizer" / "ops" / "kernels"
    kernels.mkdir(parents=True)
    for folder in (source / "rationalizer", source / "rationalizer" / "ops", kernels):
        (folder / "__init__.py").touch()
    write_kernels(kernels)
    assert run(source, tmp_path / "cache") == "3.0 0 1\nTrue"
    assert run(source, tmp_path / "cache") == "3.0 1 0\nFalse"  # nor does it import what compiling needs
    # An edit in one file, seen through a kernel of another that calls it.
    (kernels / "inner_cpu.py").write_text(KERNELS["inner_cpu.py"].replace("2.0", "5.0"))
    assert run(source, tmp_path / "cache") == "6.0 0 1\nTrue"


COMPILE_IN_SUBPROCESS = """
import os, sys
os.cpu_count = lambda: 2
from rationalizer.ops.kernels import parallel_compilation
from rationalizer.ops.kernels.outer_cpu import outer
parallel_compilation.start([[(outer, sys.argv[1])]])
print(outer(1.0), sum(outer.kernel.stats.cache_hits.values()), sum(outer.kernel.stats.cache_misses.values()))
print([process.wait() for process in parallel_compilation._running.values()], "torch" in sys.modules)
"""


def test_kernels_compile_in_subprocesses(tmp_path):
    kernels = tmp_path / "src" / "rationalizer" / "ops" / "kernels"
    kernels.mkdir(parents=True)
    for folder in kernels.parents[:2]:
        (folder / "__init__.py").touch()
    write_kernels(kernels)

    def run_with(types: str, cache: Path | None) -> str:
        environment = os.environ | {"PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        environment |= {"NUMBA_CACHE_DIR": str(cache)} if cache else {"HOME": "/dev/null", "NUMBA_CACHE_DIR": ""}
        command = [sys.executable, "-c", COMPILE_IN_SUBPROCESS, types]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert run_with("f", tmp_path / "cache") == "3.0 1 0\n[0] False"
    assert run_with("f", tmp_path / "cache") == "3.0 1 0\n[] False"  # it is in the cache
    assert run_with("i", tmp_path / "other") == "3.0 0 1\n[0] False"  # another version was compiled
    assert run_with("x", tmp_path / "failed") == "3.0 0 1\n[1] False"
    (kernels / "__pycache__").write_text("")  # a file: not even root can write into it
    assert run_with("f", None) == "3.0 0 1\n[] False"


def test_types_of_kernels_that_are_compiled_ahead():
    scores = torch.linspace(-1, 1, 18).reshape(2, 9).requires_grad_()
    for spread in (1e-2, 1.0):
        ops.sequence_budget(spread * scores, 3, transition=0.1).square().sum().backward()
    for kernel, types in (each for group in SEQUENCE_BUDGET_KERNELS for each in group):
        assert kernel.kernel.signatures == [argument_types(types)]


def test_ahead_of_time_compilation():
    for group in GROUPS:
        group()
    modules = [
        import_module(f"{package.__name__}.{name}")
        for package in (ops.kernels, graph.kernels, nn.kernels)
        for _, name, _ in pkgutil.iter_modules(package.__path__)
        if name.endswith("_cpu")
    ]
    called_from_python = {
        f"{module.__name__}.{name}": kernel
        for module in modules
        for name, kernel in vars(module).items()
        if isinstance(kernel, Compiled) and kernel.py_func.__code__.co_varnames[:2] == ("first", "last")
    }
    assert len(called_from_python) > 10
    assert [name for name, kernel in called_from_python.items() if not kernel.kernel.signatures] == []


CHANGED_NUMBA = {
    "untested version": ("numba.__version__ = '0.99.0'", ""),
    "missing class": ("import numba.core.codegen; del numba.core.codegen.JITCodeLibrary", ""),
    "missing function": ("", "compiler._dynfunc = None"),
    "missing dispatcher": ("", "compiler._Kernel = None"),
    "missing cache": ("", "compiler._KernelCache = None"),
    "missing loader": ("", "compiler.rtsys = None"),
}
SOLVE_ON_CHANGED_NUMBA = """
import sys, types, warnings
import numba, torch
{before}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from rationalizer import ops
    compiler = sys.modules.get("rationalizer.ops.kernels.numba_compiler")
    {after}
    scores = torch.linspace(-1, 1, 12).reshape(2, 6).requires_grad_()
    z = ops.fusedmax(scores)
    z[:, 0].sum().backward()
print(round(z.square().sum().item(), 4), sum(item.category is RuntimeWarning for item in caught))
"""


@pytest.mark.parametrize("change", CHANGED_NUMBA.values(), ids=CHANGED_NUMBA.keys())
def test_ops_work_when_undocumented_parts_of_numba_change(tmp_path, change):
    """At most one warning, and the kernels are compiled by documented means where necessary."""
    before, after = change
    program = SOLVE_ON_CHANGED_NUMBA.format(before=before, after=after)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    expected = float(ops.fusedmax(torch.linspace(-1, 1, 12).reshape(2, 6)).square().sum())
    value, warnings = done.stdout.split()
    assert float(value) == round(expected, 4)
    assert int(warnings) == ("rtsys" not in after)  # without it kernels are only loaded more slowly


SOLVE_ON_CHANGED_TORCH = """
import warnings
import torch

original = torch.library.custom_op

class Renamed:
    def __init__(self, op):
        self.__dict__["op"] = op
    def __getattr__(self, name):
        if name == "_backend_fns":
            raise AttributeError(name)
        return getattr(self.op, name)
    def __call__(self, *arguments):
        return self.op(*arguments)

def custom_op(*arguments, **options):
    decorate = original(*arguments, **options)
    return lambda function: Renamed(decorate(function))

torch.library.custom_op = custom_op
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from rationalizer import ops
    scores = torch.linspace(-1, 1, 12).reshape(2, 6).requires_grad_()
    z = ops.fusedmax(scores)
    z[:, 0].sum().backward()
print(round(z.square().sum().item(), 4), sum("PyTorch" in str(item.message) for item in caught))
"""


def test_ops_work_when_undocumented_parts_of_torch_change():
    command = [sys.executable, "-c", SOLVE_ON_CHANGED_TORCH]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    expected = float(ops.fusedmax(torch.linspace(-1, 1, 12).reshape(2, 6)).square().sum())
    assert done.stdout.split() == [str(round(expected, 4)), "1"]


def test_default_compiler_caches_by_source_hash(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    twice = compile_plainly(lambda x: 2 * x)
    assert (twice(3), len(twice.signatures), len(list(tmp_path.glob(f"{source_hash()[:16]}/**/*.nbc")))) == (6, 1, 1)
    assert str(tmp_path) == numba.config.CACHE_DIR


PLAIN = """
import torch
from rationalizer import graph, ops
torch.set_num_threads(1)
scores = torch.linspace(-1, 1, 12).reshape(2, 6)
print([round(x, 4) for x in ops.fusedmax(scores).flatten().tolist()])
"""


def plain_run(source: Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    whole = kept | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"} | environment
    done = subprocess.run([sys.executable, "-c", PLAIN], env=whole, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_works_without_writable_folder_or_compiler(tmp_path):
    """As for a user without a home, in a container; and with Numba switched off."""
    package, source = Path(rationalizer.__file__).parent, tmp_path / "src"
    ignore = shutil.ignore_patterns("__pycache__")
    for part in ("ops", "graph"):
        shutil.copytree(package / part, source / "rationalizer" / part, ignore=ignore)
    (source / "rationalizer" / "__init__.py").write_text("")
    for folder in [path for path in source.rglob("kernels") if path.is_dir()]:
        (folder / "__pycache__").write_text("")  # a file: not even root can write into it
    nowhere = plain_run(source, HOME="/dev/null", NUMBA_DISABLE_JIT="0")
    assert nowhere == plain_run(package.parent, NUMBA_DISABLE_JIT="1")


def test_concurrent_threads():
    scores = torch.randn(64, 200, generator=torch.Generator().manual_seed(0))
    expected = ops.sequence_budget(scores, 40, transition=0.1)
    results: list[torch.Tensor] = []

    def solve() -> None:
        for _ in range(5):
            results.append(ops.sequence_budget(scores, 40, transition=0.1))

    threads = [threading.Thread(target=solve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20
    assert all(torch.equal(result, expected) for result in results)


def test_works_after_a_fork():
    """As in a data-loader worker. Only our own pool is tried there: torch's OpenMP threads do not survive a fork."""
    scores, mask, least, limit = (
        np.random.default_rng(0).normal(size=(64, 2000)),
        np.ones((64, 2000), bool),
        np.zeros(64, np.int64),
        np.full(64, 40),
    )
    z, tau = np.empty((64, 2000)), np.empty(64)
    for_rows(budget_rows, 64, 10**9, scores, mask, least, limit, z, tau)  # the pool's threads exist now
    expected = z.copy()
    z[:] = 0.0
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a hang ends the child, and fails the test
        for_rows(budget_rows, 64, 10**9, scores, mask, least, limit, z, tau)
        os._exit(0 if np.array_equal(z, expected) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_kernel_errors_propagate():
    def kernel(first: int, last: int) -> None:
        raise RuntimeError(f"rows {first} to {last}")

    with pytest.raises(RuntimeError, match="rows"):
        for_rows(kernel, 8, 10**9)


def test_keyboard_interrupt_stops_slow_row():
    """The kernel is told to stop, and the exception comes through; the next call works."""
    scores = 0.5 + 0.05 * torch.randn(4, 700, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ops.sequence_budget(scores[:, :30], 6, transition=0.1)
    started = threading.Event()

    def interrupt() -> None:
        started.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()

    def solve() -> None:
        started.set()
        for _ in range(1000):
            ops.sequence_budget(scores, 140, transition=0.1)

    with pytest.raises(KeyboardInterrupt):
        solve()
    _, info = ops.sequence_budget(scores[:, :30], 6, transition=0.1, return_info=True)
    assert info.converged.all()


def test_slow_row_errors_propagate():
    def kernel(first, last, stop, seen):
        seen.append(first)
        if first == 2:
            raise RuntimeError("row 2")

    seen: list[int] = []
    with pytest.raises(RuntimeError, match="row 2"):
        for_slow_rows(kernel, 3, seen)
    assert sorted(seen) == [0, 1, 2]


def test_compiler_is_imported_lazily():
    """A layer's first call does without it, and later calls under it are as before."""
    program = """
import sys, torch
from rationalizer import ops
scores = torch.randn(3, 8, requires_grad=True)
z = ops.budget(scores, 2)
z.sum().backward()
print("torch._dynamo" in sys.modules)
compiled = torch.compile(lambda s: 2 * ops.budget(s, 2), backend="eager", fullgraph=True)
print(torch.equal(compiled(scores), 2 * z), "torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]
