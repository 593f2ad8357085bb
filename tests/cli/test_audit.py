"""`rationalizer audit`."""

import json

import pytest

from rationalizer.cli.base import app


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    from rationalizer.data import load

    path = tmp_path_factory.mktemp("audit") / "reviews.csv"
    rows = load("reviews").dev[:60]
    lines = [f'"{row.text.replace(chr(34), "")}",{("negative", "positive")[int(row.label)]}' for row in rows]
    path.write_text("text,label\n" + "\n".join(lines) + "\n")
    return path


def test_report_and_exit_code(run, reviews, tmp_path):
    page, stored = tmp_path / "audit.html", tmp_path / "audit.json"
    checks = ["--check", "replaced-words", "--check", "budget"]
    done = run("audit", "sentiment", reviews, *checks, "--report", page, "--json", stored)
    assert done.exit_code == 0
    assert "No leak found: 2 checks passed" in done.output
    assert "<h1" in page.read_text()
    assert json.loads(stored.read_text())["passed"] is True


def test_unknown_check(run, reviews):
    done = run("audit", "sentiment", reviews, "--check", "budgets")
    assert done.exit_code == 2
    assert "budget" in done.output


def test_without_data(run):
    done = run("audit", "sentiment")
    assert done.exit_code == 2
    assert "SOURCE" in done.output


def test_command_is_listed():
    assert "audit" in {command.callback.__name__ for command in app.registered_commands} | {
        command.name for command in app.registered_commands
    }
