"""Errors of ops and factor graphs."""

from __future__ import annotations


class InfeasibleError(ValueError):
    """No selection, matching or assignment satisfies all constraints of one row of the batch."""

    def __init__(self, message: str, instance: int | None = None) -> None:
        super().__init__(message)
        self.instance = instance  # index in the batch
