import gzip
import json

import pytest

from rationalizer.data import DATASETS, DataError, load, load_dataset
from tests.data.test_files import write


def test_the_table_follows_the_paper():
    assert {d.name: (d.task, len(d.classes), str(d.budget)) for d in DATASETS.values()} == {
        "sst": ("classification", 2, "20%"),
        "agnews": ("classification", 4, "20%"),
        "imdb": ("classification", 2, "20%"),
        "beer": ("regression", 0, "10%"),
        "hotels": ("classification", 2, "15%"),
        "movies": ("classification", 2, "20%"),
        "snli": ("classification", 3, "4"),
        "mnli": ("classification", 3, "6"),
        "hans": ("classification", 2, "4"),
    }
    assert {d.name: d.dev_fraction for d in DATASETS.values() if d.hub} == {
        "sst": 0.1,
        "agnews": 0.15,
        "imdb": 0.1,
        "snli": 0.1,
        "mnli": 0.1,
        "hans": 0.1,
    }


def test_sst_drops_neutral_sentences_and_splits_at_spaces(tmp_path):
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


def test_agnews_and_imdb_hold_out_their_share(tmp_path):
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


def test_beer_as_table_takes_the_aspects_column(tmp_path):
    rows = [{"tokens": f"pale head {k}", "appearance": 0.25, "taste": 0.75} for k in range(10)]
    write(tmp_path / "train_small.parquet", rows)
    write(tmp_path / "test994.parquet", [{"tokens": "dark", "appearance": 1.0, "taste": 0.5}])
    corpus = load_dataset("beer", tmp_path)
    assert (corpus.name, corpus.task, str(corpus.budget)) == ("beer-appearance", "regression", "10%")
    assert {e.label for e in corpus.train} == {0.25}
    assert load_dataset("beer", tmp_path, aspect="taste").test[0].label == 0.5
    write(tmp_path / "test994.parquet", [{"tokens": "dark", "taste": 0.5}])
    with pytest.raises(DataError, match=r"test994.parquet: there is no column 'appearance'"):
        load_dataset("beer", tmp_path)


