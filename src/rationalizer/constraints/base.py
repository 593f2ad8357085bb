"""What all constraints have in common: a name, a text form, a JSON form, and a place in the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Self, TypeVar

from rationalizer.discovery import PLUGINS, load_plugins
from rationalizer.ranges import check_ranges, ranges_of
from rationalizer.suggestions import did_you_mean
from rationalizer.text.errors import InputError, short_repr


class ConstraintConflict(InputError):
    """No selection of a text satisfies the constraints. The message is "place problem; remedy".

    Args:
        problem: what is wrong.
        remedy: what to do about it.
        unit: "text" or "pair", if it is one of several.
        index: which of them, counted from 0.
        place: how the user knows the text, such as "reviews.csv, row 12"; by default from `unit` and `index`.
    """

    def __init__(
        self, problem: str, remedy: str = "", *, unit: str = "", index: int | None = None, place: str = ""
    ) -> None:
        super().__init__(problem, remedy)
        self.unit, self.index = unit, index
        self.place = place or ("" if index is None else f"{unit} {index + 1}")

    def __str__(self) -> str:
        return f"{self.place} {super().__str__()}" if self.place else super().__str__()

    def with_place(self, place: str) -> ConstraintConflict:
        """The same conflict, in a text that the user knows by another name: a row of a file, say."""
        return ConstraintConflict(self.problem, self.remedy, place=place)

    def shifted(self, count: int) -> ConstraintConflict:
        """The same conflict, counted from `count` texts earlier."""
        if self.index is None:
            return self
        return ConstraintConflict(self.problem, self.remedy, unit=self.unit, index=self.index + count)


@dataclass(frozen=True)
class Constraint:
    """A limit on what a model may select, beside its budget. Its settings are the fields of a frozen dataclass.

    >>> Constraint.parse("spans=2")
    Spans(2)
    >>> str(Spans(2)), Spans(2).to_json()
    ('spans=2', {'name': 'spans', 'most': 2})
    """

    name: ClassVar[str]  # as it is written: lower case, with hyphens
    usage: ClassVar[str]  # how it is written, by an example
    pairs: ClassVar[bool] = False  # whether it is for alignments of two texts, not for highlights of one
    suggested: ClassVar[tuple[str, ...]] = ()  # those that the web page offers to click

    def __post_init__(self) -> None:
        ranges = ranges_of(type(self))
        for key in ranges:
            value = getattr(self, key)
            if not (value is None and ranges[key].none) and (not isinstance(value, int) or isinstance(value, bool)):
                raise InputError(f"{self.name}: {key} must be a whole number, got {short_repr(value)}")
        try:
            check_ranges(ranges, {key: getattr(self, key) for key in ranges})
        except ValueError as error:
            raise InputError(f"{self.name}: {error}") from None

    @property
    def per_text(self) -> bool:
        """Whether it says something of each of the texts at hand, so that it serves for these alone."""
        return False

    # As people write it

    @staticmethod
    def parse(value: Any) -> Constraint:
        """A constraint; or one written as text ("spans=2") or as JSON ({"name": "spans", "most": 2})."""
        if isinstance(value, Constraint):
            return value
        if isinstance(value, str):
            return Constraint._from_text(value)
        if isinstance(value, Mapping) and isinstance(value.get("name"), str):
            return Constraint._from_json(value)
        raise InputError(f"a constraint was expected, got {short_repr(value)}", f"write it as one of {_usages()}")

    @staticmethod
    def _from_text(text: str) -> Constraint:
        """From its text form: a name, or name=value."""
        name, equals, value = text.strip().partition("=")
        cls = get_constraint(name.strip())
        try:
            return cls.parse_value(value.strip()) if equals else cls.parse_value("")
        except ValueError as error:
            said = str(error).removeprefix(f"{cls.name}: ")
            raise InputError(f"the constraint {short_repr(text)}: {said}", f"write it as {cls.usage}") from None

    @classmethod
    def parse_value(cls, value: str) -> Self:
        """From what stands behind "=": nothing, or a whole number for the only field."""
        settings = fields(cls)
        if not settings:
            if value:
                raise InputError(f"{cls.name} takes no value, got {short_repr(value)}")
            return cls()
        if len(settings) > 1 or not value.isdecimal():
            raise InputError(f"a whole number was expected, got {short_repr(value)}")
        return cls(**{settings[0].name: int(value)})

    def format_value(self) -> str:
        """What stands behind "=" in the text form; `parse_value` takes it back."""
        return ",".join(str(value) for value in self._settings().values())

    def describe(self) -> str:
        """For people to read, such as "at most 2 spans"."""
        return str(self)

    def __str__(self) -> str:
        value = self.format_value()
        return f"{self.name}={value}" if value else self.name

    def __repr__(self) -> str:
        first = fields(self)[:1]
        shortened = [
            f"{value!r}" if first and key == first[0].name and len(fields(self)) == 1 else f"{key}={value!r}"
            for key, value in self._settings().items()
        ]
        return f"{type(self).__name__}({', '.join(shortened)})"

    # As it is stored

    def to_json(self) -> dict[str, Any]:
        if self.per_text:
            raise InputError(f"{self!r} marks the texts at hand, and cannot be kept", "give it to explain or predict")
        return {"name": self.name, **{key: _listed(value) for key, value in self._settings().items()}}

    @staticmethod
    def _from_json(stored: Mapping[str, Any]) -> Constraint:
        cls = get_constraint(stored["name"])
        known = [item.name for item in fields(cls)]
        given = {key: value for key, value in stored.items() if key != "name"}
        unknown = next((key for key in given if key not in known), None)
        if unknown is not None:
            raise InputError(f"{cls.name} has no setting {unknown!r}", did_you_mean(unknown, known))
        missing = [item.name for item in fields(cls) if item.default is MISSING and item.name not in given]
        if missing:
            raise InputError(f"{cls.name}: {missing[0]} is missing")
        return cls(**given)

    def _settings(self) -> dict[str, Any]:
        """What is not left at its default."""
        values = {item.name: (getattr(self, item.name), item.default) for item in fields(self)}
        return {key: value for key, (value, default) in values.items() if value != default}


def _listed(value: Any) -> Any:
    """As JSON gives it back."""
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


Constraints = tuple[Constraint, ...]


def parse_constraints(values: Any) -> Constraints:
    """Constraints as people give them: one, a list of them, or none."""
    if values is None or values == "none" or values == ["none"]:
        return ()
    listed = [values] if isinstance(values, (str, Constraint, Mapping)) else values
    if not isinstance(listed, Iterable):
        raise InputError(f"constraints are a list such as [Spans(2)] or ['spans=2'], got {short_repr(values)}")
    found: list[Constraint] = []
    for value in listed:
        constraint = Constraint.parse(value)
        if constraint not in found:
            found.append(constraint)
    return tuple(found)


CONSTRAINTS: dict[str, type[Constraint]] = {}

_C = TypeVar("_C", bound=type[Constraint])


def register(name: str, usage: str) -> Callable[[_C], _C]:
    """Makes a constraint class known as `name`; `usage` shows how it is written."""

    def add(cls: _C) -> _C:
        if name in CONSTRAINTS:
            raise InputError(f"the constraint {name!r} is already taken by {CONSTRAINTS[name].__qualname__}")
        cls.name, cls.usage = name, usage
        CONSTRAINTS[name] = cls
        return cls

    return add


def get_constraint(name: str) -> type[Constraint]:
    """The class of that name, however its words are joined and written."""
    key = name.lower().replace("_", "-").replace(" ", "-")
    if key not in CONSTRAINTS:
        load_plugins(again=True)
    if key not in CONSTRAINTS:
        raise InputError(
            f"there is no constraint {short_repr(name)}",
            f"{did_you_mean(key, CONSTRAINTS)}, or if it is your own, import the module that "
            f"registers it first, or make it an entry point of the group {PLUGINS}",
        )
    return CONSTRAINTS[key]


def _usages() -> str:
    return ", ".join(cls.usage for cls in CONSTRAINTS.values())
