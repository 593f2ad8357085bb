"""Ways in which a file goes bad."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from soak.cases import Case

OTHERS: tuple[Any, ...] = (None, True, -1, 0, 1e300, "", "x", [], {}, [[]], {"x": 1})


def damage(case: Case, path: Path) -> None:
    """Changes the file in one of many ways, and notes which."""
    content = path.read_bytes()
    kinds = ["bit", "bit", "cut", "zeros", "empty", "gone"]
    if path.suffix == ".json":
        kinds += ["key"] * 6
    kind = case.pick(kinds)
    if kind == "gone":
        path.unlink()
        case.note(f"{path.name} deleted")
    elif kind == "key":
        path.write_text(json.dumps(_with_damaged_key(case, path.name, json.loads(content))))
    else:
        path.write_bytes(_damaged_bytes(case, path.name, kind, content))


def _damaged_bytes(case: Case, name: str, kind: str, content: bytes) -> bytes:
    if kind == "empty":
        case.note(f"{name} emptied")
        return b""
    # Half of them near the start, where headers are.
    at = int(case.random.integers(len(content) if case.chance(0.5) else min(len(content), 200)))
    if kind == "cut":
        case.note(f"{name} cut to {at} of {len(content)} bytes")
        return content[:at]
    changed = bytearray(content)
    if kind == "zeros":
        size = min(int(case.random.integers(1, 513)), len(content) - at)
        changed[at : at + size] = bytes(size)
        case.note(f"{name} with {size} zeros from byte {at}")
    else:
        bit = int(case.random.integers(8))
        changed[at] ^= 1 << bit
        case.note(f"{name} with bit {bit} of byte {at} flipped")
    return bytes(changed)


def _with_damaged_key(case: Case, name: str, value: Any) -> Any:
    """The same value with one key (or entry) deleted, renamed or of another type, at any depth."""
    holder, path = value, name
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = case.pick(keys)
        path = f"{path}[{key!r}]"
        inner = holder[key]
        if not isinstance(inner, (dict, list)) or not inner or case.chance(0.4):
            break
        holder = inner
    kind = case.pick(["deleted", "renamed", "retyped"])
    if kind == "deleted":
        del holder[key]
    elif kind == "renamed" and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    else:
        kind = "retyped"
        holder[key] = case.pick([other for other in OTHERS if type(other) is not type(inner)])
        path += f" = {holder[key]!r}"
    case.note(f"{path} {kind}")
    return value
