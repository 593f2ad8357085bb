"""Limits of the server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quotas:
    """The maximum size of a request and of the queue."""

    items: int = 64  # texts or pairs of one request
    characters: int = 10_000  # of one text
    waiting: int = 1024  # texts of all requests that are not answered yet
    seconds: float = 30  # from a request's first byte to its last

    def __post_init__(self) -> None:
        for name in ("items", "characters", "waiting"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.seconds > 0:
            raise ValueError(f"seconds must be more than 0, got {self.seconds}")

    def max_bytes(self, *, pairs: bool) -> int:
        """Return the maximum size of a request: a character takes up to 12 bytes as JSON (two escapes)."""
        return 4096 + 12 * (1 + pairs) * self.items * self.characters
