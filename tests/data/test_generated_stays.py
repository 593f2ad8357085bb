"""The embedded reviews of stays."""

import re
from collections import Counter

import pytest

from rationalizer.data import generated_stays, load
from rationalizer.data.generated_stays import CLAUSES, REMARKS


@pytest.fixture(scope="module")
def corpus():
    return generated_stays(train=400, dev=50, test=50)


def plain(clause):
    return re.sub(r"[\[\]]", "", clause).lower()


SIDES = {plain(clause): side for sides in CLAUSES.values() for side, some in enumerate(sides) for clause in some}


def test_every_clause_has_annotated_words():
    for sides in CLAUSES.values():
        for clause in (clause for side in sides for clause in side):
            assert re.search(r"\[\w[^\[\]]*\]", clause), clause
            assert clause.count("[") == clause.count("]")
    assert len(SIDES) == sum(len(side) for sides in CLAUSES.values() for side in sides), "a clause comes twice"


def test_label_is_the_majority_of_clauses(corpus):
    for example in corpus.train:
        told = {clause: side for clause, side in SIDES.items() if clause in example.text.lower()}
        assert len(told) == 3, example.text
        assert example.label == int(sum(told.values()) >= 2)
        for (start, _), marked in zip(example.offsets, example.annotation, strict=True):
            clause = next((c for c in told if 0 <= start - example.text.lower().index(c) < len(c)), None)
            assert not marked or told[clause] == example.label
        assert any(example.annotation)


def test_texts_are_well_formed(corpus):
    for example in corpus.train:
        sentences = re.findall(r"[^.]+\.", example.text)
        assert all(sentence.strip()[0].isupper() for sentence in sentences)
        assert "[" not in example.text
        assert "  " not in example.text
    counts = Counter(example.label for example in corpus.train)
    assert min(counts.values()) > 0.4 * len(corpus.train)
    assert any(example.text.startswith(REMARKS[0][:8].capitalize()) for example in corpus.train)


def test_loaded_by_name_and_deterministic(corpus):
    assert load("stays").name == "stays"
    assert generated_stays(train=3, dev=0, test=0).train == generated_stays(train=3, dev=0, test=0).train
    assert generated_stays(seed=1, train=3, dev=0, test=0).train != corpus.train[:3]
    with pytest.raises(ValueError, match="-1, 100"):
        generated_stays(train=-1)
