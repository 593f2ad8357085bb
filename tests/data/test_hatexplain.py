import gzip
import json

import pytest

from rationalizer.data import Columns, DataError, load, load_dataset
from rationalizer.metrics import token_scores
from tests.data.test_corpus_files import write

MAJORITY = Columns(rationale_mask="rationale_majority")
TOKENS = ["you", "awful", "rude", "people"]


def post(labels, annotations=(), tokens=TOKENS):
    annotators = [{"label": label, "annotator_id": k, "target": ["None"]} for k, label in enumerate(labels)]
    return {"post_id": "?", "annotators": annotators, "rationales": list(annotations), "post_tokens": tokens}


POSTS = {
    "a": post(["offensive", "offensive", "hatespeech"], [[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 1, 1]]),
    "b": post(["normal", "normal", "offensive"]),
    "c": post(["hatespeech", "hatespeech", "normal"], [[1, 0, 0, 0], [0, 1, 0, 0]]),
    "d": post(["normal", "offensive", "hatespeech"], [[0, 1, 0, 0]]),
    "e": post(["offensive", "offensive", "offensive"], [[0, 1, 0, 0], [0, 0, 1, 0, 0]]),
    "f": post(["normal", "offensive"]),
}
DIVISIONS = {"train": ["c", "a", "f"], "val": ["b"], "test": ["e"]}


def originals(folder, posts=POSTS, divisions=DIVISIONS, packed=False):
    for name, content in (("dataset.json", posts), ("post_id_divisions.json", divisions)):
        data = json.dumps(content).encode()
        (folder / f"{name}.gz" if packed else folder / name).write_bytes(gzip.compress(data) if packed else data)
    return folder


@pytest.mark.parametrize("packed", [False, True])
def test_original_files(tmp_path, packed):
    corpus = load("hatexplain", data_dir=originals(tmp_path, packed=packed))
    assert (corpus.name, corpus.classes) == ("hatexplain", ("normal", "offensive", "hatespeech"))
    assert (str(corpus.budget), corpus.rule) == ("30%", "spaces")
    labels = [[corpus.classes[e.label] for e in split] for split in (corpus.train, corpus.dev, corpus.test)]
    assert labels == [["hatespeech", "offensive"], ["normal"], ["offensive"]]
    assert corpus.train[0].tokens == tuple(TOKENS)
    # Post f of train has no majority, and d, as in the release, is in no division for the same reason.
    assert corpus.dropped == {"train": 1, "no split": 1}


def test_two_classes(tmp_path):
    corpus = load("hatexplain-binary", data_dir=originals(tmp_path))
    assert corpus.classes == ("normal", "toxic")
    assert [e.label for e in (*corpus.train, *corpus.dev, *corpus.test)] == [1, 1, 0, 1]
    assert corpus.dropped == {"train": 1, "no split": 1}


def test_annotation_by_any_or_by_majority(tmp_path):
    originals(tmp_path)
    union = load("hatexplain", data_dir=tmp_path)
    assert [e.annotation for e in union.train] == [(True, True, False, False), (False, True, True, True)]
    majority = load("hatexplain", data_dir=tmp_path, columns=MAJORITY)
    assert [e.annotation for e in majority.train] == [None, (False, False, True, False)]  # two who differ: no majority
    # An annotation that does not fit its post is left out, the other one stays.
    assert union.test[0].annotation == majority.test[0].annotation == (False, True, False, False)


