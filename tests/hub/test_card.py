"""The model card."""

import json
from dataclasses import replace

import pytest

from rationalizer import Rationalizer
from rationalizer.hub import Facts, write_card
from rationalizer.hub.model_card import card
from rationalizer.models import TrainedModel

EXAMPLE = "We found very rude careless neglect. It was our first visit."


@pytest.fixture
def model(spectra_run):
    return Rationalizer.load(spectra_run)


def header(text):
    first, yaml, _ = text.split("---\n", 2)
    assert first == ""
    return yaml.splitlines()


def test_sections(model, spectra_run, tmp_path):
    model.save(tmp_path / "mine", example=EXAMPLE)
    text = (tmp_path / "mine" / "README.md").read_text()
    assert header(text)[:2] == ["library_name: rationalizer", "pipeline_tag: text-classification"]
    assert "# mine\n" in text
    assert 'Rationalizer.load("mine")' in text
    assert "Trained on reviews." in text
    scores = json.loads((spectra_run / "scores.json").read_text())["scores"]
    shown = f"{scores['test']['accuracy']:.3f}".removeprefix("0")
    assert f"| test split | {shown} |" in text
    assert "At most 20% of a text's words, but at least one." in text
    assert "## Limitations" in text
    drawn = str(model.explain(EXAMPLE))
    assert drawn in text
    assert (tmp_path / "mine" / "example.svg").read_text() == model.explain(EXAMPLE).to_svg()


def test_no_training_text(model, tmp_path):
    """The default example is a fixed sentence; there is none if the model does not know its words."""
    model.save(tmp_path)
    assert "## Example" not in (tmp_path / "README.md").read_text()
    known = TrainedModel.load(tmp_path).encoder.knows
    assert not known("spotless") or not known("staff")


def test_edited_card_is_kept(model, tmp_path):
    model.save(tmp_path)
    ours = (tmp_path / "README.md").read_text()
    model.budget = "30%"
    model.save(tmp_path)
    assert "At most 30%" in (tmp_path / "README.md").read_text() != ours
    (tmp_path / "README.md").write_text("# My model\n")
    model.save(tmp_path)
    assert (tmp_path / "README.md").read_text() == "# My model\n"


def test_class_balance(model):
    """Whether classes counted equally, and classes that were never predicted, are among the limitations."""
    trained = model.trained
    equally, once = (
        replace(trained.description, config=replace(trained.config, class_weight=weight))
        for weight in ("balanced", None)
    )
    assert "counted equally" in card(replace(trained, description=equally), name="mine")
    warned = {**trained.history, "warnings": ["the model never predicts 'x' (3 texts)"]}
    text = card(replace(trained, description=once, history=warned), name="mine")
    assert "counted equally" not in text
    assert "- On the dev texts the model never predicts 'x' (3 texts).\n" in text


def test_missing_facts(model):
    text = card(model.trained, name="mine")
    assert "not recorded" in text
    assert "on the dev texts" in text


def test_pairs_and_methods_without_a_budget(sparsemax_run, pair_run, tmp_path):
    assert "`sparsemax` does not follow a budget." in card(TrainedModel.load(sparsemax_run), name="x")
    model = Rationalizer.load(pair_run)
    model.save(tmp_path, example=("Two nurses help boys.", "Two medics help boys."))
    text = (tmp_path / "README.md").read_text()
    assert "of the shorter text" in text
    assert "premise: " in text


def test_facts(model, tmp_path):
    facts = Facts(
        about="Tells good stays from bad.",
        data=[{"name": "Stays", "use": "training", "terms": "CC0 | public"}],
        scores=[{"data": "Others", "accuracy": 0.9125, "macro_f1": 0.9}],
        limits=["Hotels only."],
        licence="mit",
        language="en",
    )
    write_card(tmp_path, model.trained, name="stays", facts=facts)
    text = (tmp_path / "README.md").read_text()
    assert {"license: mit", "language: en"} <= set(header(text))
    assert "Tells good stays from bad." in text
    assert "| Stays | training | CC0 \\| public |" in text
    assert "| Others | .912 | .900 |" in text
    assert "- Hotels only." in text
