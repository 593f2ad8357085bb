"""What all constraints have in common: a name, a text form, a JSON form, and the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from rationalizer.discovery import PLUGINS, Registry, load_plugins
from rationalizer.plurals import count_of
from rationalizer.ranges import check_ranges, ranges_of
from rationalizer.suggestions import did_you_mean
from rationalizer.text import AnyExample
from rationalizer.text.errors import InputError, short_repr

MAX_SHOWN = 60  # characters of a constraint in a message


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
        """Return the same conflict with `count` added to its index."""
        if self.index is None:
            return self
        return ConstraintConflict(self.problem, self.remedy, unit=self.unit, index=self.index + count)


def list_constraints(constraints: Iterable[Constraint]) -> str:
    """The constraints in an error or a warning: a long list of words is cut short."""
    names = map(str, constraints)
    return ", ".join(name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}..." for name in names)


class BatchItem(NamedTuple):
    """A text or a pair of texts, and its position among the processed items."""

    example: AnyExample
    position: int
    total: int

    @property
    def unit(self) -> str:
        return "text" if len(self.example.texts) == 1 else "pair"

    def __str__(self) -> str:
        return f"{self.unit} {self.position + 1} ({self._quoted()})"

    def conflict(self, constraints: Constraints, reason: str, remedy: str) -> ConstraintConflict:
        """The error that these constraints cannot be satisfied on it."""
        problem = f"({self._quoted()}) under {list_constraints(constraints)}: {reason}"
        return ConstraintConflict(problem, remedy, unit=self.unit, index=self.position)

    def own(self, name: str, key: str, values: Any) -> Any:
        """This item's entry of a constraint's setting that has one entry per item."""
        if len(values) != self.total:
            count = count_of(self.total, self.unit)
            raise InputError(
                f"{name}: {key} has {len(values)} entries, but there are {count}", f"give one per {self.unit}"
            )
        return values[self.position]

    def _quoted(self) -> str:
        return " / ".join(short_repr(text.text) for text in self.example.texts)


@dataclass(frozen=True)
class Constraint:
    """A constraint on a model's selection, besides its budget. Its settings are the fields of a frozen dataclass.

    >>> Constraint.parse("spans=2")
    Spans(2)
    >>> str(Spans(2)), Spans(2).to_json()
    ('spans=2', {'name': 'spans', 'most': 2})
    """

    name: ClassVar[str]  # lower case, with hyphens
    usage: ClassVar[str]  # an example of the text form
    pairs: ClassVar[bool] = False  # True if it is for alignments of two texts, not for rationales of one
    suggested: ClassVar[tuple[str, ...]] = ()  # text forms that the web page offers

    def __post_init__(self) -> None:
        ranges = ranges_of(type(self))
        values = {key: getattr(self, key) for key in ranges}
        for key, value in values.items():
            if not (value is None and ranges[key].none) and (not isinstance(value, int) or isinstance(value, bool)):
                raise InputError(f"{self.name}: {key} must be a whole number, got {short_repr(value)}")
        try:
            check_ranges(ranges, values)
        except ValueError as error:
            raise InputError(f"{self.name}: {error}") from None

    @property
    def per_text(self) -> bool:
        """Whether it names words of particular texts, so that it cannot be used in training."""
        return False

    @staticmethod
    def parse(value: Any) -> Constraint:
        """Make a constraint from its text form ("spans=2") or its JSON form ({"name": "spans", "most": 2})."""
        if isinstance(value, Constraint):
            return value
        if isinstance(value, str):
            return Constraint._from_text(value)
        if isinstance(value, Mapping) and isinstance(value.get("name"), str):
            return Constraint._from_json(value)
        usages = ", ".join(cls.usage for cls in CONSTRAINTS.values())
        raise InputError(f"a constraint was expected, got {short_repr(value)}", f"write it as one of {usages}")

    @staticmethod
    def _from_text(text: str) -> Constraint:
        name, _, value = text.strip().partition("=")
        cls = get_constraint(name.strip())
        try:
            return cls.parse_value(value.strip())
        except ValueError as error:
            problem = str(error).removeprefix(f"{cls.name}: ")
            raise InputError(f"the constraint {short_repr(text)}: {problem}", f"write it as {cls.usage}") from None

    @classmethod
    def parse_value(cls, value: str) -> Self:
        """Parse what follows "=" in the text form: by default nothing, or a whole number for the only field."""
        settings = fields(cls)
        if not settings:
            if value:
                raise InputError(f"{cls.name} takes no value, got {short_repr(value)}")
            return cls()
        if len(settings) > 1 or not value.isdecimal():
            raise InputError(f"a whole number was expected, got {short_repr(value)}")
        return cls(**{settings[0].name: int(value)})

    def format_value(self) -> str:
        """What follows "=" in the text form; `parse_value` reads it."""
        return ",".join(str(value) for value in self._settings().values())

    def describe(self) -> str:
        """A short description for people, such as "at most 2 spans"."""
        return str(self)

    def __str__(self) -> str:
        value = self.format_value()
        return f"{self.name}={value}" if value else self.name

    def __repr__(self) -> str:
        only = len(fields(self)) == 1
        settings = [f"{value!r}" if only else f"{key}={value!r}" for key, value in self._settings().items()]
        return f"{type(self).__name__}({', '.join(settings)})"

    def to_json(self) -> dict[str, Any]:
        if self.per_text:
            raise InputError(
                f"{self!r} names words of particular texts and cannot be stored", "give it to explain or predict"
            )
        return {"name": self.name, **{key: _to_lists(value) for key, value in self._settings().items()}}

    @staticmethod
    def _from_json(stored: Mapping[str, Any]) -> Constraint:
        cls = get_constraint(stored["name"])
        known = [item.name for item in fields(cls)]
        settings = {key: value for key, value in stored.items() if key != "name"}
        unknown = next((key for key in settings if key not in known), None)
        if unknown is not None:
            raise InputError(f"{cls.name} has no setting {unknown!r}", did_you_mean(unknown, known))
        missing = [item.name for item in fields(cls) if item.default is MISSING and item.name not in settings]
        if missing:
            raise InputError(f"{cls.name}: {missing[0]} is missing")
        return cls(**settings)

    def _settings(self) -> dict[str, Any]:
        """The settings that differ from their defaults."""
        values = {item.name: (getattr(self, item.name), item.default) for item in fields(self)}
        return {key: value for key, (value, default) in values.items() if value != default}


def _to_lists(value: Any) -> Any:
    return [_to_lists(item) for item in value] if isinstance(value, tuple) else value


Constraints = tuple[Constraint, ...]


def parse_constraints(values: Any) -> Constraints:
    """Make constraints from one constraint, a list of them, or None; each may be in its text or JSON form."""
    if values is None or values == "none" or values == ["none"]:
        return ()
    items = [values] if isinstance(values, (str, Constraint, Mapping)) else values
    if not isinstance(items, Iterable):
        raise InputError(f"constraints are a list such as [Spans(2)] or ['spans=2'], got {short_repr(values)}")
    constraints: list[Constraint] = []
    for item in items:
        constraint = Constraint.parse(item)
        if constraint not in constraints:
            constraints.append(constraint)
    return tuple(constraints)


CONSTRAINTS: Registry[type[Constraint]] = Registry("constraint")

_C = TypeVar("_C", bound=type[Constraint])


def register(name: str, usage: str) -> Callable[[_C], _C]:
    """Register a constraint class as `name`; `usage` is an example of its text form."""

    def add(cls: _C) -> _C:
        cls.usage = usage
        return CONSTRAINTS.register(name)(cls)

    return add


def get_constraint(name: str) -> type[Constraint]:
    """The constraint class of this name; case, underscores and spaces do not matter."""
    key = name.lower().replace("_", "-").replace(" ", "-")
    if key not in CONSTRAINTS:
        load_plugins(again=True)
    if key not in CONSTRAINTS:
        hint = did_you_mean(key, CONSTRAINTS)
        raise InputError(
            f"there is no constraint {short_repr(name)}",
            f"{hint if hint.endswith('?') else f'{hint}.'} If it is your own, import the module that registers it "
            f"first, or make it an entry point of the group {PLUGINS}",
        )
    return CONSTRAINTS[key]
