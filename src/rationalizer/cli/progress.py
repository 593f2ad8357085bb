"""How far a command is and how long it will take: a bar on terminals, elsewhere a line every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from rationalizer.cli.base import err, out

EVERY = 5.0  # seconds between two lines


@contextmanager
def progress(title: str, total: int | None, *, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Gives a function that is told how much more is done. A total of None: nobody knows."""
    if not shown:
        yield lambda _: None
        return
    if not err.is_terminal:
        yield _Lines(title, total)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    columns += [TextColumn("left"), TimeRemainingColumn()]
    # What is printed meanwhile goes above the bar if both are on the terminal; else where it was sent.
    with Progress(*columns, console=err, transient=True, redirect_stdout=out.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)


class _Lines:
    """For logs: nothing of what is quickly done, then a line every `EVERY` seconds."""

    def __init__(self, title: str, total: int | None) -> None:
        self.title, self.total, self.done = title, total, 0
        self.begun = self.told = time.monotonic()

    def __call__(self, more: int) -> None:
        self.done += more
        now = time.monotonic()
        if now - self.told < EVERY or self.done == self.total:
            return
        self.told = now
        seconds = now - self.begun
        left = f" of {self.total:,}, {seconds / self.done * (self.total - self.done):.0f} s left" if self.total else ""
        err.print(f"{self.title}: {self.done:,}{left} ({seconds:.0f} s)", markup=False)


@contextmanager
def begun_when_told(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """As `progress`, with a bar that appears at the first word of something done."""
    with ExitStack() as stack:
        advance: Callable[[int], None] | None = None

        def tell(done: int) -> None:
            nonlocal advance
            if advance is None:
                advance = stack.enter_context(progress(title, total))
            advance(done)

        yield tell
