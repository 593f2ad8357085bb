import pytest

from rationalizer.data import generated_reviews as reviews


@pytest.fixture(scope="module")
def corpus():
    return reviews(train=96, dev=24, test=24)
