"""A file of reviews, for the tests of `explain`."""

import pandas
import pytest

from rationalizer.data import generated_reviews as reviews

COUNT = 300


@pytest.fixture(scope="module")
def corpus():
    return reviews(train=1, dev=1, test=COUNT)


@pytest.fixture(scope="module")
def table(corpus, tmp_path_factory):
    """Texts with labels and human rationales, and a line break in one of them."""
    path = tmp_path_factory.mktemp("table") / "mine.csv"
    names = [corpus.classes[e.label] for e in corpus.test]
    masks = [" ".join(str(int(flag)) for flag in e.annotation) for e in corpus.test]
    texts = [e.text for e in corpus.test]
    texts[5] = texts[5].replace(" ", "\n", 1).replace(" ", ' "', 1)
    masks[5] = ""
    pandas.DataFrame({"review": texts, "label": names, "rationale_mask": masks}).to_csv(path, index=False)
    return path
