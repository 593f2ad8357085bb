"""The command line: one file per command, `base` and `options` for what they share."""

import gc

# The help lists the commands in the order of their import.
# isort: off
from rationalizer.cli.base import app
from rationalizer.cli import demo, models, explain, serve, train, evaluate, compare, info, settings, hans  # noqa: F401


def main() -> None:
    # Modules are many objects, none of them garbage: by default Python looks through all of them dozens of times while
    # they load, which takes a fifth of the time.
    gc.set_threshold(50_000, 20, 20)
    app()
