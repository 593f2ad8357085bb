"""Write the output of benchmarks into a page, between `<!-- benchmark NAME -->` and `<!-- end of NAME -->`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path


def _section(name: str) -> re.Pattern[str]:
    return re.compile(f"(?<=<!-- benchmark {name} -->\n).*?(?=<!-- end of {name} -->)", re.DOTALL)


def require_sections(page: str, names: Iterable[str], path: Path) -> None:
    """Exit with an error unless the page has exactly one section for each benchmark."""
    for name in names:
        if len(_section(name).findall(page)) != 1:
            lines = f"<!-- benchmark {name} --> and <!-- end of {name} -->"
            raise SystemExit(f"{path} must have exactly one section for {name}, between the lines {lines}")


def fill_sections(page: str, outputs: Mapping[str, str]) -> str:
    """Return the page with these outputs in their sections. Other sections stay unchanged."""
    for name, output in outputs.items():
        page = _section(name).sub(lambda _, output=output: f"\n{output.strip()}\n\n", page)
    return page
