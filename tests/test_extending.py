"""Every kind of part can be added by one file in a folder: the examples of CONTRIBUTING.md do it."""

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from rationalizer import Rationalizer
from rationalizer.auditing import CHECKS, audit
from rationalizer.constraints import CONSTRAINTS
from rationalizer.data import DATASETS, DataError, generated_pairs, generated_reviews, load
from rationalizer.discovery import import_modules
from rationalizer.drawing.evaluation_report import Report, evaluation_report
from rationalizer.inference import ATTRIBUTIONS, compare_with_attributions, evaluate
from rationalizer.metrics import METRICS, score_rows
from rationalizer.models import configure
from rationalizer.nn import ALIGNERS, ENCODERS, EXTRACTORS, OBJECTIVES
from rationalizer.training import train

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
SHORT = {"epochs": 1, "min_epochs": 1, "hidden": 8, "batch_size": 8}


def example_code(heading):
    """The code block under a heading of CONTRIBUTING.md."""
    section = PAGE.read_text().split(f"\n### {heading}\n")[1].split("\n#")[0]
    return re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]


@pytest.fixture
def add_part(tmp_path, monkeypatch):
    """Return a function that puts the example under a heading into a folder on a package's `__path__`."""
    added = []

    def add(heading, package, registry):
        package = import_module(package)
        (tmp_path / "added_part.py").write_text(example_code(heading))
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        before = set(registry)
        import_modules(package.__name__)
        (name,) = set(registry) - before
        added.append((registry, name, f"{package.__name__}.added_part"))
        return name

    yield add
    for registry, name, module in added:
        del registry[name], sys.modules[module]


@pytest.fixture(scope="module")
def reviews():
    return generated_reviews(train=32, dev=8, test=0)


def test_encoder(add_part, reviews, tmp_path):
    name = add_part("An encoder", "rationalizer.nn.encoders", ENCODERS)
    with pytest.raises(ValueError, match="last"):
        configure(overrides={"encoder": name, "pooling": "last"})
    train(reviews, configure(overrides={"encoder": name, **SHORT}), tmp_path / "run")
    model = Rationalizer.load(tmp_path / "run")
    assert type(model.trained.encoder) is ENCODERS[name]
    assert model.explain(reviews.dev[0].text).selected_word_count > 0


def test_extractor(add_part, reviews, tmp_path):
    name = add_part("An extractor", "rationalizer.nn.extractors", EXTRACTORS)
    train(reviews, configure(name, {"temperature": 0.5, "budget": 2, **SHORT}), tmp_path / "run")
    model = Rationalizer.load(tmp_path / "run")
    assert model.trained.model.method.temperature == 0.5
    assert model.explain(reviews.dev[0].text).selected_word_count == 2


def test_aligner(add_part, tmp_path):
    name = add_part("An aligner", "rationalizer.nn.aligners", ALIGNERS)
    pairs = generated_pairs(train=24, dev=6, test=0)
    train(pairs, configure(name, SHORT, pairs=True), tmp_path / "run")
    model = Rationalizer.load(tmp_path / "run")
    assert model.explain(pairs.dev[0].premise.text, pairs.dev[0].hypothesis.text).pairs


def test_constraint(add_part, reviews, tmp_path):
    name = add_part("A constraint", "rationalizer.constraints", CONSTRAINTS)
    settings = {"constraints": [f"{name}=1"], "budget": 2, **SHORT}
    train(reviews, configure(overrides=settings), tmp_path / "run")
    model = Rationalizer.load(tmp_path / "run")
    assert str(model.constraints[0]) == f"{name}=1"
    text = "The first sentence is here. The second one is lovely."
    spans = model.explain(text).spans
    assert spans
    assert all(start > text.index(".") for start, _ in spans)


def test_objective(add_part, reviews):
    name = add_part("An objective", "rationalizer.nn.objectives", OBJECTIVES)
    losses = [
        train(reviews, configure(overrides={"objective": objective, "seed": 3, **SHORT})).history["epochs"][0]["loss"]
        for objective in ("joint", name)
    ]
    assert losses[0] != losses[1]
    with pytest.raises(ValueError, match="confidence"):
        configure(overrides={"objective": "confidence-penality"})


def test_metric(add_part, reviews):
    name = add_part("A metric", "rationalizer.metrics", METRICS)
    scores = evaluate(train(reviews, configure(overrides={**SHORT, "budget": 3})), reviews.dev)
    assert scores.span_length == scores.as_dict()[name] == pytest.approx(scores.tokens / scores.spans)
    assert ["words per span", METRICS[name].format_value(scores[name])] in score_rows({"dev": scores})
    assert "words per span" in evaluation_report(Report(title="", scores=scores, explanations=[], truths=None))


def test_attribution(add_part, reviews):
    name = add_part("An attribution", "rationalizer.inference.attributions", ATTRIBUTIONS)
    trained = train(reviews, configure(overrides={**SHORT, "budget": 3}))
    comparison = compare_with_attributions(trained, reviews.dev, name)
    assert comparison.attributed.name == name
    assert [len(values) for values in comparison.attributions] == [len(text.tokens) for text in reviews.dev]


def test_dataset(add_part, tmp_path):
    name = add_part("A dataset", "rationalizer.paper.datasets", DATASETS)
    folder = tmp_path / "copy"
    folder.mkdir()
    (folder / "questions.txt").write_text("place:Where is it?\nperson:Who is it?\n" * 10)
    corpus = load(name, data_dir=folder)
    assert (len(corpus.train), len(corpus.dev), corpus.classes) == (18, 2, ("place", "person"))
    assert str(corpus.budget) == "30%"
    (folder / "questions.txt").unlink()
    with pytest.raises(DataError, match=r"questions\.txt"):
        load(name, data_dir=folder)


def test_check_of_an_audit(add_part, reviews):
    name = add_part("A check of an audit", "rationalizer.auditing.checks", CHECKS)
    texts = [example.text for example in reviews.train]
    found = audit(Rationalizer.load("sentiment"), texts, checks=[name], progress=False)
    assert found.results[name].verdict == "pass"
