"""Inputs that are wrong in all ways: one line that names the value and the remedy, code 2, and nothing written."""

import gzip
import io
import json
import os

import pyarrow
import pytest
from pyarrow.parquet import write_table

from tests.cli.calls import refused, run

ROWS = [{"text": f"a good film {k}", "label": "pn"[k % 2]} for k in range(20)]
TABLE = "text,label\n" + "".join(f"{row['text']},{row['label']}\n" for row in ROWS)
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
DEEP = "[" * 100_000 + "]" * 100_000
LONG = "a " * 10_000_000
TINY = ("hidden=4", "vector_size=4", "epochs=1", "min_epochs=1", "embeddings=none")
SET = [word for setting in TINY for word in ("--set", setting)]


def parquet(*rows):
    sink = io.BytesIO()
    write_table(pyarrow.Table.from_pylist(list(rows)), sink)
    return sink.getvalue()


def line(**row):
    return json.dumps(row) + "\n"


FILES = [
    ("empty.csv", "", "empty.csv"),
    ("bom.csv", b"\xef\xbb\xbf", "bom.csv"),
    ("blank.csv", "\n\n\n", "blank.csv"),
    ("header.csv", "text,label\n", "header.csv"),
    ("utf16.csv", TABLE.encode("utf-16")[:-1], "utf-16"),
    ("utf16le.csv", TABLE.encode("utf-16-le"), "binary"),
    ("latin.csv", TABLE.replace("good", "schön").encode("latin-1"), "line 2: byte 0xf6"),
    ("cesu.csv", TABLE.encode() + b"\xed\xa0\x80,p\n", "line 22: byte 0xed"),
    ("twice.csv", "text,text,label\na,b,c\n", "'text'"),
    ("ragged.csv", "text,label\na,b\nc\n", "row 2: "),
    ("wide.csv", "text,label\na,b,c\n", "row 1: "),
    ("slashes.csv", "text/label\na/b\n", "'text/label'"),
    ("semicolons.csv", "text;label\na;b;c\n", "row 1: "),
    ("binary.csv", b"\x7fELF\x02\x01\x01\0\0\0", "binary"),
    ("open.csv", TABLE + '"open,p\n', "row 21: "),
    ("long.csv", f"text,label\n{LONG},p\n", "line 2: "),
    ("quoted.csv", 'text,label\n"' + "long line\n" * 1_800_000 + '",p\n', "row 1: "),
    ("text.csv", f"text,label\n{LONG[:2_000_000]},p\n", "row 1: the text has 2,000,000 characters"),
    ("digits.csv", f"text,label\nx,{'9' * 5000}\n", "5,000 characters"),
    ("number.csv", f"text,label\nx,{'9' * 400}\ny,0.5\n", "row 1: the label 9999"),
    ("1e400.csv", "text,label\nx,1e400\ny,2\n", "row 1: the label inf"),
    ("1e30.csv", "text,label\nx,1e30\ny,0.5\n", "row 1: the label 1e+30"),
    ("nan.csv", "text,label\nx,p\ny,nan\n", "row 2: the label 'nan'"),
    ("inf.csv", "text,label\nx,inf\ny,0.5\n", "row 1: the label 'inf'"),
    ("mixed.csv", "text,label\na,1\nb,p\nc,0.5\n", "row 2: the label 'p'"),
    ("few.csv", "text,label\na,b\n", "1 example"),
    ("single.csv", "text,label\na,b\nc,d\n", "class"),
    ("hole.csv", "text,label\n,1\n", "row 1: the text is empty"),
    ("lable.csv", "text,lable\na,1\n", "'lable'"),
    ("nested.csv", f'text,label,rationale_spans\na,b,"{DEEP}"\n', "row 1: "),
    ("pharaoh.csv", f"premise,hypothesis,label,alignment\na,b,c,{'9' * 5000}-0\n", "row 1: the alignment"),
    ("page.csv", "<html><body>404</body></html>", "HTML"),
    (
        "pointer.csv",
        "version https://git-lfs.github.com/spec/v1\n",
        "Git LFS",
    ),
    ("sheet.xlsx", b"PK\x03\x04", "Excel"),
    ("sheet.ods", b"PK\x03\x04", "'.ods'"),
    ("none", TABLE, "'(none)'"),
    ("empty.parquet", "", ".parquet"),
    ("cut.parquet", parquet(*ROWS)[:-30], "Parquet"),
    ("magic.parquet", b"PAR1", "Parquet"),
    ("thrift.parquet", b"PAR1" + b"\0" * 100 + b"PAR1", "copy the file again"),
    ("dicts.parquet", parquet({"text": {"a": 1}, "label": "p"}), "row 1: the text must be a string, got dict"),
    ("lists.parquet", parquet({"text": "a", "label": [[1]]}), "row 1: the label [[1]]"),
    ("bytes.parquet", parquet({"text": b"abc", "label": "p"}), "row 1: the text must be a string, got bytes"),
    ("hole.parquet", parquet({"text": "a", "label": None}, *ROWS), "row 1: the label is missing"),
    ("whole.parquet.gz", gzip.compress(parquet(*ROWS)), ".gz"),
    ("cut.csv.gz", gzip.compress(TABLE.encode() * 50)[:-20], ".gz"),
    ("plain.csv.gz", TABLE, ".gz"),
    ("twice.csv.gz", gzip.compress(gzip.compress(TABLE.encode())), "unpack"),
    ("list.jsonl", f"{DEEP}\n", "nested"),
    ("nested.jsonl", f'{LINES}{{"text": {DEEP}, "label": 1}}\n', "row 21: "),
    ("objects.jsonl", '{"a":' * 100_000 + "1" + "}" * 100_000, "row 1: "),
    ("array.json", f"[{DEEP}]", "nested"),
    (
        "deep.jsonl",
        f'{{"text": {"[" * 900}{"]" * 900}, "label": 1}}\n',
        "row 1: the text must be a string, got list",
    ),
    ("long.jsonl", line(text=LONG, label=1), "line 1: "),
    ("long.json", json.dumps([{"text": LONG, "label": 1}]), "20,000,000 characters"),
    ("tokens.jsonl", line(tokens=["a"] * 600_000, label=1), "row 1: the text has 1,199,999 characters"),
    (
        "digits.jsonl",
        f'{{"text": "a", "label": {"1" * 5000}}}\n',
        "digits",
    ),
    ("value.jsonl", f'{line(text="a", label=0.5)}{{"text": "a", "label": {"1" * 400}}}\n', "row 2: the label 1111"),
    ("number.jsonl", "12\n", ".jsonl"),
    ("rows.jsonl", "[1, 2]\n", "row 1: "),
    ("null.jsonl", line(text=None, label=1), "row 1: the text is empty"),
    ("words.jsonl", line(text=["a", "b"], label=1), "row 1: the text must be a string, got list"),
    ("object.jsonl", line(text="a", label={"x": {"y": 1}}), "row 1: a label must be"),
    ("half.jsonl", line(text="a", label="\ud800"), "row 1: the label '\\ud800'"),
    ("integers.jsonl", line(tokens=[1, 2], label=1), "row 1: token 1"),
    ("mask.jsonl", line(text="a b", label=1, rationale_mask={"a": 1}), "mask"),
    ("flags.jsonl", '{"text": "a b", "label": 1, "rationale_mask": [NaN, 1]}\n', "mask"),
    ("span.jsonl", line(text="a b", label=1, rationale_spans=[[0, 10**20]]), "2 tokens"),
    ("side.jsonl", line(premise="a", label=1), "'hypothesis'"),
    (
        "aligned.jsonl",
        line(premise="a", hypothesis="b", label=1, alignment=[[0, 7]]),
        "(0, 7)",
    ),
    ("pretty.json", json.dumps({"data": ROWS}, indent=1), "row 1: not valid JSON"),
    ("empty.json", "[]", "no columns"),
    ("cut.json", '[{"text": "a", "label": 1},', "not valid JSON"),
]


