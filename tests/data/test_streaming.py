"""Files that are not read into memory: the same examples, the same errors, and a cache that is right or not used."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from rationalizer.data import Columns, DataError, DiskExamples, load, read_corpus, stream_corpus
from rationalizer.data import streaming as module
from rationalizer.data.disk_examples import labels, lengths, word_counts
from rationalizer.data.splitting import MOST, dev_mask
from rationalizer.data.streamed_labels import LabelsBuilder
from tests.data.test_corpus_files import write

TEXTS = [
    "Warm, funny film!",
    "Dull;\ntwo lines",
    "Ünïcode \u2028 works",
    "Awful<br />really",
    "half \ud83d a pair",
    "So\nso",
]
NAMED = [{"text": f"{TEXTS[k % 6]} {k}", "label": ("no", "yes", "maybe")[k % 3]} for k in range(40)]
MARKED = [{"text": f"one two {k}", "rationale_mask": [0, 1, k % 2], "label": k % 2} for k in range(20)]
MARKED[3]["rationale_mask"] = None
SENTENCES = [{"tokens": ["a", "b", f"{k}"], "sentence_lengths": [2, 1], "label": "x" * (1 + k % 2)} for k in range(20)]
PAIRS = [
    {
        "premise": f"A man {k}",
        "hypothesis": "Some body",
        "label": k % 2,
        "alignment": [[0, 0], [k % 2, 1]] if k % 3 else None,
        "group": "odd" if k % 2 else None,
    }
    for k in range(20)
]
for row in PAIRS[5:9]:
    row |= {"premise_chars": [[2, 5]], "hypothesis_chars": [[0, 4]]}
PEOPLE = [{"text": f"one two {k}", "rationale_masks": [[0, 1, 0], [k % 2, 0, 0]], "label": k % 2} for k in range(20)]
BLANK_TOKENS = [
    {"tokens": ["", "one", "\xa0", str(k)], "rationale_mask": [0, 1, 0, 0], "label": k % 2} for k in range(20)
]
VALUES = [{"text": f"word {k}", "label": 3 if k == 7 else k / 8} for k in range(20)]
WHOLE_VALUES = [{"text": f"word {k}", "label": float(k // 4)} for k in range(20)]


def both(source, cache, **given):
    return read_corpus(source, **given), stream_corpus(source, **given, cache_dir=cache)


def same(one, other):
    assert isinstance(other.train, DiskExamples)
    for name in ("name", "task", "classes", "budget", "dropped", "rule", "columns", "skipped", "pairs", "digest"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("train", "dev", "test"):
        ours, theirs = getattr(one, name), getattr(other, name)
        assert list(ours) == list(theirs), name
        assert [type(a.label) for a in ours] == [type(b.label) for b in theirs]
        assert word_counts(ours) == word_counts(theirs)
        assert lengths(ours).tolist() == lengths(theirs).tolist()
        assert labels(ours).tolist() == labels(theirs).tolist()
    assert one.blank_tokens_note() == other.blank_tokens_note()
    return True


@pytest.mark.parametrize(
    ("name", "rows", "given"),
    [
        ("x.parquet", [row for row in NAMED if "\ud83d" not in row["text"]], {}),
        ("x.csv.gz", [row for row in NAMED if "\ud83d" not in row["text"]], {"seed": 3, "dev_fraction": 0.3}),
        ("x.jsonl", MARKED, {}),
        ("x.parquet", SENTENCES, {}),
        ("x.jsonl", PAIRS, {}),
        ("x.parquet", PEOPLE, {}),
        ("x.jsonl", VALUES, {}),
        ("x.jsonl", BLANK_TOKENS, {}),
        ("x.parquet", WHOLE_VALUES, {}),
        ("x.parquet", WHOLE_VALUES, {"task": "regression"}),
        ("x.csv", [{"t": row["text"], "label": 1} for row in VALUES], {"columns": Columns(text="t"), "rule": "spaces"}),
    ],
)
def test_streamed_corpus_equals_corpus_in_memory(tmp_path, name, rows, given):
    path = write(tmp_path / name, rows)
    assert same(*both(path, tmp_path / "cache", **given))


def test_folders_with_splits_and_shards(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    write(folder / "train-00000-of-00002.parquet", MARKED[:9])
    write(folder / "train-00001-of-00002.parquet", MARKED[9:])
    write(folder / "validation.jsonl", MARKED[:4])
    write(folder / "test.csv", MARKED[4:7])
    assert same(*both(folder, tmp_path / "cache"))


def test_lone_surrogate_round_trip(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(
        '{"text": "half \\ud83d a pair", "label": 0}\n{"text": "b", "label": 1}\n{"text": "c", "label": 0}\n'
    )
    assert same(*both(path, tmp_path / "cache"))


BAD = {
    "an empty text": [*MARKED[:5], {"text": " ", "label": 1}],
    "several": [*MARKED[:5], {"text": "a", "label": None}, {"text": "b", "label": [1, 2]}, {"text": "", "label": 0}],
    "names and values": [*VALUES, {"text": "a", "label": "good"}],
    "no numbers but one": [{"text": "a", "label": "x"}, {"text": "b", "label": 0.5}, {"text": "b", "label": "x"}],
    "cases": [{"text": "a", "label": "Good"}, {"text": "b", "label": "good"}],
    "ids": [{"text": f"a {k}", "label": k} for k in range(30)],
    "no label at all": [{"text": "a"}],
    "another column": [{"body": "a", "label": 1}],
    "beyond numbers": [*VALUES, {"text": "a", "label": 1e17}, {"text": "b", "label": -1e18}],
}


def corpus_or_error(read, path, **given):
    try:
        return read(path, **given)
    except DataError as error:
        return str(error)


@pytest.mark.parametrize("rows", BAD.values(), ids=BAD)
@pytest.mark.parametrize("skip_bad", [False, True])
def test_streamed_errors_equal_errors_in_memory(tmp_path, rows, skip_bad):
    path = write(tmp_path / "x.jsonl", rows)
    expected, ours = (
        corpus_or_error(read, path, skip_bad=skip_bad)
        for read in (read_corpus, partial(stream_corpus, cache_dir=tmp_path / "cache"))
    )
    if isinstance(expected, str):
        assert ours == expected
        assert not list((tmp_path / "cache").glob("*"))
    else:
        assert same(expected, ours)


def test_dev_label_missing_from_train(tmp_path):
    write(tmp_path / "train.jsonl", MARKED)
    write(tmp_path / "dev.jsonl", [*MARKED[:3], {"text": "a", "label": "new"}, {"text": "b", "label": 0.5}])
    with pytest.raises(DataError) as expected:
        read_corpus(tmp_path)
    with pytest.raises(DataError) as ours:
        stream_corpus(tmp_path, cache_dir=tmp_path / "cache")
    assert str(ours.value) == str(expected.value)
    assert "rows 4" in str(ours.value) or "row 4" in str(ours.value)
    assert same(*both(tmp_path, tmp_path / "cache", skip_bad=True))


def test_many_bad_rows_stop_reading(tmp_path):
    path = write(tmp_path / "x.jsonl", [{"text": "", "label": 1}] * 50)
    with pytest.raises(DataError, match="20 rows cannot be used: rows 1, 2, 3,"):
        stream_corpus(path, cache_dir=tmp_path / "cache")


def forbid_reading(monkeypatch):
    def refuse(*_):
        raise AssertionError("the file was read again")

    monkeypatch.setattr(LabelsBuilder, "parse", refuse)


def test_second_call_uses_the_cache(tmp_path, monkeypatch):
    path = write(tmp_path / "x.jsonl", MARKED)
    first = stream_corpus(path, cache_dir=tmp_path / "cache")
    forbid_reading(monkeypatch)
    moved = path.rename(tmp_path / "sub.jsonl").rename(path)
    assert list(stream_corpus(moved, cache_dir=tmp_path / "cache").train) == list(first.train)
    stream_corpus(
        path, rule="words", seed=5, cache_dir=tmp_path / "cache"
    )  # the rule is the one it had; seeds are free
    for other in ({"rule": "spaces"}, {"columns": Columns(rationale_mask=None)}, {"skip_bad": True}):
        with pytest.raises(AssertionError, match="read again"):
            stream_corpus(path, **other, cache_dir=tmp_path / "cache")
    write(path, [*MARKED[:-1], {**MARKED[-1], "text": "one two 20"}])
    with pytest.raises(AssertionError, match="read again"):
        stream_corpus(path, cache_dir=tmp_path / "cache")


def test_version_change_invalidates_the_cache(tmp_path, monkeypatch):
    path = write(tmp_path / "x.jsonl", MARKED)
    stream_corpus(path, cache_dir=tmp_path / "cache")
    forbid_reading(monkeypatch)
    for name, value in (("__version__", "99"), ("LAYOUT", 99), ("rule_version", lambda rule: "other")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            with pytest.raises(AssertionError, match="read again"):
                stream_corpus(path, cache_dir=tmp_path / "cache")


def test_damaged_cache_is_rebuilt(tmp_path):
    path, cache = write(tmp_path / "x.jsonl", MARKED), tmp_path / "cache"
    expected = read_corpus(path)
    stream_corpus(path, cache_dir=cache)
    (folder,) = cache.iterdir()
    files = sorted(file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    assert len(files) == 5
    for name in files:
        content = (folder / name).read_bytes()
        for damage in (content[:-1], bytes([content[0] ^ 1]) + content[1:], None):
            (folder / name).unlink() if damage is None else (folder / name).write_bytes(damage)
            assert same(expected, stream_corpus(path, cache_dir=cache)), name
            assert (folder / name).read_bytes() == content


def test_incomplete_cache_is_ignored(tmp_path, monkeypatch):
    path, cache = write(tmp_path / "x.jsonl", MARKED), tmp_path / "cache"
    fresh, old = cache / ".a.tmp", cache / ".b.tmp"
    for folder in (fresh, old):
        (folder / "train").mkdir(parents=True)
        (folder / "train" / "examples.jsonl").write_text("half a li")
    for stale in (old / "train" / "examples.jsonl", old / "train", old):
        os.utime(stale, (0, 0))
    add = LabelsBuilder.add

    def interrupted(self, label, number):
        if number == 9:
            raise KeyboardInterrupt
        add(self, label, number)

    with monkeypatch.context() as patch:
        patch.setattr(LabelsBuilder, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stream_corpus(path, cache_dir=cache)
    assert [each.name for each in cache.iterdir()] == [fresh.name]  # another process may be writing it
    assert same(read_corpus(path), stream_corpus(path, cache_dir=cache))


def test_slower_process_keeps_the_existing_cache(tmp_path, monkeypatch):
    path, cache = write(tmp_path / "x.jsonl", MARKED), tmp_path / "cache"
    infer, faster = LabelsBuilder.infer, []

    def meanwhile(self, *given):
        with monkeypatch.context() as patch:
            patch.setattr(LabelsBuilder, "infer", infer)
            stream_corpus(path, cache_dir=cache)
        faster.extend(folder.stat().st_ino for folder in cache.iterdir() if not folder.name.startswith("."))
        return infer(self, *given)

    monkeypatch.setattr(LabelsBuilder, "infer", meanwhile)
    assert same(read_corpus(path), stream_corpus(path, cache_dir=cache))
    assert [folder.stat().st_ino for folder in cache.iterdir()] == faster


@pytest.mark.parametrize("damaged", [False, True])
def test_concurrent_builds(tmp_path, damaged):
    path, cache = write(tmp_path / "x.jsonl", MARKED), tmp_path / "cache"
    expected = read_corpus(path)
    if damaged:
        stream_corpus(path, cache_dir=cache)
        next(cache.rglob("record.json")).write_text("")
    with ThreadPoolExecutor(4) as pool:
        corpora = list(pool.map(lambda _: stream_corpus(path, cache_dir=cache), range(8)))
    assert all(list(corpus.train) == expected.train for corpus in corpora)
    assert len([folder for folder in cache.iterdir() if not folder.name.startswith(".")]) == 1


def test_digest_is_cached(tmp_path, monkeypatch):
    path, cache = write(tmp_path / "x.jsonl", MARKED), tmp_path / "cache"
    expected = stream_corpus(path, cache_dir=cache).digest
    (kept,) = cache.rglob("digest-*")
    kept.write_bytes(kept.read_bytes().replace(expected[:3].encode(), b"000"))
    assert stream_corpus(path, cache_dir=cache).digest == expected  # damaged, it is made again

    def refuse(_):
        raise AssertionError("all examples were read again")

    monkeypatch.setattr(DiskExamples, "__iter__", refuse)
    assert stream_corpus(path, cache_dir=cache).digest == expected
    other = stream_corpus(path, seed=1, cache_dir=cache)
    with pytest.raises(AssertionError, match="read again"):
        _ = other.digest


def test_indexing(tmp_path):
    path = write(tmp_path / "x.jsonl", MARKED)
    expected, corpus = both(path, tmp_path / "cache")
    ours, theirs = corpus.train, expected.train
    assert [ours[k] for k in (5, 0, -1)] == [theirs[k] for k in (5, 0, -1)]
    assert list(ours[3:9:2]) == list(theirs[3:9:2])
    assert list(ours.select(np.array([7, 2]))) == [theirs[7], theirs[2]]
    assert list(pickle.loads(pickle.dumps(ours))) == list(theirs)
    with pytest.raises(IndexError):
        ours[len(theirs)]
    few = ours.select(np.array([4, 1]))  # counted as they are, not as all but the others
    assert word_counts(few) == word_counts([theirs[4], theirs[1]])


def test_random_order_across_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("rationalizer.data.disk_examples.BATCH", 3)
    expected, corpus = both(write(tmp_path / "x.jsonl", MARKED), tmp_path / "cache")
    mixed = np.random.default_rng(0).permutation(len(corpus.train))
    assert list(corpus.train.select(mixed)) == [expected.train[k] for k in mixed]
    assert list(corpus.train) == expected.train


def test_large_files_are_streamed_by_default(tmp_path, monkeypatch):
    path = write(tmp_path / "x.jsonl", MARKED)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert not isinstance(load(path).train, DiskExamples)
    assert isinstance(load(path, stream=True).train, DiskExamples)
    assert (tmp_path / "home" / "rationalizer").is_dir()
    monkeypatch.setattr(module, "LARGE", path.stat().st_size - 1)
    assert isinstance(load(path).train, DiskExamples)
    assert not isinstance(load(path, stream=False).train, DiskExamples)
    packed = write(tmp_path / "x.jsonl.gz", MARKED)
    monkeypatch.setattr(module, "LARGE", 3 * packed.stat().st_size)
    assert isinstance(load(packed).train, DiskExamples)
    with pytest.raises(ValueError, match="reviews cannot be loaded with the option stream"):
        load("reviews", stream=True)


def test_default_dev_size():
    classes = np.arange(30_000) % 3
    assert dev_mask(classes, None, seed=0, stratify=True).sum() == 3000
    assert dev_mask(np.tile(classes, 10), None, seed=0, stratify=True).sum() == MOST == 20_000
    assert dev_mask(np.tile(classes, 10), 0.1, seed=0, stratify=True).sum() == 30_000


def test_size_of_a_parquet_file_counts_its_rows(tmp_path):
    """Equal texts take hardly any bytes on disk."""
    path = write(tmp_path / "x.parquet", [{"text": "fine", "label": "a"}] * 2_000_000)
    assert path.stat().st_size < module.LARGE / 100
    assert module.is_large(path)
    assert not module.is_large(write(path, [{"text": "fine", "label": "a"}] * 1000))
