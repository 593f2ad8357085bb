"""The program that commands register with: consoles, exit codes, error messages, tables."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer.core import TyperCommand

app = typer.Typer(
    name="rationalizer",
    help="Text classifiers that read only the words they show.",
    epilog="Exit codes: 0 success, 1 failure, 2 invalid input (the message says what to change), 130 stopped by "
    "Ctrl-C.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)
show_traceback = False

INVALID_INPUT, INTERRUPTED = 2, 130
# Packages that an installation without PyTorch does not have.
FOR_TRAINING = ("torch", "numba", "entmax", "lightning_fabric", "pyarrow")
MAX_MESSAGE = 2000  # characters; a longer message quotes a user's data at length
Command = TypeVar("Command", bound=Callable[..., Any])


def command(*examples: str, stopped: str = "Stopped.") -> Callable[[Command], Command]:
    """Register a command. Invalid input ends in one message and exit code 2, Ctrl-C in exit code 130.

    A parameter whose type is a dataclass becomes one option for each field, so that several commands can share a
    group of options; the command receives the dataclass.

    Args:
        examples: command lines to show at the end of the help.
        stopped: the message after Ctrl-C: what is left, and how to continue.
    """

    def register(function: Command) -> Command:
        hints = get_type_hints(function, include_extras=True)
        groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}

        @functools.wraps(function)
        def run(**arguments: Any) -> Any:
            for name, group in groups.items():
                arguments[name] = group(**{field.name: arguments.pop(field.name) for field in fields(group)})
            try:
                return function(**arguments)
            except BrokenPipeError:  # the reader of the output, such as head, has closed it
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            except KeyboardInterrupt:
                err.print(stopped)
                raise typer.Exit(INTERRUPTED) from None
            except Exception as error:
                if show_traceback or not _is_input_error(error):
                    raise
                err.print(f"error: {one_line(_message(error))}", style="red", markup=False)
                raise typer.Exit(INVALID_INPUT) from None

        run.__signature__ = _expand(inspect.signature(function), hints)  # type: ignore[attr-defined]
        # Typer joins lines and keeps paragraphs; a bracket would be read as markup.
        epilog = "\n\n".join(["Examples:", *(f"  {escape(example)}" for example in examples)])
        app.command(cls=SettingAwareCommand, epilog=epilog, context_settings={"help_option_names": ["-h", "--help"]})(
            run
        )
        return function

    return register


class SettingAwareCommand(TyperCommand):
    """A command whose error about an unknown option names `--set` if the option is a setting, such as --epochs."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option = getattr(error, "option_name", "")  # of NoSuchOption, which typer takes from click or defines
            if option and any("--set" in parameter.opts for parameter in self.params):
                from rationalizer.models.setting_docs import setting_names

                name = option.lstrip("-").replace("-", "_")
                if name in setting_names():
                    vars(error).update(
                        message=f"No such option: {option}. It is a setting: write --set {name}=VALUE.",
                        possibilities=None,
                    )
            raise


def use_threads(number: int | None) -> None:
    """Compute on this number of CPU threads, also in subprocesses; None leaves it to the model. Does not import
    PyTorch, which reads the variable when it is imported."""
    if number is None:
        return
    os.environ["OMP_NUM_THREADS"] = str(number)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(number)


def _expand(signature: inspect.Signature, hints: dict[str, Any]) -> inspect.Signature:
    """Replace each parameter whose type is a dataclass by its fields."""
    expanded = []
    for name, parameter in signature.parameters.items():
        if is_dataclass(group := hints[name]):
            types = get_type_hints(group, include_extras=True)
            expanded += [_keyword(field.name, types[field.name], field.default) for field in fields(group)]
        else:
            expanded.append(_keyword(name, hints[name], parameter.default))
    return inspect.Signature(expanded)


def _keyword(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _is_input_error(error: Exception) -> bool:
    if isinstance(error, (ValueError, OSError, ImportError, FloatingPointError)):
        return True
    lightning = sys.modules.get("lightning_fabric.utilities.exceptions")
    return lightning is not None and isinstance(error, lightning.MisconfigurationException)


def _message(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name in FOR_TRAINING:
        return f"this needs the package {error.name}, which is not installed; run pip install . in a checkout"
    return str(error)


def one_line(message: str) -> str:
    """The message without line breaks and without terminal control characters."""
    joined = " ".join(message.splitlines())
    printable = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in joined)
    if len(printable) <= MAX_MESSAGE:
        return printable
    return f"{printable[: MAX_MESSAGE // 2]} ... {printable[-MAX_MESSAGE // 2 :]}"


def _print_version(wanted: bool) -> None:
    if wanted:
        from rationalizer import __version__

        out.print(__version__)
        raise typer.Exit


@app.callback()
def options(
    traceback: Annotated[bool, typer.Option("--traceback", help="Show the Python traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    global show_traceback
    show_traceback = traceback


def warn(messages: Iterable[str]) -> None:
    """Print each message on a line of its own, in yellow, to standard error."""
    for message in messages:
        err.print(message, style="yellow", markup=False)


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    table = Table(*heads, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    console = out if out.is_terminal else Console(width=240)  # no line is wrapped in a file
    console.print(table, soft_wrap=False)
