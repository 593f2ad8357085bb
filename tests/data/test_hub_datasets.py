import sys
from dataclasses import replace

import pytest

from rationalizer.data import DataError, load_dataset
from rationalizer.data.dataset_registry import DATASETS
from tests.data.test_corpus_files import write


def test_missing_package_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[hub\]" in a checkout; or pass data_dir'):
        load_dataset("imdb")


@pytest.fixture
def offline(monkeypatch, tmp_path):
    pytest.importorskip("datasets", reason="the extra rationalizer[hub] is not installed")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    folder = tmp_path / "imdb"
    folder.mkdir()
    monkeypatch.setitem(DATASETS, "imdb", replace(DATASETS["imdb"], hub=str(folder)))
    return folder


def test_parquet_dataset(offline):
    rows = [{"text": f"film {k}<br />x", "label": k % 2, "extra": [k]} for k in range(40)]
    write(offline / "train-00000-of-00001.parquet", rows)
    write(offline / "test-00000-of-00001.parquet", rows[:3])
    write(offline / "unsupervised-00000-of-00001.parquet", [{"text": "x", "label": -1, "extra": [0]}])
    corpus = load_dataset("imdb")
    assert [len(s) for s in (corpus.train, corpus.dev, corpus.test)] == [36, 4, 3]
    assert corpus.test[1].tokens == ("film", "1", "x")
    assert corpus.test[1].label == 1


def test_dataset_with_several_labels(offline, monkeypatch):
    """Such datasets have lists of class indices."""
    made = replace(DATASETS["imdb"], classes=("food", "room", "view"), several=True, prepare=None)
    monkeypatch.setitem(DATASETS, "imdb", made)
    rows = [{"text": f"visit {k}", "label": [[2, 0], [], [1]][k % 3]} for k in range(40)]
    write(offline / "train.parquet", rows)
    write(offline / "test.parquet", rows[:3])
    corpus = load_dataset("imdb")
    assert (corpus.task, corpus.classes) == ("multi-label", ("food", "room", "view"))
    assert [example.label for example in corpus.test] == [(1, 0, 1), (0, 0, 0), (0, 1, 0)]


def test_unreadable_dataset_raises(offline):
    with pytest.raises(DataError, match=r"could not be read from the Hugging Face Hub.*pass data_dir"):
        load_dataset("imdb")
