"""Declare a custom op once: its CPU kernel, the shapes of its outputs, its backward and its CUDA launcher.

Every op has three implementations: Numba on CPU tensors, Triton on CUDA tensors, and on all other devices (and on CUDA
without Triton) either a plain PyTorch function or the CPU kernel, with tensors copied to the host and back.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache, wraps
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

_Function = Callable[..., Any]


def declare(
    name: str,
    *,
    fake: _Function,
    outputs: Sequence[str] = ("z",),
    backward: _Function | None = None,
    cuda: str | None = None,
    elsewhere: _Function | None = None,
    every_device: bool = False,
    host_outputs: bool = False,
) -> Callable[[_Function], Any]:
    """Turn the decorated function, which is the CPU kernel, into the custom op `rationalizer::name`.

    `torch.compile` does not trace into the op. Kernels never change their inputs.

    Args:
        name: name of the op.
        fake: returns empty outputs of the right shapes. It is called with those inputs of the op that its parameters
            name.
        outputs: names of the outputs. The op is differentiable in the first one only.
        backward: maps the gradient of the first output to the gradients of the leading inputs. Its other parameters
            name the inputs and outputs that it needs, which are saved for it.
        cuda: "module.function" under `kernels`, the launcher for CUDA tensors, imported when the first one arrives.
        elsewhere: implementation for other devices, with the same parameters; None runs the CPU kernel on copies.
        every_device: the decorated function handles tensors on every device itself.
        host_outputs: on CUDA it has CPU tensors as inputs or outputs, which CUDA graphs of `torch.compile` cannot hold.
    """
    unsafe = getattr(torch.Tag, "cudagraph_unsafe", None)  # PyTorch 2.5 does without: it makes no graphs of such ops
    options: dict[str, Any] = {"tags": (unsafe,)} if host_outputs and unsafe is not None else {}

    def decorate(function: _Function) -> Any:
        signature = inspect.signature(function)
        inputs = list(signature.parameters)

        @wraps(function)
        def default(*arguments: Any) -> Any:
            return run_on_host(op, *arguments)

        general = function if every_device else elsewhere or default
        op: Any = torch.library.custom_op(f"rationalizer::{name}", mutates_args=(), **options)(general)
        op.__signature__ = signature  # read when the op is another op's backward
        if not every_device:
            _register_cpu(op, function)
        if cuda is not None:
            _register_cuda(op, cuda, general)
        needed = [inputs.index(parameter) for parameter in inspect.signature(fake).parameters]
        op.register_fake(lambda *arguments: fake(*(arguments[i] for i in needed)))
        if backward is not None:
            _register_autograd(op, inputs, list(outputs), backward)
        return op

    return decorate


def like_scores(scores: Tensor) -> Tensor:
    """Return the `fake` of an op with one output, of the shape of its scores."""
    return scores.new_empty(scores.shape)


def _register_autograd(op: Any, inputs: list[str], outputs: list[str], backward: _Function) -> None:
    saved = list(inspect.signature(backward).parameters)[1:]
    position = {name: i for i, name in enumerate(inputs + outputs)}
    needed = [position[name] for name in saved]

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        results = output if isinstance(output, tuple) else (output,)
        everything = (*inputs, *results)
        values = [everything[i] for i in needed]
        ctx.save_for_backward(*(value if isinstance(value, Tensor) else None for value in values))
        ctx.options = [None if isinstance(value, Tensor) else value for value in values]
        ctx.mark_non_differentiable(*results[1:])
        ctx.set_materialize_grads(False)

    def run(ctx: Any, g: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
        gradients: tuple[Tensor, ...] = ()
        if g is not None:
            saved = zip(ctx.saved_tensors, ctx.options, strict=True)
            result = backward(g, *(option if tensor is None else tensor for tensor, option in saved))
            gradients = result if isinstance(result, tuple) else (result,)
        return *gradients, *(None,) * (len(inputs) - len(gradients))

    op.register_autograd(run, setup_context=setup_context)


def _register_cpu(op: Any, function: _Function) -> None:
    """Register the CPU kernel so that its first call does not import `torch._dynamo`, which takes 1.5 s.

    PyTorch wraps kernels to hide them from `torch.compile`, and imports the compiler to do so. While nothing else has
    imported it, there is nothing to hide from.
    """
    op.register_kernel("cpu")(function)
    try:
        hidden = op._backend_fns["cpu"]  # undocumented: if it is missing, the wrapped kernel stays
    except (AttributeError, KeyError, TypeError):
        _warn_slow_start()
        return

    def call(*arguments: Any, **options: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return function(*arguments, **options)
        op._backend_fns["cpu"] = hidden
        return hidden(*arguments, **options)

    op._backend_fns["cpu"] = call


@cache
def _warn_slow_start() -> None:
    warnings.warn(
        f"PyTorch {torch.__version__} has changed: the first call of an op takes about a second longer than with a "
        "tested version. Results and speed are the same.",
        RuntimeWarning,
        stacklevel=2,
    )


def _register_cuda(op: Any, path: str, general: _Function) -> None:
    module, _, name = path.partition(".")

    def launch(*arguments: Any) -> Any:
        with torch.cuda.device(arguments[0].device):  # Triton launches on the current device
            return find_launcher(module, name, general)(*arguments)

    op.register_kernel("cuda")(launch)


def run_on_host(op: _Function, *inputs: Any) -> Any:
    """Run `op` on CPU copies of the inputs, in float64; the outputs get the device and dtype of the first input."""
    like = inputs[0]
    results = op(*(_to_host(value) if isinstance(value, Tensor) else value for value in inputs))
    if isinstance(results, Tensor):
        return results.to(like)
    return tuple(r.to(like) if r.is_floating_point() else r.to(like.device) for r in results)


def _to_host(tensor: Tensor) -> Tensor:
    return tensor.cpu().double() if tensor.is_floating_point() else tensor.cpu()


@cache
def find_launcher(module: str, name: str, otherwise: _Function) -> _Function:
    """Return the launcher of a Triton kernel; `otherwise` if Triton cannot run."""
    if not has_triton():
        return otherwise
    return getattr(import_module(f"rationalizer.ops.kernels.{module}"), name)


@cache
def has_triton() -> bool:
    """Return whether Triton kernels can be launched; on CUDA machines Triton also needs a C compiler."""
    try:
        import_module("triton.runtime").driver.active.get_current_target()
    except ImportError:
        return False
    except Exception as error:
        warnings.warn(f"Triton cannot run ({error}). Ops on CUDA tensors use slower implementations.", stacklevel=2)
        return False
    return True
