"""Texts of many kinds, under random budgets and constraints, in three runtimes; see `scripts/export_parity.py`."""

import runpy
from pathlib import Path

import pytest

from rationalizer import Rationalizer
from rationalizer.export import ExportedModel, export_model

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "export_parity.py"))


@pytest.mark.parametrize("name", ["sentiment", "nli", "align"])
def test_starters_agree(name, tmp_path):
    model = Rationalizer.load(name, device="cpu")
    others = [ExportedModel.load(name), ExportedModel.load(export_model(name, tmp_path))]
    cases = [case for case in SCRIPT["make_cases"](160, seed=1) if case["model"] == name][:40]
    kinds = set()
    for case in cases:
        expected = SCRIPT["answer"](model, case)
        kinds.add("error" in expected)
        for other in others:
            difference = SCRIPT["compare"](expected, SCRIPT["answer"](other, case))
            assert difference is not None, (case, expected)
            assert difference < 1e-4
    assert kinds == {True, False}
