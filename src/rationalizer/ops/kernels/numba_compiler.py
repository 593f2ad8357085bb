"""Functions compiled by Numba, once each: what kernels call is handed on as it is, only whole kernels become code.

Numba by itself makes machine code of every function, optimised, and again of each function that calls it, with all that
it calls in turn. Of a kernel a dozen calls deep the innermost part is so compiled a dozen times over, for nothing: only
what Python calls is ever run, and everything is compiled into that.

Kernels are kept on disk. A process that finds its kernels there loads nothing of what compiling needs.

This builds on the inside of Numba, so `runtime` imports it only for versions that it was tried with.
"""

from __future__ import annotations

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

from rationalizer.ops.kernels.cache_key import all_sources


def _unequal_shapes(source: Any, target: Any) -> None:
    raise ValueError("cannot assign an array of another shape")


@overload(_unequal_shapes)
def _raise_unequal_shapes(source: Any, target: Any) -> Callable[[Any, Any], None]:
    return _unequal_shapes


@contextmanager
def _plain_messages() -> Iterator[None]:
    """Assignments of arrays to slices without the words that Numba has for two shapes that differ: it compiles all that
    strings need for them, which takes longer than most kernels."""
    from numba.np import arrayobj

    name = "raise_with_shape_context"
    numbas = getattr(arrayobj, name)
    setattr(arrayobj, name, _unequal_shapes)
    try:
        yield
    finally:
        setattr(arrayobj, name, numbas)


class _Part(JITCodeLibrary):
    """A function and what it calls, to be linked into others, which optimise it; never code of its own."""

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
        with _plain_messages():
            return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(_KernelLowering):
    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags = state.flags.copy()
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        super().run_pass(state)
        lowered = state["cr"]
        # Callers know it by this object, which is nothing to call.
        name = lowered.fndesc.qualname.split(".")[-1]
        known_by = _dynfunc.make_function(lowered.fndesc.lookup_module(), name, "", 0, lowered.env, (state.library,))
        state.targetctx.insert_user_function(known_by, lowered.fndesc, [state.library])
        state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=known_by, env=lowered.env)
        return True


class KernelCompiler(CompilerBase):
    """Numba's compiler, of what Python calls."""

    lowering: type = _KernelLowering

    def define_pipelines(self) -> list[PassManager]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [(self.lowering if each is NativeLowering else each, why) for each, why in passes.passes]
        return [passes]


class PartCompiler(KernelCompiler):
    """Numba's compiler up to the point where it would make machine code, of what kernels call."""

    lowering = _PartLowering


class _KernelCache(FunctionCache):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = all_sources()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)  # all that code needs to run; Numba imports here what it needs to compile
        return self._load_overload(sig, target_context)


class Compiled(CPUDispatcher):
    """A function that is part of the kernels that call it, and a kernel itself where Python calls it."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, targetoptions={"nopython": True, **options}, pipeline_class=PartCompiler)

    @cached_property
    def kernel(self) -> Any:
        options = {**self.targetoptions, "no_cfunc_wrapper": True}
        kernel: Any = CPUDispatcher(self.py_func, targetoptions=options, pipeline_class=KernelCompiler)
        # Where no folder can be written to, as in a container without a home, each process compiles anew.
        with suppress(RuntimeError):
            kernel._cache = _KernelCache(self.py_func)
        return kernel

    def get_call_template(self, args: Any, kws: Any) -> Any:
        # A variable that starts as 0 is a literal where it is first seen: a version for it would be thrown away.
        named = {name: unliteral(arg) for name, arg in kws.items()}
        return super().get_call_template([unliteral(arg) for arg in args], named)

    def __call__(self, *arguments: Any) -> Any:
        return self.kernel(*arguments)
