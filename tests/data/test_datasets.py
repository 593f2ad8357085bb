from dataclasses import replace

import pytest

from rationalizer.data import DataError, DataSource, load, load_dataset
from rationalizer.data.dataset_registry import DATASETS
from tests.data.test_corpus_files import write
from tests.docs.pages import ROOT


def test_registered_datasets_match_the_paper():
    assert {d.name: (d.task, len(d.classes), str(d.budget)) for d in DATASETS.values()} == {
        "sst": ("classification", 2, "20%"),
        "agnews": ("classification", 4, "20%"),
        "imdb": ("classification", 2, "20%"),
        "beer": ("regression", 0, "10%"),
        "beer-binary": ("classification", 2, "18%"),
        "hotels": ("classification", 2, "15%"),
        "movies": ("classification", 2, "20%"),
        "hatexplain": ("classification", 3, "30%"),
        "hatexplain-binary": ("classification", 2, "30%"),
        "snli": ("classification", 3, "4"),
        "mnli": ("classification", 3, "6"),
        "hans": ("classification", 2, "4"),
        "esnli": ("classification", 3, "4"),
        "yelp-hat": ("classification", 2, "20%"),
        "msr-rte": ("classification", 1, "100%"),
        "edinburgh": ("classification", 1, "100%"),
        "mtref": ("classification", 1, "100%"),
        "wiki-align": ("classification", 1, "100%"),
    }
    assert {d.name: d.dev_fraction for d in DATASETS.values() if d.hub} == {
        "sst": 0.1,
        "agnews": 0.15,
        "imdb": 0.1,
        "snli": 0.1,
        "mnli": 0.1,
        "hans": 0.1,
    }


def test_sst(tmp_path):
    rows = [{"tokens": ["It", "'s", "fine"], "label": label} for label in (1, 0, -1, 1)]
    for split in ("train", "dev", "test"):
        write(tmp_path / f"{split}.parquet", rows)
    corpus = load("sst", data_dir=tmp_path)
    assert [len(s) for s in (corpus.train, corpus.dev, corpus.test)] == [3, 3, 3]
    assert [e.label for e in corpus.train] == [1, 0, 1]
    assert corpus.dropped == {"train": 1, "dev": 1, "test": 1}
    assert corpus.classes == ("negative", "positive")
    write(tmp_path / "test.parquet", [{"text": "well-made film .", "label": "Positive"}])
    example = load_dataset("SST", tmp_path).test[0]
    assert (example.tokens, example.label) == (("well-made", "film", "."), 1)


def test_copies_are_described(tmp_path, monkeypatch):
    rows = [{"tokens": ["It", "'s", "fine"], "label": label} for label in (1, 0, -1, 1)]
    for split in ("train", "dev", "test"):
        write(tmp_path / f"{split}.parquet", rows)
    source = DataSource.resolve("sst", tmp_path)
    assert source.note() == "reduced to 0% of its texts"
    monkeypatch.setitem(DATASETS, "sst", replace(DATASETS["sst"], texts=16))
    assert source.note() == "reduced to 50% of its texts"  # those without a usable label are texts, too
    monkeypatch.setitem(DATASETS, "sst", replace(DATASETS["sst"], texts=6))
    assert source.note() == ""
    (tmp_path / "note.txt").write_text("put together\n anew\n")
    assert source.note() == "put together anew"
    assert DataSource.resolve(str(tmp_path)).note() == "put together anew"  # whoever's texts they are
    assert DataSource.resolve("reviews").note() == ""


def test_agnews_and_imdb_dev_fractions(tmp_path):
    write(tmp_path / "train_subset.jsonl", [{"text": f"news, {k}", "label": k % 4} for k in range(100)])
    write(tmp_path / "test.jsonl", [{"text": "x<br />y", "label": 3}])
    corpus = load_dataset("agnews", tmp_path)
    assert [len(s) for s in (corpus.train, corpus.dev, corpus.test)] == [85, 15, 1]
    assert corpus.classes[corpus.test[0].label] == "Sci/Tech"
    assert corpus.train[0].tokens[:2] == ("news", ",")
    write(tmp_path / "train_subset.jsonl", [{"text": f"film {k}", "label": k % 2} for k in range(100)])
    write(tmp_path / "test.jsonl", [{"text": "x<br />y", "label": 1}])
    corpus = load_dataset("imdb", tmp_path)
    assert [len(corpus.train), len(corpus.dev)] == [90, 10]
    assert corpus.test[0].tokens == ("x", "y")


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("folder", ["annotated", "annoated"])
def test_hotel_original_files(tmp_path, header, folder):
    first = "task\tlabel\ttext\trationale\n" if header else ""
    rows = 'hotel\t1\tquiet " street\nhotel\t0\tfar from all\n'
    (tmp_path / "hotel_Location.train").write_text(first.replace("\trationale", "") + rows * 2)
    (tmp_path / "hotel_Location.dev").write_text(first.replace("\trationale", "") + rows)
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "hotel_Location.train").write_text(first + "hotel\t1.0\tnear the port .\t1 1 1 0\n")
    corpus = load("hotels", data_dir=tmp_path)
    assert (corpus.name, str(corpus.budget)) == ("hotels-location", "15%")
    assert [len(s) for s in (corpus.train, corpus.dev, corpus.test)] == [4, 2, 1]
    assert corpus.train[0].tokens == ("quiet", '"', "street")
    assert corpus.test[0].label == 1
    assert corpus.test[0].annotation == (True, True, True, False)
    assert corpus.train[0].annotation is None


