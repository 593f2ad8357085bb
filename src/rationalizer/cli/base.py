"""What every command is built on: the program, its consoles, its exit codes, its tables."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

app = typer.Typer(
    name="rationalizer",
    help="Text classifiers that read only the words they show.",
    epilog="Exit codes: 0 done, 1 something failed, 2 bad input (the message names it), 130 stopped by Ctrl-C.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)
traceback_wanted = False

BAD_INPUT, INTERRUPTED = 2, 130
Command = TypeVar("Command", bound=Callable[..., Any])


def command(*examples: str, stopped: str = "Stopped.") -> Callable[[Command], Command]:
    """Registers a command whose bad input ends in a message and code 2, and Ctrl-C in code 130.

    Args:
        examples: calls to show at the end of its help.
        stopped: what to say after Ctrl-C: what is left, and how to go on.
    """

    def register(function: Command) -> Command:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except BrokenPipeError:  # whoever reads our output, such as head, has enough
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            except KeyboardInterrupt:
                err.print(stopped)
                raise typer.Exit(INTERRUPTED) from None
            except Exception as error:
                if traceback_wanted or not _is_input_error(error):
                    raise
                err.print(f"error: {_one_line(str(error))}", style="red", markup=False)
                raise typer.Exit(BAD_INPUT) from None

        app.command(epilog=_epilog(examples), context_settings={"help_option_names": ["-h", "--help"]})(wrapped)
        return function

    return register


def _epilog(examples: Sequence[str]) -> str:
    # Typer joins lines and keeps paragraphs; a bracket would be read as markup.
    return "\n\n".join(["Examples:", *(f"  {escape(example)}" for example in examples)])


LONGEST_MESSAGE = 2000  # characters: more is somebody's data


def _one_line(message: str) -> str:
    """The message without line breaks, and without what would control a terminal."""
    words = " ".join(message.splitlines())
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)
    return (
        shown
        if len(shown) <= LONGEST_MESSAGE
        else f"{shown[: LONGEST_MESSAGE // 2]} ... {shown[-LONGEST_MESSAGE // 2 :]}"
    )


def _is_input_error(error: Exception) -> bool:
    if isinstance(error, (ValueError, OSError, ImportError, FloatingPointError)):
        return True
    lightning = sys.modules.get("pytorch_lightning.utilities.exceptions")
    return lightning is not None and isinstance(error, lightning.MisconfigurationException)


def _version(asked: bool) -> None:
    if asked:
        from rationalizer import __version__

        out.print(__version__)
        raise typer.Exit


@app.callback()
def options(
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where in the program an error arose.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    global traceback_wanted
    traceback_wanted = traceback


def show_table(heads: Sequence[str], lines: Sequence[Sequence[str]], title: str | None = None) -> None:
    shown = Table(*heads, title=title, title_justify="left")
    for line in lines:
        shown.add_row(*line)
    console = out if out.is_terminal else Console(width=240)  # nothing is folded in a file
    console.print(shown, soft_wrap=False)
