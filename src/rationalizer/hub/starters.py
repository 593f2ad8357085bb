"""The small models that come with the package, so that a text can be explained before anything was trained.

`scripts/build_starters.py` makes them. Each is a folder like that of any saved model, compact (see
`models/compact_weights.py`), with `starter.json`: what only its makers know, and some texts to try it on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rationalizer.hub.model_card import Facts

DESCRIBED = "starter.json"
STARTERS: dict[str, Path] = {name: Path(__file__).parent.parent / "starters" / name for name in ("sentiment", "nli")}


@dataclass(frozen=True)
class Starter:
    """A model of the package and what is known of it."""

    name: str
    folder: Path
    facts: Facts
    examples: tuple[Any, ...]  # texts, or pairs of texts

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.folder.iterdir() if path.is_file())


def starter(name: str) -> Starter:
    folder = STARTERS[name]
    stored = json.loads((folder / DESCRIBED).read_text(encoding="utf-8"))
    examples = tuple(tuple(one) if isinstance(one, list) else one for one in stored.pop("examples"))
    return Starter(name, folder, Facts(**stored), examples)
