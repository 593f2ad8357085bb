"""Find the folder of a model by its name."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from rationalizer.hub import hub_client as hub
from rationalizer.hub.starters import STARTERS
from rationalizer.suggestions import closest

# A name on the Hub, with an optional revision: org/name, org/name@v1.
HUB_NAME = re.compile(r"(?P<name>[\w-][\w.-]*/[\w-][\w.-]*)(?:@(?P<revision>[\w./-]+))?", re.ASCII)


def locate(model: str | Path, revision: str | None = None) -> Path:
    """Return the folder of a model: an existing folder, a starter model ("sentiment"), or a download from the Hugging
    Face Hub ("org/name", "org/name@revision").

    A folder takes precedence over a name. If a folder `org` exists, `org/name` is a folder too and nothing is
    downloaded.
    """
    path = Path(model)
    name = path.as_posix()
    if revision is None and path.exists():
        if name in STARTERS:
            warnings.warn(
                f"loading the folder {name}, not the starter model of that name; to use the starter model, rename the "
                "folder or work in another one",
                stacklevel=3,
            )
        return path
    if name in STARTERS and revision is None:
        return STARTERS[name]
    match = HUB_NAME.fullmatch(name)
    if match is None or (revision is None and Path(path.parts[0]).is_dir()):
        guess = closest(name, STARTERS) if len(path.parts) == 1 else None
        remedy = f"did you mean the starter model {guess!r}?" if guess else f"starter models: {', '.join(STARTERS)}"
        raise FileNotFoundError(f"no folder {model}; {remedy}")
    return hub.download(match["name"], revision or match["revision"])
