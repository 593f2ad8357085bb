"""The command line: one module per command; `base` and `options` hold what commands share."""

import gc
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from rationalizer.cli.quick_explain import explain_quickly

# In the order of the help.
COMMANDS: tuple[str, ...] = ("demo", "models", "explain", "verify", "serve", "train", "evaluate")
COMMANDS += ("annotate", "convert", "audit", "compare", "export", "info", "settings", "hans", "doctor")


def main() -> None:
    # Importing creates many objects and no garbage; the collector's default thresholds cost a fifth of the start-up.
    gc.set_threshold(50_000, 20, 20)
    output = explain_quickly(sys.argv[1:])
    if output is not None:
        sys.stdout.write(output)
        return
    named = [argument for argument in sys.argv[1:] if not argument.startswith("-")][:1]
    # Importing all commands takes longer than a short text takes to explain.
    _load(named if named and named[0] in COMMANDS else COMMANDS)()


def _load(commands: Iterable[str]) -> Any:
    """Return the program with these commands."""
    for name in commands:
        import_module(f"{__name__}.{name}")
    return import_module(f"{__name__}.base").app


def __getattr__(name: str) -> object:
    if name == "app":
        return _load(COMMANDS)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
