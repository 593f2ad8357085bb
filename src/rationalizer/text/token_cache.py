"""Answers about tokens, each found once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

MOST, LONGEST = 1 << 16, 64  # tokens, of so many characters: what a server is sent must not fill its memory

Answer = TypeVar("Answer")


class TokenCache(dict[str, Answer]):
    """`answers[token]` is `find(token)`. Texts have millions of tokens and few that differ."""

    def __init__(self, find: Callable[[str], Answer]) -> None:
        super().__init__()
        self.find = find

    def __missing__(self, token: str) -> Answer:
        answer = self.find(token)
        if len(self) >= MOST:
            self.clear()
        if len(token) <= LONGEST:
            self[token] = answer
        return answer

    def of(self, tokens: Iterable[str]) -> list[Answer]:
        return list(map(self.__getitem__, tokens))
