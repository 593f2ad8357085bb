import csv
import gzip
import json

import pytest

from rationalizer.data import Columns, DataError, load, read_corpus, read_examples
from rationalizer.data.labels import Labels

ROWS = [
    {"text": 'A "warm", funny film.', "label": "pos"},
    {"text": "Dull;\ntwo lines, no plot", "label": "neg"},
    {"text": "Ünïcode \u2028 works", "label": "pos"},
    {"text": "Awful<br />really", "label": "neg"},
]


def write(path, rows):
    """Rows as a file of the kind that the path's ending names."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if path.suffix == ".parquet":
        from pyarrow import Table
        from pyarrow.parquet import write_table

        write_table(Table.from_pylist(rows), path)
        return path
    opener = gzip.open if path.suffix == ".gz" else open
    kind = path.suffixes[0]
    with opener(path, "wt", encoding="utf-8", newline="") as file:
        if kind in (".csv", ".tsv"):
            writer = csv.DictWriter(file, names, delimiter="," if kind == ".csv" else "\t")
            writer.writeheader()
            for row in rows:
                writer.writerow(
                    {k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items() if v is not None}
                )
        elif kind == ".json":
            json.dump(rows, file)
        else:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return path


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl", "x.json", "x.parquet", "x.csv.gz", "x.jsonl.gz"])
def test_all_formats_give_the_same_corpus(tmp_path, name):
    corpus = read_corpus(write(tmp_path / name, ROWS * 5), seed=1)
    assert corpus.name == "x"
    assert (corpus.task, corpus.classes) == ("classification", ("neg", "pos"))
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (18, 2, 0)
    by_text = {example.text: example for example in [*corpus.train, *corpus.dev]}
    assert by_text.keys() == {row["text"] for row in ROWS}
    assert by_text[ROWS[1]["text"]].label == 0
    assert by_text[ROWS[3]["text"]].tokens == ("Awful", "really")


def test_byte_order_mark_is_ignored(tmp_path):
    (tmp_path / "x.csv").write_bytes("text,label\na,0\nb,1\nc,0\n".encode("utf-8-sig"))
    assert read_corpus(tmp_path / "x.csv").classes == ("0", "1")
    (tmp_path / "x.jsonl").write_bytes(
        '{"text": "a", "label": 0}\n\n{"text": "b", "label": 1}\n{"text": "c", "label": 0}'.encode("utf-8-sig")
    )
    assert read_corpus(tmp_path / "x.jsonl").classes == ("0", "1")


def test_long_csv_fields(tmp_path):
    long = "word " * 60_000
    corpus = read_corpus(write(tmp_path / "x.csv", [{"text": long, "label": "a"}] * 2 + [{"text": "b", "label": "b"}]))
    assert max(len(example.tokens) for example in corpus.train) == 60_000


@pytest.mark.parametrize("validation", ["dev", "val", "valid", "validation", "heldout"])
def test_folder_with_splits(tmp_path, validation):
    write(tmp_path / "train_subset.csv", ROWS)
    write(tmp_path / f"{validation}.jsonl", ROWS[:2])
    write(tmp_path / "test994_small.parquet", ROWS[:3])
    (tmp_path / "README.md").write_text("not data")
    corpus = load(tmp_path)
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (4, 2, 3)


def test_shards_form_one_split_and_exact_names_take_precedence(tmp_path):
    write(tmp_path / "train-00000-of-00002.jsonl", ROWS[:2])
    write(tmp_path / "train-00001-of-00002.jsonl", ROWS[2:])
    write(tmp_path / "dev.jsonl", ROWS[:1])
    write(tmp_path / "dev_hard.jsonl", ROWS)
    corpus = read_corpus(tmp_path)
    assert [len(corpus.train), len(corpus.dev)] == [4, 1]


def test_two_files_for_one_split_raise(tmp_path):
    write(tmp_path / "train_a.csv", ROWS)
    write(tmp_path / "train_b.csv", ROWS)
    with pytest.raises(DataError, match=r"train_a.csv and train_b.csv could all be the train split; leave one"):
        read_corpus(tmp_path)


def test_folder_without_train_error_lists_its_files(tmp_path):
    write(tmp_path / "trainer.csv", ROWS)
    with pytest.raises(DataError, match=r"no train file.*holds trainer.csv"):
        read_corpus(tmp_path)


@pytest.mark.parametrize(
    ("labels", "task", "classes", "first"),
    [
        (["b", "a", "b", "a"], "classification", ("a", "b"), 1),
        (["10", "9", "10", "9"], "classification", ("9", "10"), 1),
        (["1", "2+", "1", "2+"], "classification", ("1", "2+"), 0),
        (["0.5", "1", "0.25", "-3e-1"], "regression", (), 0.5),
        (["1.0", "0.0", "1", "0.0"], "classification", ("0", "1"), 1),
        (["1.0", "1.5", "2.0", "1.0"], "regression", (), 1.0),
        (["True", "False", "True", "False"], "classification", ("False", "True"), 1),
    ],
)
def test_task_is_inferred_from_labels(tmp_path, labels, task, classes, first):
    rows = [{"text": f"t{k}", "label": label} for k, label in enumerate(labels)]
    corpus = read_corpus(write(tmp_path / "x.csv", rows))
    assert (corpus.task, corpus.classes) == (task, classes)
    found = next(e.label for e in [*corpus.train, *corpus.dev] if e.text == "t0")
    assert found == first
    assert isinstance(found, float) == (task == "regression")


def test_explicit_task_and_classes(tmp_path):
    path = write(tmp_path / "x.jsonl", [{"text": f"t{k}", "label": k % 2} for k in range(8)])
    assert read_corpus(path, task="regression").task == "regression"
    corpus = read_corpus(path, classes=["no", "yes"])
    assert corpus.classes == ("no", "yes")
    assert {e.text: e.label for e in corpus.train}["t1"] == 1
    floats = write(tmp_path / "y.parquet", [{"text": f"t{k}", "label": float(k % 2)} for k in range(8)])
    assert read_corpus(floats).classes == ("0", "1")
    assert read_corpus(floats, task="regression").task == "regression"


def test_whole_floats_beside_a_missing_label_are_classes(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("text,label\n" + "".join(f"t{k},{k % 2}.0\n" for k in range(8)) + "t8,\n")
    corpus = read_corpus(path, skip_bad=True)
    assert (corpus.task, corpus.classes, len(corpus.skipped)) == ("classification", ("0", "1"), 1)
    assert {e.text: e.label for e in [*corpus.train, *corpus.dev]}["t1"] == 1


RATIONALES = {
    "rationale_spans": [[0, 1], [2, 4]],
    "rationale_mask": [1, 0, 1, 1, 0],
    "rationale_chars": [[0, 3], [9, 15]],
}


@pytest.mark.parametrize("column", RATIONALES)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_annotation_formats(tmp_path, column, ending):
    rows = [
        {"text": "Good but slow food .", "label": "a", column: RATIONALES[column]},
        {"text": "b", "label": "b"},
    ]
    rows[1][column] = None
    write(tmp_path / f"train.{ending}", rows)
    write(tmp_path / f"dev.{ending}", rows)
    dev = read_corpus(tmp_path).dev
    assert dev[0].annotation == (True, False, True, True, False)
    assert dev[1].annotation is None


def test_mask_with_spaces_and_empty_annotation(tmp_path):
    rows = [
        {"text": "a b", "label": "a", "rationale_mask": "0 1"},
        {"text": "c d", "label": "b", "rationale_mask": ""},
    ]
    examples = read_examples(write(tmp_path / "x.csv", rows))
    assert [e.annotation for e in examples] == [(False, True), None]
    assert examples[0].label is None
    rows = [{"text": "a b", "rationale_spans": []}]
    assert read_examples(write(tmp_path / "y.jsonl", rows))[0].annotation == (False, False)


@pytest.mark.parametrize(
    ("span", "flags"),
    [
        ([0, 4], (True, False, False)),
        ([0, 5], (True, False, False)),
        ([0, 6], (True, True, False)),
        ([3, 5], (True, False, False)),
        ([4, 5], (False, False, False)),
        ([7, 10], (False, True, True)),
    ],
)
def test_character_spans_mark_overlapping_tokens(tmp_path, span, flags):
    path = write(tmp_path / "x.jsonl", [{"text": "Good but slow", "rationale_chars": [span]}])
    assert read_examples(path)[0].annotation == flags


def test_token_formats(tmp_path):
    listed = [{"tokens": ["It", "'s", "good"], "label": "a"}, {"tokens": ["no"], "label": "b"}]
    joined = [{"tokens": "It 's good", "label": "a"}, {"tokens": "no", "label": "b"}]
    both = [{"text": "It's good", **listed[0]}, {"text": "no", **listed[1]}]
    cases = [
        ("a.parquet", listed),
        ("a.jsonl", listed),
        ("a.csv", listed),
        ("b.csv", joined),
        ("c.jsonl", both),
    ]
    for name, rows in cases:
        example = read_examples(write(tmp_path / name, rows))[0]
        assert example.tokens == ("It", "'s", "good")
        assert example.text == ("It's good" if rows is both else "It 's good")
        assert [example.text[a:b] for a, b in example.offsets] == ["It", "'s", "good"]


def test_tokenized_text_is_split_at_spaces(tmp_path):
    path = write(tmp_path / "x.csv", [{"text": "it 's well-made.", "label": "a"}, {"text": "b", "label": "b"}])
    assert read_examples(path, rule="spaces")[0].tokens == ("it", "'s", "well-made.")
    assert read_examples(path)[0].tokens == ("it", "'s", "well-made", ".")


def test_explicit_column_names(tmp_path):
    rows = [{"review": "a b", "stars": k, "why": [[0, 1]], "tokens": "other"} for k in (1, 5, 1, 5)]
    columns = Columns(text="review", label="stars", tokens=None, rationale_chars="why")
    corpus = read_corpus(write(tmp_path / "x.jsonl", rows), columns=columns)
    assert corpus.classes == ("1", "5")
    assert corpus.train[0].annotation == (True, False)


def test_evaluation_files_use_the_classes_of_the_model(tmp_path):
    path = write(tmp_path / "x.csv", [{"text": "a", "label": "pos"}])
    assert read_examples(path, labels=Labels("classification", ("neg", "pos")))[0].label == 1
    with pytest.raises(DataError, match=r"x.csv, row 1: the label 'pos' is unknown; the classes are bad, good"):
        read_examples(path, labels=Labels("classification", ("bad", "good")))


def test_dev_split_is_seeded_and_stratified(tmp_path):
    rows = [{"text": f"t{k}", "label": "rare" if k % 10 == 0 else "common"} for k in range(200)]
    path = write(tmp_path / "x.csv", rows)
    first, again, other = (read_corpus(path, seed=seed, dev_fraction=0.15) for seed in (0, 0, 1))
    assert first == again
    assert first.dev != other.dev
    assert len(first.dev) == 30
    assert sum(e.label == first.classes.index("rare") for e in first.dev) == 3
    assert {e.text for e in first.train} | {e.text for e in first.dev} == {row["text"] for row in rows}


def test_class_with_one_example_stays_in_train(tmp_path):
    rows = [{"text": f"t{k}", "label": "once" if k == 3 else "often"} for k in range(10)]
    corpus = read_corpus(write(tmp_path / "x.csv", rows), dev_fraction=0.5)
    assert sum(e.label == corpus.classes.index("once") for e in corpus.train) == 1
    with pytest.raises(DataError, match="every class has a single example"):
        read_corpus(write(tmp_path / "y.csv", rows[3:5]))
    with pytest.raises(DataError, match="1 example is too few"):
        read_corpus(write(tmp_path / "z.csv", rows[:1]))


def test_all_splits_use_the_split_rule_of_train(tmp_path):
    """Tokens in train, texts in dev: a model reads both by one rule."""
    write(tmp_path / "train.jsonl", [{"tokens": ["a", "film."], "label": k} for k in (0, 1, 0, 1)])
    write(tmp_path / "dev.jsonl", [{"text": "good, really.", "label": 1}])
    corpus = read_corpus(tmp_path)
    assert corpus.rule == "spaces"
    assert corpus.dev[0].tokens == ("good,", "really.")
    assert read_corpus(tmp_path, rule="words").dev[0].tokens == ("good", ",", "really", ".")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_sentence_lengths_column(tmp_path, ending):
    lengths = [2, 0, 1]
    given = json.dumps(lengths) if ending == "csv" else lengths
    row = {"tokens": "so dull long", "label": "neg", "sentence_lengths": given}
    examples = read_examples(write(tmp_path / f"x.{ending}", [row]))
    assert examples[0].sentence_lengths == (2, 1)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([2, 2], "row 1: the sentences have 4 tokens, but the text has 3"),
        ([-1, 4], r"numbers of tokens such as \[12, 7\]"),
        ([1.5, 1.5], "numbers of tokens"),
        ({"a": 1}, "sentence lengths must be a list"),
    ],
)
def test_invalid_sentence_lengths_raise(tmp_path, lengths, message):
    path = write(tmp_path / "x.jsonl", [{"tokens": "so dull long", "label": "neg", "sentence_lengths": lengths}])
    with pytest.raises(DataError, match=message):
        read_examples(path)
