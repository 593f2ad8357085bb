import pytest

from rationalizer import Rationalizer
from rationalizer.data import generated_pairs, generated_reviews


@pytest.fixture(scope="session")
def model(spectra_run):
    return Rationalizer.load(spectra_run)


@pytest.fixture(scope="session")
def pair_model(pair_run):
    return Rationalizer.load(pair_run)


@pytest.fixture(scope="session")
def texts():
    return [example.text for example in generated_reviews(train=1, dev=1, test=40).test]


@pytest.fixture(scope="session")
def pairs():
    examples = generated_pairs(train=1, dev=1, test=40).test
    return [(example.premise.text, example.hypothesis.text) for example in examples]


@pytest.fixture
def record(model, texts):
    return model.explain(texts[0], record=True).record
