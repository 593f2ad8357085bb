"""Notebooks: lists of explanations are drawn, long work has a bar. In a real kernel."""

import re

import nbclient
import nbformat
import pytest

from rationalizer import Rationalizer, progress
from rationalizer.drawing import Explanations
from tests.drawing.samples import GUITAR, explain


def executed(code):
    """What a cell prints on either stream, and what it shows."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = notebook.cells[0].outputs
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    return printed, [output.data for output in outputs if output.output_type == "execute_result"]


def test_list_and_progress_bar():
    printed, [shown] = executed("""
from rationalizer import progress
from rationalizer.drawing import Explanation, Explanations
progress.NOTEBOOK_DELAY = 0
assert progress.is_interactive()
with progress.show_notebook_progress("Explaining", 2) as advance:
    advance(2)
one = Explanation("A view.", "good", None, ("A", "view"), ((0, 1), (2, 6)), (0.0, 1.0), (False, True), ((2, 6),))
Explanations([one, one])
""")
    assert re.search("Explaining .*2/2", printed)
    assert shown["text/html"].count('<p class="rz-text"') == 2
    assert shown["text/html"].count("<style>") == 1


def test_model_shows_progress(spectra_run, monkeypatch, capsys):
    model = Rationalizer.load(spectra_run)
    assert isinstance(model.explain(["lovely care"]), Explanations)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    monkeypatch.setattr(progress, "NOTEBOOK_DELAY", 0)
    model.explain(["lovely care", "musty room"])
    assert re.search("Explaining .*2/2", capsys.readouterr().err)
    model.predict(["lovely care", "musty room"])
    assert re.search("Predicting .*2/2", capsys.readouterr().err)


def test_explanations_are_a_list():
    found = Explanations([explain("A lovely room.", [1]), GUITAR])
    assert found == [found[0], found[1]]
    assert isinstance(found[:1], Explanations)
    assert isinstance(found, list)
    html = found._repr_html_()
    assert "lovely" in html
    assert "<svg" in html
    assert html.count("<ul") == 1  # one key
    assert "more</p>" not in html


@pytest.mark.parametrize(("count", "said"), [(50, ""), (52, "and 2 more")])
def test_long_lists_are_truncated(count, said):
    html = Explanations([explain("A lovely room.", [1])] * count).to_html()
    assert html.count('<p class="rz-text"') == 50
    assert said in html
    assert "<p>no explanations</p>" in Explanations().to_html()