def test_normal_posts_have_no_annotation(tmp_path):
    corpus = load("hatexplain", data_dir=originals(tmp_path))
    examples = [*corpus.train, *corpus.dev]
    assert [e.annotation is None for e in examples] == [False, False, True]
    selected = [[1, 1, 0, 0], [0, 1, 1, 1], [1, 0, 0, 0]]
    scores = token_scores(selected, [e.annotation for e in examples], convention="eraser")
    assert (scores.f1, scores.documents, scores.skipped) == (1.0, 2, 1)


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_tables(tmp_path, ending):
    rows = [
        {
            "tokens": TOKENS,
            "label": "offensive",
            "rationale_union": [0, 1, 1, 0],
            "rationale_mean": [0, 0.5, 0.6667, 0],
        },
        {"tokens": TOKENS, "label": "normal", "rationale_union": [0, 0, 0, 0], "rationale_mean": [0.0, 0.0, 0.0, 0.0]},
        {"tokens": TOKENS, "label": "undecided", "rationale_union": [0, 0, 0, 1], "rationale_mean": [0.0, 0.0, 0.0, 1]},
    ]
    for split in ("train", "dev"):
        write(tmp_path / f"{split}.{ending}", rows)
    corpus = load_dataset("hatexplain", tmp_path)
    assert [e.annotation for e in corpus.dev] == [(False, True, True, False), None]
    assert corpus.dropped == {"train": 1, "dev": 1}
    named = load_dataset("hatexplain", tmp_path, columns=Columns(rationale_mask="rationale_union"))
    assert named.dev == corpus.dev
    majority = load_dataset("hatexplain", tmp_path, columns=MAJORITY)
    assert [e.annotation for e in majority.dev] == [(False, False, True, False), None]


def test_tables_without_annotations_or_with_masks(tmp_path):
    write(tmp_path / "train.jsonl", [{"text": "so rude", "label": k % 3} for k in range(20)])
    assert load_dataset("hatexplain", tmp_path).train[0].annotation is None
    with pytest.raises(DataError, match=r"'rationale_majority'"):
        load_dataset("hatexplain", tmp_path, columns=MAJORITY)
    row = {"text": "so rude", "label": 1, "rationale_mask": [0, 1], "rationale_union": [1, 1]}
    write(tmp_path / "train.jsonl", [row] * 20)
    assert load_dataset("hatexplain", tmp_path).train[0].annotation == (False, True)


@pytest.mark.parametrize("shares", [[0.5, 2], [0.5, "much"], [None, 1], "half"])
def test_invalid_agreement_raises(tmp_path, shares):
    write(tmp_path / "train.jsonl", [{"text": "so rude", "label": 1, "rationale_mean": shares}])
    with pytest.raises(DataError, match=r"train.jsonl, row 1: .*rationale_mean"):
        load_dataset("hatexplain", tmp_path)


@pytest.mark.parametrize(
    ("posts", "divisions", "message"),
    [
        ({"x": {"post_tokens": ["a"]}}, {"train": ["x"]}, r"dataset.json, post x: expected .*'annotators'"),
        ({"x": post(["normal"]) | {"rationales": [["a"] * 4]}}, {"train": ["x"]}, r"post x: expected .*'rationales'"),
        (
            {"x": post(["offensive"], [[1]])},
            {"train": ["x"]},
            r"post x: .*4 tokens",
        ),
        ({"x": post(["mild"])}, {"train": ["x"]}, r"dataset.json, row 1: .*'mild'"),
        (
            {"w": post(["normal"]), "x": post(["normal"], tokens=[])},
            {"train": ["x"]},
            r"dataset.json, row 2: .*no token",
        ),
        (POSTS, {"train": ["z"]}, r"divisions.json: .*'z'"),
        (POSTS, {"val": ["a"]}, r"divisions.json: .*'train'"),
        ([], DIVISIONS, r"dataset.json: .*JSON object"),
    ],
)
def test_invalid_original_file_raises(tmp_path, posts, divisions, message):
    with pytest.raises(DataError, match=message):
        load("hatexplain", data_dir=originals(tmp_path, posts, divisions))


@pytest.mark.parametrize("missing", ["dataset.json", "post_id_divisions.json"])
def test_missing_file_raises(tmp_path, missing):
    (originals(tmp_path) / missing).unlink()
    with pytest.raises(DataError, match=rf"{missing} is missing"):
        load("hatexplain", data_dir=tmp_path)
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(DataError, match=r"original dataset.json"):
        load("hatexplain", data_dir=tmp_path)


def test_damaged_file_raises(tmp_path):
    (originals(tmp_path) / "dataset.json").write_text('{"a": ')
    with pytest.raises(DataError, match=r"dataset.json: .*JSON"):
        load("hatexplain", data_dir=tmp_path)
