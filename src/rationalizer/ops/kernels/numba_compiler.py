"""Compile each function once: functions that kernels call are linked as they are, and only whole kernels are optimized.

By default Numba generates optimized machine code for every function, and again for every function that calls it. In a
kernel a dozen calls deep the innermost function is compiled a dozen times, although only kernels are called from Python
and everything is linked into them. Compiling all kernels takes 35 s of CPU time with this module and 82 s without it.

Kernels are cached on disk. A process that finds its kernels in the cache imports nothing that only compiling needs.

This module uses undocumented parts of Numba. `numba_runtime` imports it only for tested versions; if something is
missing all the same, kernels are compiled by documented means, with a warning.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.core.typed_passes import NativeLowering
from numba.core.types import unliteral
from numba.extending import overload

from rationalizer.ops.kernels import parallel_compilation
from rationalizer.ops.kernels.numba_runtime import compile_plainly, source_hash, warn_plain_compilation


def _unequal_shapes(source: Any, target: Any) -> None:
    raise ValueError("cannot assign an array of another shape")


@overload(_unequal_shapes)
def _raise_unequal_shapes(source: Any, target: Any) -> Callable[[Any, Any], None]:
    return _unequal_shapes


@contextmanager
def _short_messages() -> Iterator[None]:
    """Leave the two shapes out of the message about unequal shapes in an assignment: formatting them needs Numba's
    string functions, which take longer to compile than most kernels."""
    from numba.np import arrayobj

    name = "raise_with_shape_context"
    original = getattr(arrayobj, name, None)
    if original is not None:
        setattr(arrayobj, name, _unequal_shapes)
    try:
        yield
    finally:
        if original is not None:
            setattr(arrayobj, name, original)


class _CalleeLibrary(JITCodeLibrary):
    """The LLVM module of a function that only kernels call.

    It is linked into its callers and optimized there; no machine code is generated for it.
    """

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _KernelLowering(NativeLowering):
    _name = "kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        with _short_messages():
            return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _CalleeLowering(_KernelLowering):
    _name = "callee_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _CalleeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags = state.flags.copy()
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        super().run_pass(state)
        lowered = state["cr"]
        # Callers identify the function by this object, which cannot be called.
        name = lowered.fndesc.qualname.split(".")[-1]
        key = _dynfunc.make_function(lowered.fndesc.lookup_module(), name, "", 0, lowered.env, (state.library,))
        state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=key, env=lowered.env)
        return True


class KernelCompiler(CompilerBase):
    """Compiles functions that Python calls."""

    lowering: type = _KernelLowering
    plain = False  # set when our lowering has failed: everything is then compiled by Numba's default pipeline

    def define_pipelines(self) -> list[PassManager]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        if not KernelCompiler.plain:
            passes.passes = [(self.lowering if each is NativeLowering else each, why) for each, why in passes.passes]
        return [passes]


class CalleeCompiler(KernelCompiler):
    """Compiles functions that kernels call, up to the point where Numba would generate machine code."""

    lowering = _CalleeLowering


@contextmanager
def _paused_garbage_collection() -> Iterator[None]:
    """While compiling, the garbage collector would scan all of Numba repeatedly."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _KernelCache(FunctionCache):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = source_hash()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # Numba's method also imports what compiling needs; to run code from the cache this is enough.
        try:
            rtsys.initialize(target_context)
            return self._load_overload(sig, target_context)
        except AttributeError:
            return super().load_overload(sig, target_context)

    def is_empty(self) -> bool:
        return not self._cache_file._load_index()


class _Kernel(CPUDispatcher):
    def compile(self, sig: Any) -> Any:
        parallel_compilation.wait(self.py_func)
        with _paused_garbage_collection():
            return self._compile(sig)

    def _compile(self, sig: Any) -> Any:
        try:
            return super().compile(sig)
        except Exception as error:
            if KernelCompiler.plain:
                raise
            warn_plain_compilation(error)
            KernelCompiler.plain = True
            dispatcher: Any
            for dispatcher in (*_compiled, self):  # Numba remembers which calls it could not compile
                with suppress(AttributeError):
                    dispatcher._compiler._failed_cache.clear()
            return super().compile(sig)


_compiled: list[Compiled] = []


class Compiled(CPUDispatcher):
    """A function that is linked into the kernels that call it, and is a kernel itself if Python calls it."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, targetoptions={"nopython": True, **options}, pipeline_class=CalleeCompiler)
        self.options = options
        _compiled.append(self)

    @cached_property
    def kernel(self) -> Any:
        try:
            options = {**self.targetoptions, "no_cfunc_wrapper": True}
            kernel: Any = _Kernel(self.py_func, targetoptions=options, pipeline_class=KernelCompiler)
            with suppress(RuntimeError):  # no folder is writable: every process compiles again
                kernel._cache = _KernelCache(self.py_func)
            return kernel
        except Exception as error:
            warn_plain_compilation(error)
            return compile_plainly(self.py_func, **self.options)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        # A variable that starts as 0 has a literal type at first: a version compiled for it would not be used.
        named = {name: unliteral(arg) for name, arg in kws.items()}
        return super().get_call_template([unliteral(arg) for arg in args], named)

    def __call__(self, *arguments: Any) -> Any:
        return self.kernel(*arguments)
