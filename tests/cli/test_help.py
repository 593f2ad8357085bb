"""What the program says of itself: every help, every setting."""

import re

import pytest

from rationalizer import progress
from rationalizer.cli import app
from rationalizer.cli.options import METHODS
from rationalizer.models.config import IDENTITY, Config
from rationalizer.models.setting_docs import describe_settings
from rationalizer.nn import ALIGNERS, EXTRACTORS, methods_for
from tests.cli.calls import refused, run

COMMANDS = [command.callback.__name__ for command in app.registered_commands]


@pytest.mark.parametrize("command", COMMANDS)
def test_short_help_option(command):
    assert run(command, "-h").stdout == run(command, "--help").stdout


def test_help_lists_all_methods():
    texts, pairs = METHODS.split(";")
    for listed, known in ((texts, EXTRACTORS), (pairs, ALIGNERS)):
        names = [name.removesuffix(" (default)") for name in listed.partition(": ")[2].rstrip(".").split(", ")]
        assert sorted(names) == sorted(known)


@pytest.mark.parametrize("command", ["train", "compare", "evaluate", "explain", "serve", "hans"])
def test_device_option(command):
    shown = re.sub(r"\x1b\[[0-9;]*m", "", run(command, "-h").stdout)
    assert "--device " in shown
    assert "--accelerator" not in shown


def test_settings_lists_methods():
    printed = run("settings").stdout
    for name in (*EXTRACTORS, *ALIGNERS):
        assert f" {name} " in printed


@pytest.mark.parametrize(("method", "pairs"), [*((m, False) for m in EXTRACTORS), *((m, True) for m in ALIGNERS)])
def test_settings_of_every_method(method, pairs):
    found = describe_settings(method, pairs=pairs)
    assert [one.name for one in found.own] == [*methods_for(pairs)[method].options()]
    assert {one.name for one in found.common} == {*Config.__dataclass_fields__} - {*IDENTITY}
    assert all(one.values and one.default for one in (*found.own, *found.encoder, *found.common))
    assert all(one.meaning for one in (*found.own, *found.encoder, *found.common))


def test_settings_of_spectra():
    printed = run("settings", "spectra").stdout
    assert re.search(r"transition +│ none +│ number from -10000 to 10000", printed)
    assert re.search(r"patience +│ 5 +│ whole number from 1 to 1,000,000, or none +│ epochs without", printed)
    assert "embeddings" in printed
    assert "did you mean 'spectra'" in refused("settings", "spektra")


def test_a_setting_given_as_an_option():
    assert "learning_rate=VALUE" in run("train", "x.csv", "--learning-rate", "0.1", code=2).stderr
    assert "--set" not in run("train", "x.csv", "--lerning-rate", "0.1", code=2).stderr
    assert "--set" not in run("info", "--epochs", "3", code=2).stderr  # a command without --set


def test_progress_lines(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    with progress.show_progress("Scoring", 30) as advance:
        advance(10)
        advance(20)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert re.fullmatch(r"Scoring: 10 of 30, \d+ s left \(\d+ s\)", said[0])
