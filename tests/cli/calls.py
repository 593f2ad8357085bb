"""Calls of the commands, as a user would write them."""

import json

from typer.testing import CliRunner

from rationalizer.cli import app


def run(*arguments, code=0, stdin=None):
    """What a call printed, after a look at its exit code."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == code, result.output
    return result


def refused(*arguments, stdin=None):
    """What a call with bad input says, in one message and without a traceback."""
    result = run(*arguments, code=2, stdin=stdin)
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr
    return result.stderr


def records(path):
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]
