"""Texts are split into runs by highlight, between graphemes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rationalizer.drawing.highlight_kinds import SELECTED, Look, pair_text_runs, relative_weights, split_text, text_runs
from rationalizer.drawing.result_columns import result_columns, result_values
from rationalizer.drawing.text_width import GRAPHEME
from tests.drawing.samples import EMOJI, GUITAR, HOSTILE, RIGHT_TO_LEFT, SENTIMENT, explain

TEXT = "A warm, funny  film: never dull."  # A warm , funny film : never dull .


def looks(explanation):
    return [(run.text, run.kind) for run in text_runs(explanation) if run.kind]


def test_neighbours_form_one_run():
    explanation = explain(TEXT, [1, 2, 3, 6])
    assert looks(explanation) == [("warm, funny", "selected"), ("never", "selected")]
    assert [run.text for run in text_runs(explanation) if run.kind] == [
        TEXT[start:end] for start, end in explanation.spans
    ]


def test_annotation_and_rationale():
    explanation = explain(TEXT, [1, 2, 3], annotation=[3, 4, 5])
    assert looks(explanation) == [("warm,", "extra"), ("funny", "both"), ("film:", "missed")]
    assert looks(explain(TEXT, [], annotation=[])) == []
    assert looks(explain(TEXT, [1], annotation=[])) == [("warm", "extra")]


def test_runs_split_at_different_weights():
    found = [run for run in text_runs(explain(TEXT, [1, 2, 3], weights=[0.1, 0.1, 0.2])) if run.kind]
    assert [(run.text, run.look.hint, run.look.shade) for run in found] == [
        ("warm, ", "weight 0.1", 0.5),
        ("funny", "weight 0.2", 1.0),
    ]


def test_line_break_ends_a_run():
    assert looks(explain("good\n\nfilm", [0, 1])) == [("good", "selected"), ("film", "selected")]


def test_selected_words_of_weight_zero_are_highlighted():
    assert looks(explain("good film", [0], weights=[0.0])) == [("good", "selected")]


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=1))
def test_shades_lie_between_0_and_1(weights):
    found = relative_weights(weights)
    assert all(0 <= shade <= 1 for shade in found)
    assert max(found) == (1 if max(weights) > 0 else 0)


@pytest.mark.parametrize("text", [TEXT, EMOJI, HOSTILE, RIGHT_TO_LEFT, "", " ", "\n"])
@given(chosen=st.sets(st.integers(0, 40)), named=st.sets(st.integers(0, 40)) | st.none())
def test_runs_join_to_the_text_between_graphemes(text, chosen, named):
    explanation = explain(text, sorted(chosen), annotation=named)
    found = text_runs(explanation)
    assert "".join(run.text for run in found) == text
    edges, end = set(), 0
    for run in found:
        end += len(run.text)
        edges.add(end)
    assert edges <= {match.end() for match in GRAPHEME.finditer(text)}


def test_partly_selected_grapheme_is_highlighted():
    """Accents and skin tones may be tokens of their own."""
    text = "Cafe\u0301 ok"
    offsets = ((0, 4), (4, 5), (6, 8))
    selected, plain = Look("selected", 1.0), Look()
    for looks in ([selected, plain, plain], [plain, selected, plain]):
        marked = [run.text for run in split_text(text, offsets, looks) if run.kind]
        assert marked == (["Cafe\u0301"] if looks[0].kind else ["e\u0301"])
    family = "👨‍👩‍👧‍👦"
    marked = [run.text for run in split_text(family, ((0, 1), (1, len(family))), [plain, selected]) if run.kind]
    assert marked == [family]


def test_pair_text_runs():
    premise, hypothesis = pair_text_runs(GUITAR)
    assert [(p.text, p.kind) for p in premise if p.kind] == [
        ("man", "both"),
        ("playing", "both"),
        ("guitar", "both"),
        ("on", "missed"),
        ("stage", "extra"),
    ]
    assert [p.text for p in hypothesis if p.kind in SELECTED] == ["person", "playing", "instrument", "public"]
    assert "".join(p.text for p in premise) == GUITAR.premise


def test_rationale_is_the_same_in_python_json_and_tables():
    explanation = explain(TEXT, [1, 3, 4, 7], annotation=[1])
    form = {"pairs": False, "classes": list(SENTIMENT)}
    row = dict(zip(result_columns((), **form), result_values(explanation, **form), strict=True))
    assert (
        explanation.rationale
        == explanation.to_dict()["rationale"]
        == row["rationale"]
        == "warm ... funny  film ... dull"
    )
    assert explanation.to_dict()["annotation"] == explanation.annotation
    assert {label: row[f"probability_{label}"] for label in SENTIMENT} == SENTIMENT
    assert [word.text for word in explanation.words] == [word["text"] for word in row["words"]]
