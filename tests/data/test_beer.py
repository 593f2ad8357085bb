import gzip
import json

import numpy as np
import pytest

from rationalizer.data import DataError, load, load_dataset
from tests.data.test_corpus_files import write


def test_table_uses_the_aspect_column(tmp_path):
    rows = [{"tokens": f"pale head {k}", "appearance": 0.25, "taste": 0.75} for k in range(10)]
    write(tmp_path / "train_small.parquet", rows)
    write(tmp_path / "test994.parquet", [{"tokens": "dark", "appearance": 1.0, "taste": 0.5}])
    corpus = load_dataset("beer", tmp_path)
    assert (corpus.name, corpus.task, str(corpus.budget)) == ("beer-appearance", "regression", "10%")
    assert {e.label for e in corpus.train} == {0.25}
    assert load_dataset("beer", tmp_path, aspect="taste").test[0].label == 0.5
    write(tmp_path / "test994.parquet", [{"tokens": "dark", "taste": 0.5}])
    with pytest.raises(DataError, match=r"test994.parquet: .*'appearance'"):
        load_dataset("beer", tmp_path)


def beer_tables(folder, ending="parquet"):
    """One training file for all aspects, and reviews with spans for one of them."""
    words = ["pale", "head"]
    train = [
        {"tokens": [*words, str(k)], "aspect": ("appearance", "taste")[k % 2], "appearance": k / 10, "taste": 1.0}
        for k in range(11)
    ]
    annotated = [
        {"tokens": words, "appearance": 0.9, "taste": 0.2, "rationale_appearance": [[0, 1]]},
        {"tokens": words, "appearance": 0.5, "taste": 0.4, "rationale_appearance": []},
    ]
    write(folder / f"train.{ending}", train)
    write(folder / f"dev.{ending}", [{"tokens": words, "aspect": "appearance", "appearance": 0.4, "taste": 0.8}])
    write(folder / f"annotated_dev.{ending}", annotated)
    return folder


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_tables_use_the_rows_of_the_aspect(tmp_path, ending):
    corpus = load("beer", data_dir=beer_tables(tmp_path, ending))
    assert [e.label for e in corpus.train] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert [e.label for e in corpus.dev] == [0.4]
    assert [(e.label, e.annotation) for e in corpus.test] == [(0.9, (True, False)), (0.5, None)]
    taste = load("beer", data_dir=tmp_path, aspect="taste")
    assert [len(s) for s in (taste.train, taste.dev, taste.test)] == [4, 1, 2]  # dev had no row for it: held out
    assert [(e.label, e.annotation) for e in taste.test] == [(0.2, None), (0.4, None)]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_binary_labels_from_tables(tmp_path, ending):
    corpus = load("beer-binary", data_dir=beer_tables(tmp_path, ending))
    assert (corpus.name, corpus.classes) == ("beer-binary-appearance", ("negative", "positive"))
    assert (corpus.task, str(corpus.budget)) == ("classification", "18%")
    assert [e.label for e in corpus.train] == [0, 0, 0, 1, 1, 1]
    assert [e.annotation for e in corpus.test] == [(True, False)]
    assert corpus.dropped == {"test": 1}


@pytest.mark.parametrize("packed", [False, True])
def test_binary_labels_from_original_files(tmp_path, packed):
    beer_folder(tmp_path, packed)
    corpus = load("beer-binary", data_dir=tmp_path)
    assert [e.label for e in corpus.train] == [1, 0]
    assert [(e.label, e.annotation) for e in corpus.test] == [(1, (True, True, False, False)), (0, None)]
    aroma = load("beer-binary", data_dir=tmp_path, aspect="aroma")
    assert sorted(e.label for e in [*aroma.train, *aroma.dev]) == [0, 0, 1, 1]


def test_neutral_ratings_are_dropped(tmp_path):
    ratings = [0.4, 0.41, 0.5, 0.59, 0.6, float(np.float32(0.4)), float(np.float32(0.6))]
    write(tmp_path / "train.parquet", [{"tokens": "pale head", "appearance": rating} for rating in ratings])
    write(tmp_path / "dev.parquet", [{"tokens": "pale head", "appearance": 1}])
    corpus = load_dataset("beer-binary", tmp_path)
    assert [e.label for e in corpus.train] == [0, 1, 0, 1]
    assert corpus.dropped == {"train": 3}


