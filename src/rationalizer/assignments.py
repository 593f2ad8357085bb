"""Settings written as KEY=VALUE."""

from __future__ import annotations

from collections.abc import Sequence


def parse_assignments(pairs: Sequence[str] | None, option: str) -> dict[str, str]:
    """Parse the values of an option that takes KEY=VALUE any number of times."""
    values: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        key = key.strip()
        if not equals or not key:
            raise ValueError(f"{option} takes KEY=VALUE, got {pair!r}")
        if key in values:
            raise ValueError(f"{option} sets {key!r} twice, to {values[key]!r} and to {value!r}; leave one out")
        values[key] = value
    return values