def check(message, expected):
    assert expected in message
    assert message.count("\n") == 1
    assert len(message) < 700


@pytest.mark.parametrize(("name", "content", "expected"), FILES, ids=[name for name, *_ in FILES])
def test_training_file(tmp_path, name, content, expected):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    message = refused("train", path, "--out", tmp_path / "run", *SET)
    check(message, expected)
    assert os.listdir(tmp_path) == [name]


def test_folder_pipe_and_device(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    check(refused("train", tmp_path / "folder.csv"), "train.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    check(refused("train", tmp_path / "pipe.csv"), "not a regular file")
    check(refused("train", "/dev/zero"), "not a regular file")
    check(refused("train", tmp_path / "a\x1b[31m.csv"), "a\\x1b[31m.csv")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    check(refused("train", tmp_path / "loop.csv"), "loop.csv")


@pytest.mark.parametrize(
    "budget", ["0", "-1", "nan", "inf", "1e999", "200%", "abc", "", "0%", "9" * 5000, "1.5", "1e-300"]
)
def test_budget(tmp_path, budget):
    check(refused("train", "reviews", "--budget", budget, "--out", tmp_path / "run"), "got '")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("x", "KEY=VALUE"),
        ("seed=", "got ''"),
        ("seed=1e400", "'1e400'"),
        ("seed=99999999999999999999", "4,294,967,295"),
        ("dropout=nan", "[0, 1)"),
        ("clip=inf", "1e+09"),
        ("temperature=-1", "got -1.0"),
        ("faithful=false", "pairs of texts"),
        ("method=x", "'method'"),
        ("embeddings=/nowhere", "/nowhere"),
    ],
)
def test_setting(tmp_path, setting, expected):
    check(refused("train", "reviews", "--set", setting, "--out", tmp_path / "run"), expected)
    assert not (tmp_path / "run").exists()


