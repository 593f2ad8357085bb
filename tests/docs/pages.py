"""The pages of the documentation and the fenced blocks in them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = {str(path.relative_to(ROOT)): path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]}


class Block(NamedTuple):
    language: str
    code: str
    line: int  # of its first line


def blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\S*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1) for match in found]


def commands(block: Block) -> list[str]:
    """The commands of a shell block, without comments."""
    joined = re.sub(r"\\\n\s*", " ", block.code)
    lines = [re.sub(r"(^|\s+)# .*", "", line).strip() for line in joined.splitlines()]
    return [line for line in lines if line]
