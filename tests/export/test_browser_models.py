"""Models of all kinds in the browser against PyTorch."""

import runpy
from pathlib import Path

import pytest

from rationalizer import Rationalizer
from rationalizer.export.onnxruntime_web import runtime_files
from rationalizer.export.web_site import export_site
from tests.export.conftest import PARITY, run_in_page
from tests.export.test_exported_models import AVERAGES, LONG, MODELS, PAIRS
from tests.export.untrained_models import TEXTS, save_model
from tests.nn.tiny_transformers import write_encoder

answer = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "export_parity.py"))["answer"]
TRANSFORMERS = {
    "bert": {},
    "windows": {"window": 50, "overlap": 16, "pooling": "max-mean"},
    "kept gaps, zero": {"gaps": "kept", "unselected": "zero", "shared": True},
    "pairs": {"method": "at-most-one"},
}


def assert_same_answers(browser, folders, site):
    export_site(folders, site)
    cases, expected = [], []
    for folder in folders:
        model = Rationalizer.load(folder, device="cpu")
        others = {"share": () if model.pairs else ("50%",), "average": AVERAGES}.get(model.config.budget.kind, ())
        for texts in PAIRS if model.pairs else [(text,) for text in (*TEXTS, LONG)]:
            for budget in (None, *others):
                case = {"model": folder.name, "texts": list(texts), "budget": budget, "constraints": None}
                cases.append(case)
                expected.append(answer(model, case))
    with PARITY["serving"](site) as address:
        answers = run_in_page(browser, address, PARITY["ANSWER"], cases)["answers"]
    for case, one, other in zip(cases, expected, answers, strict=True):
        if isinstance(one.get("label"), float):  # of a regression
            assert one.pop("label") == pytest.approx(other.pop("label"), abs=1e-4)
            one["label"] = other["label"] = None
        difference = PARITY["difference"](one, other)
        assert difference is not None, (case, one, other)
        assert difference < 1e-4


def test_bilstm_models(browser, tmp_path):
    skipped = ("sparsemax", "spectra", "shared", "punctuation counts", "sigmoid", "constraints")
    names = [name for name in MODELS if name not in skipped]
    assert_same_answers(browser, [save_model(tmp_path / name, **MODELS[name]) for name in names], tmp_path / "site")


def test_transformers(browser, tmp_path):
    try:
        runtime_files()
    except OSError as error:
        pytest.skip(str(error))
    encoder = write_encoder(tmp_path / "encoder", "bert")
    folders = [save_model(tmp_path / name, encoder=encoder, **own) for name, own in TRANSFORMERS.items()]
    assert_same_answers(browser, folders, tmp_path / "site")