def test_out_is_a_file(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(TABLE)
    for out in (path, path / "run"):
        check(refused("train", path, "--out", out, *SET), f"{path} is a file")
        check(refused("compare", path, "--out", out), f"{path} is a file")
    assert path.read_text() == TABLE


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("x.jsonl", f'{{"text": {DEEP}}}\n', "row 1: "),
        ("x.jsonl", line(text=LONG), "line 1: "),
        ("x.jsonl", line(text=LONG[:2_000_000]), "row 1: the text has 2,000,000 characters"),
        ("x.csv", "text,label\na,nan\n", "row 1: the label 'nan'"),
        ("x.csv", "", "x.csv"),
    ],
)
def test_file_to_explain(spectra_run, tmp_path, name, content, expected):
    (tmp_path / name).write_text(content)
    out = tmp_path / "out.jsonl"
    check(refused("explain", spectra_run, "--file", tmp_path / name, "--out", out), expected)
    assert not out.exists()


def test_lines_to_explain(spectra_run, pair_run):
    check(refused("explain", spectra_run, stdin=LONG), "standard input, line 1: ")
    check(
        refused("explain", spectra_run, stdin=LONG[:2_000_000]),
        "2,000,000 characters",
    )
    check(refused("explain", spectra_run, LONG[:2_000_000]), "2,000,000 characters")
    check(refused("explain", spectra_run, stdin=b"a\xff\n"), "standard input, line 1: byte 0xff")
    check(
        refused("explain", pair_run, stdin=f'{{"premise": {DEEP}}}'),
        "standard input, line 1: ",
    )
    check(refused("explain", pair_run, stdin='{"premise": '), "standard input, line 1: not valid JSON")
    check(
        refused("explain", pair_run, stdin='{"premise": 1, "hypothesis": "a"}'),
        "the premise: ",
    )


@pytest.mark.parametrize("form", ["jsonl", "csv", "html", "svg", "txt"])
def test_lone_surrogate_in_text(spectra_run, tmp_path, form):
    """Texts may be broken: they are read, learned from and shown, each half of a pair as a "?"."""
    (tmp_path / "x.jsonl").write_text(line(text="lovely \ud800care"))
    out = tmp_path / f"out.{form}"
    run("explain", spectra_run, "--file", tmp_path / "x.jsonl", "--out", out)
    assert "lovely" in out.read_text()
    printed = run("explain", spectra_run, "lovely \udcffcare", "--format", form.replace("txt", "terminal")).stdout
    assert "lovely" in printed
    if form in ("jsonl", "csv"):
        before = out.read_bytes()
        run("explain", spectra_run, "--file", tmp_path / "x.jsonl", "--out", out, "--resume", "--batch-size", 1)
        assert out.read_bytes() == before
    if form == "jsonl":
        assert json.loads(out.read_text())["text"] == "lovely \ud800care"


def test_lone_surrogate_in_training(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(line(text=f"{row['text']} \ud800x", label=row["label"]) for row in ROWS))
    run("train", path, "--out", tmp_path / "run", *SET)
    run("evaluate", tmp_path / "run", "--report", tmp_path / "report.html")
    assert "film" in (tmp_path / "report.html").read_text()