def beer_folder(folder, packed):
    reviews = "0.6 0.4 0.5 0.4 0.5\tpours a nice head .\n0.2 0.9 0.5 0.5 0.5\tsmells of hops\n"
    annotations = [
        {
            "x": ["nice", "head", "and", "smell"],
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
def test_beer_as_lei_et_al_give_it(tmp_path, packed):
    beer_folder(tmp_path, packed)
    corpus = load("beer", data_dir=tmp_path)
    assert [len(s) for s in (corpus.train, corpus.dev, corpus.test)] == [2, 1, 2]
    assert [e.label for e in corpus.train] == [0.6, 0.2]
    assert corpus.train[0].tokens == ("pours", "a", "nice", "head", ".")
    assert corpus.test[0].rationale == (True, True, False, False)
    assert corpus.test[1].rationale is None
    aroma = load("beer", data_dir=tmp_path, aspect="aroma")
    assert aroma.test[0].label == 0.8
    assert aroma.test[0].rationale == (False, False, False, True)
    assert [len(aroma.train), len(aroma.dev)] == [3, 1]
    assert {e.label for e in [*aroma.train, *aroma.dev]} == {0.4, 0.9}


def test_broken_beer_files_are_named(tmp_path):
    beer_folder(tmp_path, False)
    path = tmp_path / "annotations.json"
    path.write_text('{"x": ["a"], "y": [1, 1, 1, 1, 1], "0": [[0, 2]]}\n')
    with pytest.raises(DataError, match=r"annotations.json, row 1: the rationale span \[0, 2\) does not lie"):
        load_dataset("beer", tmp_path)
    path.write_text('{"tokens": ["a"]}\n')
    with pytest.raises(DataError, match=r"annotations.json, row 1: expected 'x'"):
        load_dataset("beer", tmp_path)
    path = tmp_path / "reviews.aspect0.train.txt"
    path.write_text("0.5 0.5\ta\n0.5 b\n")
    with pytest.raises(DataError, match=r"aspect0.train.txt, row 2: expected ratings, a tab and tokens"):
        load_dataset("beer", tmp_path)
    path.write_text("nice\tb\n")
    with pytest.raises(DataError, match=r"aspect0.train.txt, row 1: expected a rating of appearance in place 1"):
        load_dataset("beer", tmp_path)


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("folder", ["annotated", "annoated"])
def test_hotels_as_bao_et_al_give_them(tmp_path, header, folder):
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
    assert corpus.test[0].rationale == (True, True, True, False)
    assert corpus.train[0].rationale is None


def test_broken_hotel_rows_are_named(tmp_path):
    path = tmp_path / "hotel_Service.train"
    path.write_text("task\tlabel\ttext\trationale\nh\t1\ta b\t1\n")
    with pytest.raises(DataError, match=r"hotel_Service.train, row 1: the rationale mask has 1 flags for 2 tokens"):
        load_dataset("hotels", tmp_path, aspect="service")
    path.write_text("h\t1\n")
    with pytest.raises(DataError, match=r"row 1: expected task, label, text, rationale between tabs, got 2 of them"):
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


def test_movies_as_eraser_gives_them(movies_folder):
    corpus = load("movies", data_dir=movies_folder)
    assert [len(s) for s in (corpus.train, corpus.dev, corpus.test)] == [2, 1, 1]
    assert [e.label for e in corpus.train] == [0, 1]
    assert corpus.train[0].text == "a bad film .\nvery bad"
    assert corpus.train[0].rationale == (False, True, False, False, True, True)
    assert corpus.train[1].rationale is None
    assert corpus.dev[0].rationale == (True, True, True, False, False, False)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (eraser(0, "NEG", [(5, 7)]), r"row 1: the rationale span \[5, 7\) does not lie within the 6 tokens"),
        (eraser(0, "NEG", [(0, 1)], docid="no.txt"), r"row 1: the document .*no.txt is missing"),
        (eraser(0, "MEH", []), r"row 1: expected .*'MEH' is missing or wrong"),
        ({"annotation_id": "x"}, r"row 1: expected .*'evidences' is missing"),
    ],
)
def test_broken_eraser_rows_are_named(movies_folder, row, message):
    write(movies_folder / "val.jsonl", [row])
    with pytest.raises(DataError, match=rf"val.jsonl, {message}"):
        load_dataset("movies", movies_folder)


def test_load_tells_sources_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "imdb").mkdir()
    write(tmp_path / "imdb" / "train.csv", [{"text": f"{k}", "label": f"class {k % 3}"} for k in range(9)])
    assert load("./imdb").classes == ("class 0", "class 1", "class 2")
    assert load(tmp_path / "imdb" / "train.csv").name == "train"
    assert load("reviews", seed=4).train[0] != load("reviews").train[0]
    assert load("reviews", aspect="food").name == "reviews"
    with pytest.raises(DataError, match=r"imdbb is neither a file.*did you mean 'imdb'\?.*reviews, pairs, sst, agnews"):
        load("imdbb")


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("reviews", {"data_dir": "x"}, "reviews cannot be loaded with the option data_dir; leave it out"),
        ("imdb", {"classes": ["a"]}, "imdb cannot be loaded with the option classes"),
        (".", {"aspect": "food"}, "users' own files cannot be loaded with the option aspect"),
        ("imdb", {"aspect": "food"}, "imdb has no aspects"),
        (
            "beer",
            {"aspect": "food"},
            "beer has the aspects appearance, aroma, palate, taste, overall, got 'food'",
        ),
        ("movies", {}, "movies is not on the Hub; pass data_dir"),
        (
            "beer",
            {"data_dir": "nowhere"},
            "nowhere: there is no such folder; pass data_dir with a local copy of beer",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(source, options, message):
    with pytest.raises(ValueError, match=message):
        load(source, **options)


def test_unknown_dataset_is_guessed():
    with pytest.raises(ValueError, match=r"no dataset 'hotel'; did you mean 'hotels'\?"):
        load_dataset("hotel")
