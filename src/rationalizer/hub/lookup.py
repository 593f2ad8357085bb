"""From what people call a model to the folder it is in."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from rationalizer.hub import hub_client as hub
from rationalizer.hub.starters import STARTERS
from rationalizer.suggestions import closest

# As the Hub writes it, with an optional revision: org/name, org/name@v1.
ON_THE_HUB = re.compile(r"(?P<name>[\w-][\w.-]*/[\w-][\w.-]*)(?:@(?P<revision>[\w./-]+))?", re.ASCII)


def locate(model: str | Path, revision: str | None = None) -> Path:
    """The folder of a model: a folder that is there, a starter of the package ("sentiment"), or a model of the Hugging
    Face Hub ("org/name", "org/name@revision"), which is fetched.

    A folder wins over a name. Where a folder `org` lies here, `org/name` is a folder too, and the Hub is not asked.
    """
    path = Path(model)
    name = path.as_posix()
    if revision is None and path.exists():
        if name in STARTERS:
            warnings.warn(
                f"the folder {name} is read, not the starter model of that name; to have the starter, rename the "
                "folder or go to another one",
                stacklevel=3,
            )
        return path
    if name in STARTERS and revision is None:
        return STARTERS[name]
    found = ON_THE_HUB.fullmatch(name)
    if found is None or (revision is None and Path(path.parts[0]).is_dir()):
        meant = closest(name, STARTERS) if len(path.parts) == 1 else None
        remedy = f"did you mean the starter model {meant!r}?" if meant else f"starter models are {', '.join(STARTERS)}"
        raise FileNotFoundError(f"there is no folder {model}; {remedy}")
    return hub.fetch(found["name"], revision or found["revision"])
