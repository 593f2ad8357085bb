"""The command line: one module per command; `base` and `options` hold what commands share."""

import gc

# The help lists the commands in the order of their import.
# isort: off
from rationalizer.cli.base import app
from rationalizer.cli import demo, models, explain, verify, serve, train, evaluate, annotate, convert, audit, compare  # noqa: F401
from rationalizer.cli import info, settings, hans, doctor  # noqa: F401


def main() -> None:
    # Importing creates many objects and no garbage; the collector's default thresholds cost a fifth of the start-up.
    gc.set_threshold(50_000, 20, 20)
    app()