def test_invalid_table_raises(tmp_path):
    beer_tables(tmp_path)
    with pytest.raises(DataError, match=r"train.parquet: .*'aroma'"):
        load("beer-binary", data_dir=tmp_path, aspect="aroma")
    rows = [{"tokens": "a", "aspect": aspect, "taste": rating} for aspect, rating in (("aroma", 0.5), ("taste", 4.5))]
    write(tmp_path / "train.parquet", rows)
    with pytest.raises(DataError, match=r"train.parquet, row 2: .*4.5"):
        load("beer-binary", data_dir=tmp_path, aspect="taste")
    spans = [{"tokens": "a b", "aspect": "taste", "taste": 0.5, "rationale_taste": [[1, 1]]}]
    write(tmp_path / "dev.parquet", spans)
    with pytest.raises(DataError, match=r"dev.parquet, row 1: .*\[1, 1\)"):
        load("beer", data_dir=tmp_path, aspect="taste")
    write(tmp_path / "test.parquet", rows)
    with pytest.raises(DataError, match=r"annotated_dev.parquet and test.parquet"):
        load("beer", data_dir=tmp_path, aspect="taste")
    (tmp_path / "train.parquet").unlink()
    with pytest.raises(DataError, match=r"reviews.aspect\*.train.txt"):
        load("beer", data_dir=tmp_path, aspect="taste")


def test_messages_use_row_numbers_of_the_file(tmp_path):
    rows = [{"tokens": tokens, "aspect": aspect, "taste": 0.5} for aspect, tokens in (("aroma", "a"), ("taste", " "))]
    write(tmp_path / "train.jsonl", rows)
    with pytest.raises(DataError, match=r"train.jsonl, row 2: .*no token"):
        load("beer", data_dir=tmp_path, aspect="taste")


def beer_folder(folder, packed):
    reviews = "0.6 0.4 0.5 0.4 0.5\tpours a nice head .\n0.2 0.9 0.5 0.5 0.5\tsmells of hops\n"
    annotations = [
        {
            "x": ["nice", "head", "\xa0", "smell"],  # as one of the published reviews has it
            "y": [0.7, 0.8, 0.6, 0.5, 0.5],
            "0": [[0, 2]],
            "1": [[3, 4]],
            "2": [],
        },
        {"x": ["thin"], "y": [0.1, 0.2, 0.3, 0.4, 0.5], "0": [], "1": [], "2": [[0, 1]]},
    ]
    contents = {
        "reviews.aspect0.train.txt": reviews,
        "reviews.aspect0.heldout.txt": reviews.splitlines()[0],
        "reviews.aspect1.train.txt": reviews * 2,
        "annotations.json": "\n".join(map(json.dumps, annotations)),
    }
    for name, content in contents.items():
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
        else:
            (folder / name).write_text(content)


@pytest.mark.parametrize("packed", [False, True])
def test_original_files(tmp_path, packed):
    beer_folder(tmp_path, packed)
    corpus = load("beer", data_dir=tmp_path)
    assert [len(s) for s in (corpus.train, corpus.dev, corpus.test)] == [2, 1, 2]
    assert [e.label for e in corpus.train] == [0.6, 0.2]
    assert corpus.train[0].tokens == ("pours", "a", "nice", "head", ".")
    assert corpus.test[0].annotation == (True, True, False, False)
    assert corpus.test[1].annotation is None
    aroma = load("beer", data_dir=tmp_path, aspect="aroma")
    assert aroma.test[0].label == 0.8
    assert aroma.test[0].annotation == (False, False, False, True)
    assert [len(aroma.train), len(aroma.dev)] == [3, 1]
    assert {e.label for e in [*aroma.train, *aroma.dev]} == {0.4, 0.9}


def test_invalid_original_file_raises(tmp_path):
    beer_folder(tmp_path, False)
    path = tmp_path / "annotations.json"
    path.write_text('{"x": ["a"], "y": [1, 1, 1, 1, 1], "0": [[0, 2]]}\n')
    with pytest.raises(DataError, match=r"annotations.json, row 1: .*\[0, 2\)"):
        load_dataset("beer", tmp_path)
    path.write_text('{"tokens": ["a"]}\n')
    with pytest.raises(DataError, match=r"annotations.json, row 1: expected 'x'"):
        load_dataset("beer", tmp_path)
    path = tmp_path / "reviews.aspect0.train.txt"
    path.write_text("0.5 0.5\ta\n0.5 b\n")
    with pytest.raises(DataError, match=r"aspect0.train.txt, row 2: .*ratings"):
        load_dataset("beer", tmp_path)
    path.write_text("nice\tb\n")
    with pytest.raises(DataError, match=r"aspect0.train.txt, row 1: .*appearance"):
        load_dataset("beer", tmp_path)
