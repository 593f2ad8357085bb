"""A cache of values computed per token."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

MAX_TOKENS, MAX_LENGTH = 1 << 16, 64  # limits, so that requests to a server cannot fill its memory

Value = TypeVar("Value")


class TokenCache(dict[str, Value]):
    """`cache[token]` is `compute(token)`. Texts have millions of tokens but few distinct ones."""

    def __init__(self, compute: Callable[[str], Value]) -> None:
        super().__init__()
        self.compute = compute

    def __missing__(self, token: str) -> Value:
        value = self.compute(token)
        if len(self) >= MAX_TOKENS:
            self.clear()
        if len(token) <= MAX_LENGTH:
            self[token] = value
        return value

    def get_all(self, tokens: Iterable[str]) -> list[Value]:
        return list(map(self.__getitem__, tokens))
