"""Documentation of all settings, generated from their declarations."""

from __future__ import annotations

import inspect
import re
import types
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from rationalizer.constraints import Constraints
from rationalizer.models.class_weights import ClassWeight
from rationalizer.models.config import IDENTITY, Config, configure, flat_settings
from rationalizer.nn import ALIGNERS, ENCODERS, EXTRACTORS, OBJECTIVES, encoder_class, methods_for
from rationalizer.nn.method import settings_hints
from rationalizer.ranges import Range
from rationalizer.suggestions import did_you_mean

_FIELD = re.compile(r"    (\w+): [^#]*(?:# (.*))?")
_COMMENT = re.compile(r"\s+(?:[^#]*\s)?# (.*)")


@dataclass(frozen=True)
class SettingDoc:
    """The documentation of one setting."""

    name: str
    values: str  # allowed values
    default: str
    meaning: str = ""


@dataclass(frozen=True)
class MethodSettings:
    """All settings of runs with one method."""

    method: str
    about: str
    own: list[SettingDoc]
    encoder: list[SettingDoc]
    objective: list[SettingDoc]
    common: list[SettingDoc]


def describe_settings(
    method: str, *, pairs: bool | None = None, encoder: str = "bilstm", objective: str = Config.objective
) -> MethodSettings:
    """Return the settings of a method with an encoder and an objective; `pairs` for names that exist for both kinds of
    texts."""
    if method not in EXTRACTORS and method not in ALIGNERS:
        raise ValueError(f"there is no method {method!r}; {did_you_mean(method, [*EXTRACTORS, *ALIGNERS])}")
    config = configure(method, {"encoder": encoder, "objective": objective}, pairs=pairs)
    defaults = flat_settings(config.to_json())
    kind, options = methods_for(config.pairs)[method], encoder_class(encoder).Options
    minimised = OBJECTIVES[objective]
    objective_hints = {name: settings_hints(minimised)[name] for name in minimised.options()}
    common = {name: hint for name, hint in _hints(Config).items() if name not in IDENTITY}
    return MethodSettings(
        method,
        inspect.cleandoc(kind.__doc__ or "").partition("\n\nArgs:\n")[0],
        _document(settings_hints(kind), defaults, _inherited_docs(kind)),
        _document(_hints(options), defaults, _field_comments(options)),
        _document(objective_hints, defaults, _inherited_docs(minimised)),
        _document(common, defaults, _field_comments(Config)),
    )


def setting_names() -> set[str]:
    """Return the names of the settings of all methods, encoders and objectives."""
    parts: tuple[Any, ...] = (*EXTRACTORS.values(), *ALIGNERS.values(), *ENCODERS.values(), *OBJECTIVES.values())
    return {*_hints(Config), *(name for part in parts for name in part.options())} - set(IDENTITY)


def _hints(declared: Any) -> dict[str, Any]:
    return get_type_hints(declared, include_extras=True)


def _document(hints: dict[str, Any], defaults: dict[str, Any], comments: dict[str, str]) -> list[SettingDoc]:
    return [
        SettingDoc(name, _describe_values(hint), _format_default(defaults[name]), comments.get(name, ""))
        for name, hint in hints.items()
    ]


def _describe_values(hint: Any) -> str:
    """Describe the values that a type allows."""
    if hint == ClassWeight:
        return "auto, balanced, spam=5,ham=1, or none"
    if get_origin(hint) is Annotated:
        kind, *extras = get_args(hint)
        ranges = [extra for extra in extras if isinstance(extra, Range)]
        return (
            f"{_describe_values(kind).removesuffix(' or none')} {ranges[0].describe()}"
            if ranges
            else _describe_values(kind)
        )
    if get_origin(hint) is Literal:
        return ", ".join(map(str, get_args(hint)))
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_describe_values(each) for each in get_args(hint))
    if hint == Constraints:
        return "spans=2, never=stopwords, ..."
    names = {bool: "true, false", int: "whole number", float: "number", str: "text", type(None): "none"}
    return names.get(hint, "20%, 0.2, or 5 words" if hint.__name__ == "Budget" else str(hint))


def _format_default(value: Any) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _inherited_docs(declared: type) -> dict[str, str]:
    """Return the entries under "Args:" of a class and its bases."""
    return {name: text for base in reversed(declared.__mro__) for name, text in _argument_docs(base).items()}


def _argument_docs(declared: type) -> dict[str, str]:
    """Return the entries under "Args:" in a class's docstring."""
    _, _, arguments = inspect.cleandoc(declared.__doc__ or "").partition("Args:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", arguments, re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text).rstrip(".") for name, text in found}


def _field_comments(declared: type) -> dict[str, str]:
    """Return the comments of a class's fields, beside them or in the lines before."""
    found: dict[str, str] = {}
    before: list[str] = []
    name = ""
    for line in inspect.getsource(declared).splitlines():
        if match := _FIELD.fullmatch(line):
            name = match[1]
            found[name] = match[2] or " ".join(before)
            before = []
        elif line.startswith("    # "):
            before.append(line.removeprefix("    # "))
        elif name and not found[name] and line.startswith("        ") and (match := _COMMENT.fullmatch(line)):
            found[name] = match[1]  # beside a default on several lines
        else:
            before = []
    return found
