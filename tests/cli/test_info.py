"""`rationalizer info`, and what the program says of itself."""

import json
import re
import subprocess
import sys

import torch

import rationalizer
from rationalizer import Rationalizer
from tests.cli.calls import refused, run


def test_info_of_text_model(spectra_run):
    facts = json.loads(run("info", spectra_run, "--json").stdout)
    model = Rationalizer.load(spectra_run)
    assert (facts["method"], facts["budget"], facts["follows_budget"]) == ("spectra", "20%", True)
    assert (facts["task"], facts["classes"]) == ("classification", ["negative", "positive"])
    assert facts["data"]["source"] == "reviews"
    assert facts["faithful"] is None
    assert facts["epochs"] == 2
    assert facts["words"]["seen in training"] == len(model.trained.encoder.vocabulary.words)
    assert facts["parameters"] == sum(p.numel() for p in model.trained.model.parameters())
    assert facts["versions"]["torch"] == torch.__version__
    assert facts["versions"]["rationalizer"] == rationalizer.__version__
    assert facts["bytes"] < facts["bytes_with_logs"]
    printed = run("info", spectra_run).stdout
    for words in ("spectra", "20%", "reviews", "classification: negative, positive", "macro-F1", torch.__version__):
        assert words in printed


def test_info_of_pair_model(pair_run, sparsemax_run):
    printed = run("info", pair_run).stdout
    assert "pairs of texts, the premise only through the alignment" in printed
    assert "entailment, neutral, contradiction" in printed
    assert "the method does not follow it" in run("info", sparsemax_run).stdout


def test_folder_without_model(tmp_path):
    assert "no trained model" in refused("info", tmp_path)


COMMANDS = ("explain", "serve", "train", "evaluate", "compare", "info")


def test_help_has_examples():
    printed = run("--help").stdout
    assert "Exit codes: 0" in printed
    assert "--install-completion" in printed
    listed = re.findall(r"^\W (\w+) ", printed, re.MULTILINE)
    assert [name for name in listed if name in COMMANDS] == list(COMMANDS)
    for name in COMMANDS:
        assert f"rationalizer {name} " in run(name, "--help").stdout.partition("Examples:")[2]


def test_shell_completion():
    script = "import sys; sys.argv[0] = 'rationalizer'; from rationalizer.cli import main; main()"
    environment = {"_RATIONALIZER_COMPLETE": "complete_bash", "COMP_WORDS": "rationalizer expl", "COMP_CWORD": "1"}
    command = [sys.executable, "-c", script]
    printed = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout
    assert printed.split() == ["explain"]
