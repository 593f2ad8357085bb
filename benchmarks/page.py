"""A page whose tables are what benchmarks printed, word for word, between `<!-- benchmark NAME -->` and
`<!-- end of NAME -->`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path


def _place(name: str) -> re.Pattern[str]:
    return re.compile(f"(?<=<!-- benchmark {name} -->\n).*?(?=<!-- end of {name} -->)", re.DOTALL)


def require_places(page: str, names: Iterable[str], path: Path) -> None:
    for name in names:
        if len(_place(name).findall(page)) != 1:
            marks = f"a line <!-- benchmark {name} -->, and after it one <!-- end of {name} -->"
            raise SystemExit(f"{path} needs one place for {name}: {marks}")


def filled(page: str, outputs: Mapping[str, str]) -> str:
    """The page with these outputs in their places; what was not measured stays as it was."""
    for name, output in outputs.items():
        page = _place(name).sub(lambda _, output=output: f"\n{output.strip()}\n\n", page)
    return page
