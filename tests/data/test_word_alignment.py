"""Sentences whose words people aligned, in the forms in which they are passed on."""

import json

import pytest

from rationalizer.data import Columns, DataError, load
from tests.data.test_corpus_files import write

SOURCE, TARGET = "Two men play chess .", "Men are playing a game ."


def multimwa(path, sure="1-0 2-2 4-5", possible="3-4", count=3):
    line = ["id-1", SOURCE, "", TARGET, "", "", "", sure, possible, "further"]
    path.write_text("".join("\t".join(line) + "\n" for _ in range(count)), encoding="utf-8")


def jacana(path, count=20):
    rows = [{"source": SOURCE, "target": TARGET, "sureAlign": "2-2 1-0 4-5", "possibleAlign": "3-4"}] * count
    path.write_text(json.dumps(rows))


def expected(corpus):
    first = corpus.train[0]
    assert (corpus.classes, corpus.rule, corpus.pairs) == (("pair",), "spaces", True)
    assert (first.premise.tokens, first.hypothesis.tokens) == (tuple(SOURCE.split()), tuple(TARGET.split()))
    return first.alignment == ((1, 0), (2, 2), (4, 5))


@pytest.mark.parametrize(("name", "stem"), [("mtref", "mtref"), ("wiki-align", "wiki")])
def test_multimwa(tmp_path, name, stem):
    for split, count in (("train", 3), ("dev", 2), ("test", 1)):
        multimwa(tmp_path / f"{stem}-{split}.tsv", count=count)
    corpus = load(name, data_dir=tmp_path)
    assert expected(corpus)
    assert [len(split) for split in (corpus.train, corpus.dev, corpus.test)] == [3, 2, 1]
    both = load(name, data_dir=tmp_path, columns=Columns(alignment="sure_and_possible"))
    assert both.train[0].alignment == ((1, 0), (2, 2), (3, 4), (4, 5))


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("msr-rte", ("RTE2_dev_M.align.json", "RTE2_test_M.align.json")),
        ("edinburgh", ("gold.train.sure.json", "gold.test.sure.json")),
    ],
)
def test_jacana(tmp_path, name, files):
    jacana(tmp_path / files[0])
    jacana(tmp_path / files[1], count=4)
    corpus = load(name, data_dir=tmp_path)
    assert expected(corpus)
    assert [len(split) for split in (corpus.train, corpus.dev, corpus.test)] == [18, 2, 4]  # dev is held out


def test_tables_of_all_datasets_in_one_folder(tmp_path):
    row = {"source_tokens": SOURCE.split(), "target_tokens": TARGET.split(), "sure": [[1, 0], [2, 2], [4, 5]]}
    for k, stem in enumerate(("msr_rte", "edinburgh", "mtref", "wiki")):
        write(tmp_path / f"{stem}_train.parquet", [row] * (k + 1))
        write(tmp_path / f"{stem}_dev.parquet", [row])
    for k, name in enumerate(("msr-rte", "edinburgh", "mtref", "wiki-align")):
        corpus = load(name, data_dir=tmp_path)
        assert expected(corpus)
        assert len(corpus.train) == k + 1


def test_errors_name_the_location(tmp_path):
    (tmp_path / "mtref-train.tsv").write_text("\t".join(["x"] * 9) + "\nonly\tthree\tfields\n")
    with pytest.raises(DataError, match=r"row 2: 3 .*fields"):
        load("mtref", data_dir=tmp_path)
    multimwa(tmp_path / "mtref-train.tsv", sure="1-0 2:2")
    with pytest.raises(DataError, match=r"row 1.*'2:2'"):
        load("mtref", data_dir=tmp_path)
    multimwa(tmp_path / "mtref-train.tsv", sure="1-9")
    with pytest.raises(DataError, match=r"\(1, 9\)"):
        load("mtref", data_dir=tmp_path)
    with pytest.raises(DataError, match=r"RTE2_dev_M\.align\.json"):
        load("msr-rte", data_dir=tmp_path)
    write(tmp_path / "msr_rte_train.jsonl", [{"source_tokens": SOURCE, "target": TARGET}])
    with pytest.raises(DataError, match="'sure'"):
        load("msr-rte", data_dir=tmp_path)
