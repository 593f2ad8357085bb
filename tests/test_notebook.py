"""Notebooks: lists of explanations are drawn, long work has a bar. In a real kernel."""

import nbclient
import nbformat
import pytest

from rationalizer.render import Explanations
from tests.render.samples import GUITAR, explain


def executed(code):
    """What a cell prints on either stream, and what it shows."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = notebook.cells[0].outputs
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    return printed, [output.data for output in outputs if output.output_type == "execute_result"]


def test_a_list_is_drawn_and_has_a_bar(spectra_run):
    printed, [shown] = executed(f"""
from rationalizer import Rationalizer
from rationalizer.learn import watching
watching.PATIENCE = 0
assert watching.is_watched()
Rationalizer.load({str(spectra_run)!r}).explain(["lovely care", "musty room"])
""")
    assert "Explaining: 100%" in printed
    assert "2/2" in printed
    assert shown["text/html"].count('<p class="rz-text"') == 2
    assert shown["text/html"].count("<style>") == 1


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
def test_long_lists_are_cut(count, said):
    html = Explanations([explain("A lovely room.", [1])] * count).to_html()
    assert html.count('<p class="rz-text"') == 50
    assert said in html
    assert "<p>no explanations</p>" in Explanations().to_html()
