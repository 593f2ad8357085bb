"""SNLI, MNLI and HANS, in small files of every form they come in."""

from collections import Counter
from dataclasses import replace

import pytest

from rationalizer.data import Columns, DataError, load
from rationalizer.data.dataset_registry import DATASETS
from rationalizer.paper.datasets.hans import with_hans
from tests.data.test_corpus_files import write

LABELS = ("entailment", "neutral", "contradiction")


def release(path, rows):
    """Rows as the authors release them, between tabs: a quotation mark is a character like any other."""
    names = list(rows[0])
    lines = ["\t".join(names), *("\t".join(str(row[name]) for name in names) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def released(count, **more):
    return [
        {"gold_label": LABELS[k % 3], "sentence1_parse": "(ROOT", "sentence1": f'He said "{k}', "sentence2": f"No {k}."}
        | more
        for k in range(count)
    ]


def numbered(count, **more):
    return [{"premise": f'He said "{k}', "hypothesis": f"No {k}.", "label": k % 3} | more for k in range(count)]


def sizes(corpus):
    return [len(split) for split in (corpus.train, corpus.dev, corpus.test)]


@pytest.mark.parametrize("ending", ["jsonl", "txt"])
def test_snli_original_files(tmp_path, ending):
    save = write if ending == "jsonl" else release
    for split, count in (("train", 6), ("dev", 3), ("test", 3)):
        save(tmp_path / f"snli_1.0_{split}.{ending}", [*released(count), released(1)[0] | {"gold_label": "-"}])
    (tmp_path / "README.txt").write_text("not data")
    corpus = load("snli", data_dir=tmp_path)
    assert (corpus.name, corpus.classes, str(corpus.budget), corpus.pairs) == ("snli", LABELS, "4", True)
    assert sizes(corpus) == [6, 3, 3]
    assert corpus.dropped == {"train": 1, "dev": 1, "test": 1}
    assert [pair.label for pair in corpus.train] == [0, 1, 2, 0, 1, 2]
    assert corpus.train[1].premise.tokens == ("He", "said", '"', "1")
    assert corpus.train[1].hypothesis.tokens == ("No", "1", ".")


def test_only_one_of_two_copies_is_read(tmp_path):
    write(tmp_path / "snli_1.0_train.jsonl", released(30))
    release(tmp_path / "snli_1.0_train.txt", released(60))
    assert sizes(load("snli", data_dir=tmp_path)) == [27, 3, 0]


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_snli_with_numeric_labels(tmp_path, kind):
    write(tmp_path / f"train.{kind}", [*numbered(6), *numbered(2, label=-1)])
    write(tmp_path / f"validation.{kind}", numbered(3))
    corpus = load("snli", data_dir=tmp_path)
    assert sizes(corpus) == [6, 3, 0]
    assert corpus.dropped == {"train": 2}


def test_texts_and_tokens_use_the_same_split_rule(tmp_path):
    tokens = {"premise_tokens": "He said `` do n't ''", "hypothesis_tokens": ["A", "T-shirt", "."]}
    write(tmp_path / "train.jsonl", [{"premise": 'He said "don\'t"', "hypothesis": "A T-shirt.", "label": 0} | tokens])
    write(tmp_path / "dev.jsonl", [tokens | {"label": 0}])
    corpus = load("snli", data_dir=tmp_path)
    for pair in (corpus.train[0], corpus.dev[0]):
        assert pair.premise.tokens[:3] == ("He", "said", '"')
        assert "don't" in pair.premise.tokens
        assert pair.hypothesis.tokens == ("A", "T-shirt", ".")


@pytest.mark.parametrize(
    ("train", "dev"),
    [
        ("multinli_1.0_train.jsonl", "multinli_1.0_dev_matched.jsonl"),
        ("multinli_1.0_train.txt", "multinli_1.0_dev_matched.txt"),
        ("train.tsv", "dev_matched.tsv"),
        ("train.parquet", "validation_matched.parquet"),
        ("train-00000-of-00001.parquet", "validation_matched-00000-of-00001.parquet"),
        ("train.jsonl", "dev.jsonl"),
    ],
)
def test_mnli_splits_its_matched_dev_set_in_two(tmp_path, train, dev):
    def save(path, count):
        if path.suffix in (".txt", ".tsv"):
            release(path, released(count))
        else:
            write(path, released(count) if path.suffix == ".jsonl" else numbered(count))

    save(tmp_path / train, 9)
    save(tmp_path / dev, 60)
    save(tmp_path / dev.replace("dev", "dev_mis", 1).replace("matched", "mismatched").replace("mis_mis", "mis"), 30)
    release(tmp_path / "test_matched.tsv", [{"index": 0, "sentence1": "a", "sentence2": "b"}])
    corpus = load("mnli", data_dir=tmp_path)
    assert sizes(corpus) == [9, 30, 30]
    assert [Counter(pair.label for pair in split) for split in (corpus.dev, corpus.test)] == [{0: 10, 1: 10, 2: 10}] * 2
    texts = [{pair.hypothesis.text for pair in split} for split in (corpus.dev, corpus.test)]
    assert texts[0] | texts[1] == {f"No {k}." for k in range(60)}
    assert load("mnli", data_dir=tmp_path) == corpus
    assert load("mnli", data_dir=tmp_path, seed=1).dev != corpus.dev


def test_mnli_uses_given_test_set_and_requires_train(tmp_path):
    write(tmp_path / "dev_matched.jsonl", released(6))
    write(tmp_path / "dev_mismatched.jsonl", released(6))
    with pytest.raises(DataError, match=r"train.*dev_matched.jsonl"):
        load("mnli", data_dir=tmp_path)
    write(tmp_path / "train.jsonl", released(9))
    write(tmp_path / "test.jsonl", released(3))
    assert sizes(load("mnli", data_dir=tmp_path)) == [9, 6, 3]


def hans(labels):
    """A pair for each subcase; `labels` are those of the entailed and of the others."""
    subcases = {"le_relative_clause": "lexical_overlap", "ln_subject/object_swap": "lexical_overlap"}
    subcases |= {"se_conjunction": "subsequence", "cn_embedded_under_if": "constituent"}
    return [
        {"premise": f"The {k} ran .", "hypothesis": "They ran .", "label": labels[name[1] == "n"]}
        | {"heuristic": heuristic, "subcase": name}
        for name, heuristic in subcases.items()
        for k in range(5)
    ]


def check_hans(corpus):
    assert corpus.classes == ("entailment", "non-entailment")
    assert sizes(corpus) == [18, 2, 20]
    assert Counter((pair.group, corpus.classes[pair.label]) for pair in corpus.test) == {
        ("lexical_overlap", "entailment"): 5,
        ("lexical_overlap", "non-entailment"): 5,
        ("subsequence", "entailment"): 5,
        ("constituent", "non-entailment"): 5,
    }


@pytest.mark.parametrize("labels", [(1, 0), (0, 1), ("1", "0"), ("entailment", "non-entailment")])
@pytest.mark.parametrize("test", ["test", "validation"])
def test_hans_label_numberings(tmp_path, labels, test):
    write(tmp_path / "train.parquet", hans(labels))
    write(tmp_path / f"{test}.parquet", hans(labels))
    corpus = load("hans", data_dir=tmp_path)
    check_hans(corpus)
    by_subcase = load("hans", data_dir=tmp_path, columns=Columns(group="subcase"))
    assert by_subcase.test[0].group == "le_relative_clause"


def test_hans_original_files(tmp_path):
    names = {"label": "gold_label", "premise": "sentence1", "hypothesis": "sentence2"}
    rows = [
        {names.get(key, key): value for key, value in row.items()} for row in hans(("entailment", "non-entailment"))
    ]
    for name in ("heuristics_train_set.txt", "heuristics_evaluation_set.txt"):
        release(tmp_path / name, rows)
    check_hans(load("hans", data_dir=tmp_path))


def test_ambiguous_hans_labels_raise(tmp_path):
    rows = hans((1, 0))
    path = write(tmp_path / "train.jsonl", [*rows[:3], rows[3] | {"label": 0}, *rows[15:]])
    with pytest.raises(DataError, match=r"row 5: .*label 0"):
        load("hans", data_dir=tmp_path)
    write(path, [{name: value for name, value in row.items() if name != "subcase"} for row in rows])
    with pytest.raises(DataError, match=r"row 1: .*subcase None"):
        load("hans", data_dir=tmp_path)


@pytest.mark.parametrize("ending", ["jsonl", "tsv"])
def test_invalid_rows_and_columns_raise(tmp_path, ending):
    save = write if ending == "jsonl" else release
    path = tmp_path / f"train.{ending}"
    save(path, [*released(3), released(1)[0] | {"sentence2": ""}])
    with pytest.raises(DataError, match=rf"train.{ending}, row 4: the hypothesis"):
        load("snli", data_dir=tmp_path)
    save(path, [{"sentence1": "a", "gold_label": "neutral"}])
    with pytest.raises(DataError, match=rf"train.{ending}: .*'hypothesis'"):
        load("snli", data_dir=tmp_path)
    save(path, [*released(1), released(1)[0] | {"gold_label": "maybe"}])
    with pytest.raises(DataError, match=r"row 2: .*'maybe'"):
        load("snli", data_dir=tmp_path)
    release(tmp_path / "train.tsv", released(2))
    (tmp_path / "train.jsonl").unlink(missing_ok=True)
    with (tmp_path / "train.tsv").open("a") as file:
        file.write("neutral\tonly two\n")
    with pytest.raises(DataError, match=r"train.tsv, row 3: .*header"):
        load("snli", data_dir=tmp_path)


def test_augmentation_with_hans(tmp_path):
    (tmp_path / "snli").mkdir()
    (tmp_path / "hans").mkdir()
    write(tmp_path / "snli" / "train.jsonl", released(9))
    write(tmp_path / "snli" / "dev.jsonl", released(3))
    write(tmp_path / "hans" / "train.jsonl", hans((1, 0)))
    snli, two = (load(name, data_dir=tmp_path / name) for name in ("snli", "hans"))
    corpus = with_hans(snli, two)
    assert (corpus.name, corpus.classes, sizes(corpus)) == ("snli+hans", LABELS, [29, 3, 0])
    assert Counter(LABELS[pair.label] for pair in corpus.train[9:]) == {"entailment": 10, "neutral": 10}
    assert all(
        (pair.label == 0) == (pair.group == "subsequence") for pair in corpus.train[9:] if "lex" not in pair.group
    )
    sorted_by_name = replace(snli, classes=tuple(sorted(LABELS)), train=[replace(snli.train[0], label=1)])
    added = with_hans(sorted_by_name, two)
    assert Counter(added.classes[pair.label] for pair in added.train[1:]) == {"entailment": 10, "neutral": 10}
    with pytest.raises(ValueError, match=r"HANS .*contradiction"):
        with_hans(two, snli)


@pytest.fixture
def offline(monkeypatch, tmp_path):
    pytest.importorskip("datasets", reason="the extra rationalizer[hub] is not installed")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)

    def folder(name):
        path = tmp_path / name
        path.mkdir()
        monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], hub=str(path)))
        return path

    return folder


