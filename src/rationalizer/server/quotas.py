"""How much the server takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quotas:
    """How much one request may ask for, and how much may wait."""

    items: int = 64  # texts or pairs of one request
    characters: int = 10_000  # of one text
    waiting: int = 1024  # texts of all requests that are not answered yet
    seconds: float = 30  # that a request may take to arrive, from its first byte to its last

    def __post_init__(self) -> None:
        for name in ("items", "characters", "waiting"):
            if getattr(self, name) < 1:
                raise ValueError(f"the limit of {name} must be at least 1, got {getattr(self, name)}")
        if not self.seconds > 0:
            raise ValueError(f"the limit of seconds must be more than 0, got {self.seconds}")

    def body(self, *, pairs: bool) -> int:
        """Bytes of a request: a character takes up to 12 as JSON (two escapes), and a pair has two texts."""
        return 4096 + 12 * (1 + pairs) * self.items * self.characters
