"""Parse the value of a setting as its type."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from rationalizer.constraints import Constraints, parse_constraints
from rationalizer.models.class_weights import ClassWeight, parse_class_weight
from rationalizer.text import Budget


def parse_setting(key: str, value: Any, kind: Any) -> Any:
    """Return the value as type `kind`; strings are parsed, and integers are valid floats."""
    value = value.item() if isinstance(value, np.generic) else value
    if kind is Budget:
        return Budget.parse(value)
    if kind == Constraints:
        return parse_constraints(value)
    if kind == ClassWeight:
        return parse_class_weight(value)
    choices = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if type(value) in choices and not isinstance(value, str):
        return value
    for choice in sorted(choices, key=lambda choice: choice is not int):  # "5" is 5 rather than 5.0
        read = _parse_as(value, choice)
        if read is not _NOT:
            return read
    raise ValueError(f"{key} must be {' or '.join(map(_name, choices))}, got {value!r}")


_NOT = object()  # not of this type; None is a value
_NONE = ("none", "null", "")


def _parse_as(value: Any, kind: Any) -> Any:
    text = value.strip() if isinstance(value, str) else None
    if get_origin(kind) is Literal:
        return value if value in get_args(kind) else _NOT
    if kind is type(None):
        return None if text is not None and text.lower() in _NONE else _NOT
    if kind is str:
        return text if text is not None and text.lower() not in _NONE else _NOT
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), _NOT) if text is not None else _NOT
    if kind not in (int, float) or isinstance(value, bool):
        return _NOT
    try:
        number = kind(value)
        return number if text is not None or number == value else _NOT
    except (TypeError, ValueError, OverflowError):
        return _NOT


def _name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(repr(choice) for choice in get_args(kind))
    names = {
        type(None): "none",
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "a text",
    }
    return names.get(kind, str(kind))