def test_invalid_hotel_row_raises(tmp_path):
    path = tmp_path / "hotel_Service.train"
    path.write_text("task\tlabel\ttext\trationale\nh\t1\ta b\t1\n")
    with pytest.raises(DataError, match=r"hotel_Service.train, row 1: .*1 flag"):
        load_dataset("hotels", tmp_path, aspect="service")
    path.write_text("h\t1\n")
    with pytest.raises(DataError, match=r"row 1: .*rationale"):
        load_dataset("hotels", tmp_path, aspect="service")


def eraser(number, label, spans, docid=None):
    name = f"doc_{number}.txt"
    evidences = [[{"docid": docid or name, "start_token": a, "end_token": b, "text": ""}] for a, b in spans]
    return {"annotation_id": name, "classification": label, "evidences": evidences, "query": "?"}


@pytest.fixture
def movies_folder(tmp_path):
    (tmp_path / "docs").mkdir()
    for number in range(4):
        (tmp_path / "docs" / f"doc_{number}.txt").write_text("a bad film .\nvery bad")
    write(tmp_path / "train.jsonl", [eraser(0, "NEG", [(1, 2), (4, 6)]), eraser(1, "POS", [])])
    write(tmp_path / "val.jsonl", [eraser(2, "POS", [(0, 2), (1, 3)])])
    write(tmp_path / "test.jsonl", [eraser(3, "NEG", [(0, 6)])])
    return tmp_path


def test_movie_original_files(movies_folder):
    corpus = load("movies", data_dir=movies_folder)
    assert corpus.train[0].sentence_lengths == (4, 2)
    assert [len(s) for s in (corpus.train, corpus.dev, corpus.test)] == [2, 1, 1]
    assert [e.label for e in corpus.train] == [0, 1]
    assert corpus.train[0].text == "a bad film .\nvery bad"
    assert corpus.train[0].annotation == (False, True, False, False, True, True)
    assert corpus.train[1].annotation is None
    assert corpus.dev[0].annotation == (True, True, True, False, False, False)


def test_empty_movie_spans_mark_nothing(movies_folder):
    write(movies_folder / "test.jsonl", [eraser(3, "NEG", [(0, 1), (2, 2)]), eraser(0, "POS", [(6, 6)])])
    corpus = load("movies", data_dir=movies_folder)
    assert [e.annotation for e in corpus.test] == [(True, False, False, False, False, False), None]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_movie_tables(tmp_path, ending):
    rows = [
        {"tokens": ["a", "bad", "film"], "label": 0, "rationale_spans": [[1, 2], [3, 3]]},
        {"tokens": ["a", "film"], "label": 1, "rationale_spans": []},
    ]
    write(tmp_path / f"train.{ending}", rows)
    write(tmp_path / f"val.{ending}", rows)
    corpus = load("movies", data_dir=tmp_path)
    for split in (corpus.train, corpus.dev):
        assert [(e.label, e.annotation) for e in split] == [(0, (False, True, False)), (1, None)]
    with pytest.raises(DataError, match=r"train.*: row 1: .*\[3, 3\)"):
        load(tmp_path)  # a user's own folder: an end that should have been one more


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (eraser(0, "NEG", [(5, 7)]), r"row 1: .*\[5, 7\)"),
        (eraser(0, "NEG", [(0, 1)], docid="no.txt"), r"row 1: .*no.txt"),
        (eraser(0, "MEH", []), r"row 1: .*'MEH'"),
        ({"annotation_id": "x"}, r"row 1: .*'evidences'"),
    ],
)
def test_invalid_eraser_row_raises(movies_folder, row, message):
    write(movies_folder / "val.jsonl", [row])
    with pytest.raises(DataError, match=rf"val.jsonl, {message}"):
        load_dataset("movies", movies_folder)


def test_load_distinguishes_sources(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "imdb").mkdir()
    write(tmp_path / "imdb" / "train.csv", [{"text": f"{k}", "label": f"class {k % 3}"} for k in range(9)])
    assert load("./imdb").classes == ("class 0", "class 1", "class 2")
    assert load(tmp_path / "imdb" / "train.csv").name == "train"
    assert load("reviews", seed=4).train[0] != load("reviews").train[0]
    assert load("reviews", aspect="food").name == "reviews"
    with pytest.raises(DataError, match=r"imdbb .*'imdb'.*stays"):
        load("imdbb")


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("reviews", {"data_dir": "x"}, "data_dir"),
        ("imdb", {"classes": ["a"]}, "classes"),
        (".", {"aspect": "food"}, "own files .*aspect"),
        ("imdb", {"aspect": "food"}, "aspect='food'"),
        ("beer", {"aspect": "food"}, "appearance.*'food'"),
        ("movies", {}, "movies .*data_dir"),
        ("beer", {"data_dir": "nowhere"}, "nowhere"),
    ],
)
def test_unsupported_options_raise(source, options, message):
    with pytest.raises(ValueError, match=message):
        load(source, **options)


def test_unknown_dataset_error_suggests_a_name():
    with pytest.raises(ValueError, match=r"'hotel'.*'hotels'"):
        load_dataset("hotel")


def test_all_datasets_are_documented():
    page = (ROOT / "docs/how-to/own-data.md").read_text(encoding="utf-8")
    rows = [[cell.strip(" `") for cell in line.split("|")[1:4]] for line in page.splitlines() if line.startswith("| `")]
    documented = {name: (task, budget) for name, task, budget in rows if name in DATASETS}
    assert {name: budget for name, (_, budget) in documented.items()} == {
        d.name: str(d.budget) for d in DATASETS.values()
    }
    for name, (task, _) in documented.items():
        assert task.startswith(", ".join(DATASETS[name].classes) or "regression")
