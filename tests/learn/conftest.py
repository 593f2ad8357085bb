import pytest

from rationalizer.data import reviews


@pytest.fixture(scope="module")
def corpus():
    return reviews(train=96, dev=24, test=24)
