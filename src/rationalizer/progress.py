"""Progress of long work, on standard error: a bar on terminals and in notebooks, a line every few seconds in logs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.progress import Progress

LINE_SECONDS = 5.0  # between two lines of a log
REDRAW_SECONDS = 0.1  # between two drawings of a bar of text
NOTEBOOK_DELAY = 2.0  # seconds before a notebook shows the bar of a prediction: most are faster

DISABLE = "RATIONALIZER_NO_PROGRESS"  # an environment variable that hides all progress

Form = Literal["bar", "lines", "none"]


def in_notebook() -> bool:
    """Return whether the program runs in a Jupyter kernel, where standard error is not a terminal."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def is_interactive() -> bool:
    return sys.stderr.isatty() or in_notebook()


class Reporter:
    """Receives the progress of some work. This base class shows nothing."""

    def __call__(self, count: int) -> None:
        """Count further finished items."""

    def start(self, title: str, total: int | None, completed: int = 0) -> None:
        """Begin a new stage with its own title and count; `total` is None if it is unknown."""

    def note(self, text: str) -> None:
        """Set the text at the end of the bar."""

    def close(self) -> None:
        """Finish the display."""


@contextmanager
def show_progress(
    title: str,
    total: int | None,
    *,
    shown: bool = True,
    form: Form | None = None,
    lazy: bool = False,
    delay: float = 0.0,
    unit: str = "",
    transient: bool = True,
) -> Iterator[Reporter]:
    """Yield a function that is called with the number of items finished since the last call.

    Args:
        title: what is being done, such as "Scoring".
        total: how many items there are; None if that is unknown.
        shown: False shows nothing.
        form: by default a bar on a terminal or in a notebook, and lines elsewhere.
        lazy: show a bar only from the first finished item on.
        delay: seconds before a notebook's bar appears.
        unit: what the lines of a log count, such as "batches".
        transient: whether a terminal's bar disappears at the end.
    """
    if not shown or form == "none" or os.environ.get(DISABLE):
        yield Reporter()
        return
    if form is None:
        form = "bar" if is_interactive() else "lines"
    reporter: Reporter
    if form == "lines":
        reporter = _Lines(unit)
    elif not sys.stderr.isatty():
        reporter = _TextBar(delay)
    else:
        reporter = _TerminalBar(transient, lazy)
    reporter.start(title, total)
    try:
        yield reporter
    finally:
        reporter.close()


@contextmanager
def show_notebook_progress(title: str, total: int) -> Iterator[Reporter | None]:
    """As `show_progress`, in notebooks only and after a delay; yields None elsewhere."""
    if not in_notebook():
        yield None
        return
    with show_progress(title, total, delay=NOTEBOOK_DELAY) as reporter:
        yield reporter


class _Lines(Reporter):
    """For logs: nothing about short work, then a line every `LINE_SECONDS`."""

    def __init__(self, unit: str = "") -> None:
        self.unit = f" {unit}" if unit else ""
        self.began = self.printed = time.monotonic()
        self.noted = ""

    def note(self, text: str) -> None:
        self.noted = text

    def start(self, title: str, total: int | None, completed: int = 0) -> None:
        self.title, self.total, self.completed = title, total, completed
        self.skipped, self.stage_began = completed, time.monotonic()

    def __call__(self, count: int) -> None:
        self.completed += count
        now = time.monotonic()
        if now - self.printed < LINE_SECONDS or self.completed == self.total:
            return
        self.printed = now
        text = f"{self.title}: {self.completed:,}"
        if self.total:
            rate = (now - self.stage_began) / max(self.completed - self.skipped, 1)
            text += f" of {self.total:,}{self.unit}, {rate * (self.total - self.completed):.0f} s left"
        noted = f"; {self.noted}" if self.noted else ""
        print(f"{text} ({now - self.began:.0f} s){noted}", file=sys.stderr, flush=True)


class _Bar(Reporter):
    """A bar of one line, drawn by rich."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.task = bar.add_task("", total=None, note="")

    def start(self, title: str, total: int | None, completed: int = 0) -> None:
        note = self.bar.tasks[0].fields["note"]
        self.bar.reset(self.task, description=title, total=total, completed=completed, note=note)

    def note(self, text: str) -> None:
        self.bar.update(self.task, note=text)

    def __call__(self, count: int) -> None:
        self.bar.advance(self.task, count)


class _TerminalBar(_Bar):
    def __init__(self, transient: bool, lazy: bool) -> None:
        from rich.console import Console

        console = Console(stderr=True, soft_wrap=True, highlight=False)
        # Text printed meanwhile goes above the bar if both are on the terminal, else where it was redirected to.
        super().__init__(_build_bar(console=console, transient=transient, redirect_stdout=sys.stdout.isatty()))
        self.started = False
        if not lazy:
            self._show()

    def _show(self) -> None:
        self.started = True
        self.bar.start()

    def __call__(self, count: int) -> None:
        if not self.started:
            self._show()
        super().__call__(count)

    def close(self) -> None:
        if self.started:
            self.bar.stop()


class _TextBar(_Bar):
    """One line of text, rewritten after a carriage return, for notebooks (where rich needs ipywidgets) and files."""

    def __init__(self, delay: float) -> None:
        from rich.console import Console

        self.console = Console(file=StringIO(), width=160, color_system=None, force_jupyter=False)
        self.next_drawing = time.monotonic() + delay
        self.width = 0  # of the line shown
        super().__init__(_build_bar(console=self.console, disable=True))

    def __call__(self, count: int) -> None:
        super().__call__(count)
        if time.monotonic() >= self.next_drawing:
            self._draw()

    def start(self, title: str, total: int | None, completed: int = 0) -> None:
        super().start(title, total, completed)
        if self.width:
            self._draw()

    def _draw(self) -> None:
        with self.console.capture() as capture:
            self.console.print(self.bar.get_renderable())
        line = capture.get().rstrip()
        print(f"\r{line:<{self.width}}", end="", file=sys.stderr, flush=True)
        self.width = len(line)
        self.next_drawing = time.monotonic() + REDRAW_SECONDS

    def close(self) -> None:
        if self.width:
            self._draw()
            print(file=sys.stderr, flush=True)


def _build_bar(**options: object) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    # Short enough to leave half of a terminal of 80 columns to the note.
    columns = [TextColumn("{task.description}"), BarColumn(bar_width=12), MofNCompleteColumn()]
    columns += [TimeRemainingColumn(compact=True), TextColumn("left {task.fields[note]}")]
    return Progress(*columns, **options)  # type: ignore[arg-type]
