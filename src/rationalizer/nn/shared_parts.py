"""Models that differ in some submodules and share all others: several generators with one predictor, for example."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TypeVar

from torch import nn

from rationalizer.nn.base_model import Model

AnyModule = TypeVar("AnyModule", bound=nn.Module)


class Parts(nn.Module):
    """Some submodules of a model, under the names that they have in the model."""


def copy_parts(model: nn.Module, names: Iterable[str]) -> Parts:
    """Copies of the submodules with these names, such as "head" or "encoder.generator"."""
    parts = Parts()
    for name in names:
        *parents, last = name.split(".")
        target: nn.Module = parts
        for parent in parents:
            if parent not in target._modules:
                target.add_module(parent, Parts())
            target = target.get_submodule(parent)
        target.add_module(last, copy.deepcopy(model.get_submodule(name)))
    return parts


def with_parts(model: Model, parts: Parts) -> Model:
    """A model with these parts in place of its own. Everything else is shared, not copied."""
    return _replace(model, parts)


def _replace(module: AnyModule, parts: Parts) -> AnyModule:
    replaced = copy.copy(module)
    replaced._modules = dict(module._modules)
    for name, part in parts.named_children():
        replaced._modules[name] = _replace(module.get_submodule(name), part) if isinstance(part, Parts) else part
    return replaced


def predictor_names(model: Model) -> list[str]:
    """The submodules between a selection and its prediction: the head, and the encoder without the generator."""
    children = {name for name, child in model.encoder.named_children() if child is not None}
    if "predictor" in children:  # otherwise generator and predictor share one network
        children -= {"generator"}
    return [*(f"encoder.{name}" for name in sorted(children)), "head"]