def test_mnli_from_the_hub_uses_the_matched_part(offline):
    folder = offline("mnli")
    write(folder / "train-00000-of-00001.parquet", numbered(9, promptID=1))
    write(folder / "validation_matched-00000-of-00001.parquet", numbered(12, promptID=1))
    write(folder / "validation_mismatched-00000-of-00001.parquet", numbered(60, promptID=1))
    splits = ("train", "validation_matched", "validation_mismatched")
    files = "".join(f"  - split: {split}\n    path: {split}-*\n" for split in splits)
    (folder / "README.md").write_text(f"---\nconfigs:\n- config_name: default\n  data_files:\n{files}---\n")
    assert sizes(load("mnli")) == [9, 6, 6]


def test_hans_from_the_hub_uses_the_converted_copy(offline, monkeypatch):
    import datasets

    folder, load_dataset = offline("hans"), datasets.load_dataset
    write(folder / "train-00000-of-00001.parquet", hans((0, 1)))
    write(folder / "validation-00000-of-00001.parquet", hans((0, 1)))

    def only_converted(identifier, revision=None):
        if revision != "refs/convert/parquet":
            raise RuntimeError("Dataset scripts are no longer supported, but found hans.py")
        return load_dataset(identifier)

    monkeypatch.setattr(datasets, "load_dataset", only_converted)
    check_hans(load("hans"))
