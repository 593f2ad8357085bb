import numpy as np
import pytest

from rationalizer.data.single_examples import make_example
from rationalizer.inference import annotation_usefulness, predict
from rationalizer.inference.predict import Predictions
from rationalizer.models import TrainedModel

TOKENS = ("the", "room", "was", "lovely")
SELECTED, OTHERS = (0, 0, 1, 1), (1, 1, 0, 0)


@pytest.fixture
def trained(spectra_run):
    return TrainedModel.load(spectra_run, "cpu")


def usefulness(trained, *texts):
    """Of texts given as (label, annotation, p of class 1, scores of the words)."""
    examples = [make_example(tokens=TOKENS, label=label, mask=mask) for label, mask, _, _ in texts]
    outputs = np.array([[1 - p, p] for _, _, p, _ in texts], np.float32)
    scores = [np.array(each, np.float32) for *_, each in texts]
    weights = [np.array(SELECTED, np.float32)] * len(texts)
    return annotation_usefulness(trained, examples, Predictions(outputs, weights, scores))


CLEAR, UNCLEAR = (0.0, 0.1, 3.0, 3.1), (0.0, 2.9, 3.0, 3.1)


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ((None, None, 0.9, CLEAR), (None, None, 0.6, CLEAR)),  # an uncertain label
        ((None, None, 0.9, CLEAR), (None, None, 0.9, UNCLEAR)),  # an unsure selection
        ((1, None, 0.9, CLEAR), (0, None, 0.9, CLEAR)),  # another label than people chose
        ((1, SELECTED, 0.9, CLEAR), (1, OTHERS, 0.9, CLEAR)),  # other words than people marked
    ],
)
def test_what_is_more_useful(trained, less, more):
    first, second = usefulness(trained, less, more)
    assert 0 <= first < second <= 1


def test_equal_texts_are_equally_useful(trained):
    assert len(set(usefulness(trained, *[(1, SELECTED, 0.9, CLEAR)] * 3))) == 1


def test_of_a_model(trained):
    examples = [make_example(text=text, label=0) for text in ("lovely care", "musty room", "the bed")]
    found = annotation_usefulness(trained, examples, predict(trained, examples))
    assert ((found >= 0) & (found <= 1)).all()
