"""The command line: one file per command, `base` and `options` for what they share."""

# The help lists the commands in the order of their import.
# isort: off
from rationalizer.cli.base import app
from rationalizer.cli import demo, models, explain, serve, train, evaluate, compare, info, settings, hans  # noqa: F401


def main() -> None:
    app()
