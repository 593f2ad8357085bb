"""A schema for stored JSON values, written as a value of the same shape.

    str, int, bool, float, dict   a string, an integer, a boolean, a finite number, an object
    object, None                  anything, null
    (float, None)                 one of these
    {"a", "b"}                    one of these strings
    [str]                         a list of these
    {"a": str, "b?": int}         an object with these keys and no others; "b" may be missing
    {"a": str, str: float}        any other key holds a number

Functions return a description of the first mismatch, or None.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

NAMES = {str: "a text", int: "a whole number", bool: "true or false", float: "a number", dict: "an object"}


def find_mismatch(value: Any, shape: Any, where: str = "") -> str | None:
    """Describe the first mismatch between a value and a schema; None if there is none."""
    if isinstance(shape, dict):
        return _find_object_mismatch(value, shape, where) if isinstance(value, dict) else _not(value, dict, where)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return _not(value, shape, where)
        return next((f for i, item in enumerate(value) if (f := find_mismatch(item, shape[0], f"{where}[{i}]"))), None)
    if isinstance(shape, tuple):
        faults = [find_mismatch(value, choice, where) for choice in shape]
        inside = [f for f, choice in zip(faults, shape, strict=True) if type(value) is type(choice)]
        return None if None in faults else next(iter(inside), _not(value, shape, where))
    return None if _is(value, shape) else _not(value, shape, where)


def _find_object_mismatch(value: dict[str, Any], shape: dict[Any, Any], where: str) -> str | None:
    inside = f"{where}." if where else ""
    known = {key.removesuffix("?"): inner for key, inner in shape.items() if key is not str}
    for key in shape:
        if key is not str and not key.endswith("?") and key not in value:
            return f"{inside}{key} is missing"
    for key, item in value.items():
        if key not in known and str not in shape:
            return f"{inside}{key} is not known"
        if found := find_mismatch(item, known.get(key, shape.get(str)), f"{inside}{key}"):
            return found
    return None


def _is(value: Any, shape: Any) -> bool:
    if shape is object:
        return True
    if shape is None:
        return value is None
    if isinstance(shape, set):
        return isinstance(value, str) and value in shape
    if shape is float:
        return type(value) in (int, float) and -sys.float_info.max <= value <= sys.float_info.max
    return type(value) is shape  # bool is a subclass of int


def _not(value: Any, shape: Any, where: str) -> str:
    given = repr(value)
    shown = given if len(given) <= 60 else f"{given[:60]}..."
    return f"{where or 'the content'} is {shown}, not {_name(shape)}"


def _name(shape: Any) -> str:
    if isinstance(shape, tuple):
        return " or ".join(map(_name, shape))
    if isinstance(shape, set):
        return f"one of {', '.join(sorted(shape))}"
    if isinstance(shape, list):
        return "a list"
    return "none" if shape is None else NAMES[dict if isinstance(shape, dict) else shape]


def find_tensor_mismatch(stored: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> str | None:
    """Describe why stored tensors cannot replace the expected ones (names, shapes, types, finite values); None if they
    can."""
    for name, wanted in expected.items():
        if name not in stored:
            return f"{name} is missing"
        found = stored[name]
        if found.shape != wanted.shape:
            return f"{name} has the shape {list(found.shape)}, not {list(wanted.shape)}"
        # Floating-point numbers may have any precision: a run may have used half precision.
        if not (found.dtype == wanted.dtype or (found.is_floating_point() and wanted.is_floating_point())):
            return f"{name} holds {_type(found)}, not {_type(wanted)}"
        if found.is_floating_point() and not bool(found.to(wanted.dtype).isfinite().all()):
            return f"{name} holds values that are not finite"
    return next((f"{name} is not known" for name in stored if name not in expected), None)


def _type(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
