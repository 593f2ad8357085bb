"""How far a command is and how long it will take, on terminals only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from rationalizer.cli.base import err, out


@contextmanager
def progress(title: str, total: int | None, *, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Gives a function that is told how much more is done. A total of None: nobody knows."""
    if not (shown and err.is_terminal):
        yield lambda _: None
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
