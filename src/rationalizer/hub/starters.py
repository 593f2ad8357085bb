"""Starter models: small models that come with the package, so that texts can be explained without training.

`scripts/build_starters.py` builds them. Each is a folder of a saved model in compact form (see
`models/compact_weights.py`) with a file `starter.json`: facts for its model card, and texts to try it on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FACTS_FILE, CARD = "starter.json", "README.md"
STARTERS: dict[str, Path] = {
    name: Path(__file__).parent.parent / "starters" / name for name in ("sentiment", "nli", "align")
}


@dataclass(frozen=True)
class Facts:
    """Facts for a model card that are not in the model's files."""

    about: str = ""  # one sentence
    data: Sequence[Mapping[str, str]] = ()  # each with `name`, `use` and `terms`
    scores: Sequence[Mapping[str, Any]] = ()  # each with `data` and the scores by name
    limits: Sequence[str] = ()
    licence: str = ""  # the Hub's identifier
    language: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)  # further settings of the training


@dataclass(frozen=True)
class Starter:
    """A starter model, the facts for its card, and example texts."""

    name: str
    folder: Path
    facts: Facts
    examples: tuple[Any, ...]  # texts, or pairs of texts

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.folder.iterdir() if path.is_file())


def starter(name: str) -> Starter:
    """Return the starter model of this name."""
    folder = STARTERS[name]
    stored = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))
    examples = tuple(tuple(one) if isinstance(one, list) else one for one in stored.pop("examples"))
    return Starter(name, folder, Facts(**stored), examples)
