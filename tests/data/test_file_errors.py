"""Every way a user's file can be wrong: the message names the file, the row and the remedy."""

import gzip
import io
import re
import zipfile

import openpyxl
import pytest

from rationalizer.data import DataError, read_corpus, read_examples
from tests.data.test_corpus_files import ROWS, write

GOOD = {"text": "fine", "label": "a"}


def complaint(path, **options):
    with pytest.raises(DataError) as raised:
        read_corpus(path, **options)
    return str(raised.value)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "", "label": "a"}, "the text is empty; fill it in or leave the row out"),
        ({"text": "  ", "label": "a"}, "the text is empty"),
        ({"text": "<br />", "label": "a"}, "has no token"),
        ({"text": "x", "label": ""}, "the label is missing; fill it in or leave the row out"),
        ({**GOOD, "rationale_spans": [[0, 2]]}, "the rationale span [0, 2) does not lie within the 1 tokens"),
        ({**GOOD, "rationale_spans": [[-1, 1]]}, "the rationale span [-1, 1) does not lie"),
        ({**GOOD, "rationale_spans": [[1, 1]]}, "the rationale span [1, 1) does not lie"),
        (
            {**GOOD, "rationale_spans": [[0, 1, 2]]},
            "not a pair of integers; write token spans as [[start, end]",
        ),
        ({**GOOD, "rationale_chars": [[0, 5]]}, "[0, 5) does not lie within the text's 4 characters"),
        ({**GOOD, "rationale_mask": [1, 0]}, "2 flags for 1 token"),
        ({**GOOD, "rationale_mask": [2]}, "holds 2; flags are 0 or 1"),
    ],
)
def test_bad_row_raises(tmp_path, ending, row, message):
    filler = {"rationale_spans": None, "rationale_chars": None, "rationale_mask": None}
    good = GOOD | {name: None for name in row if name in filler}
    path = write(tmp_path / f"x.{ending}", [good, good, row])
    text = complaint(path)
    assert text.startswith(f"{path}, row 3: ")
    assert message in text


def test_missing_column_error_suggests_a_name(tmp_path):
    message = complaint(write(tmp_path / "a.csv", [{"text": "x", "labels": "a"}]))
    assert (
        "no column 'label' (did you mean 'labels'?); the file has text, labels; pass the label column's name" in message
    )
    assert message.endswith("(on the command line: --column label=NAME)")
    path = write(tmp_path / "b.csv", [{"review": "x", "label": "a"}])
    assert f"{path}: there is no column 'text'; the file has review, label" in complaint(path)
    path = write(tmp_path / "c.csv", [{f"c{k}": "x" for k in range(80_000)}])
    assert len(complaint(path)) < 500


def test_two_annotation_columns_raise(tmp_path):
    row = GOOD | {"rationale_spans": [[0, 1]], "rationale_mask": [1]}
    text = complaint(write(tmp_path / "x.jsonl", [row]))
    assert "rationale_spans and rationale_mask both hold rationales; set all but one of them to None" in text


@pytest.mark.parametrize("split", ["dev", "test"])
def test_label_missing_from_train_raises(tmp_path, split):
    write(tmp_path / "train.csv", ROWS)
    write(tmp_path / "dev.csv", ROWS)
    path = write(tmp_path / f"{split}.csv", [ROWS[0], {"text": "x", "label": "great"}])
    assert complaint(tmp_path) == f"{path}, row 2: the label 'great' is unknown; the classes are neg, pos"


def test_numeric_classes_are_not_indices(tmp_path):
    write(tmp_path / "train.csv", [{"text": "x", "label": label} for label in "121"])
    path = write(tmp_path / "test.csv", [{"text": "x", "label": "0"}])
    assert complaint(tmp_path) == f"{path}, row 1: the label 0 is unknown; the classes are 1, 2"


def test_mixed_numeric_and_named_labels_raise(tmp_path):
    rows = [{"text": "x", "label": label} for label in ("0.5", "0.25", "n/a")]
    path = write(tmp_path / "x.csv", rows)
    assert f"{path}, row 3: the label 'n/a' is not a number while others are" in complaint(path)
    assert f"{path}, row 1: the label 0.5 " in complaint(write(path, rows[:2]), task="classification")
    assert "is not a number" in complaint(write(path, ROWS), task="regression")


def test_tokens_must_occur_in_the_text(tmp_path):
    assert "row 1: token 2 is 3, not a word" in complaint(
        write(tmp_path / "a.jsonl", [{"tokens": ["a", 3], "label": 1}])
    )
    assert "row 1: " in complaint(write(tmp_path / "blank.jsonl", [{"tokens": ["", "\xa0"], "label": 1}]))
    row = {"tokens": ["a", "c"], "text": "a b c", "label": 1}
    assert "row 1: token 2 ('c') does not follow" in complaint(write(tmp_path / "b.jsonl", [row]))


def test_invalid_csv_raises(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("text,label\nfine,a\none, two,a\n")
    assert f"{path}, row 2: 3 fields, but 2 in the header; put fields that contain ','" in complaint(path)
    path.write_text('text,label\nfine,a\n"open,a\n')
    assert f"{path}, row 2: broken quoting" in complaint(path)
    path.write_text("text,text\nfine,a\n")
    assert "the column 'text' comes twice" in complaint(path)
    path.write_text("text,label\n")
    assert "no training rows" in complaint(path)


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_repeated_column_in_a_wide_header_raises(tmp_path, ending):
    count = 16_000 if ending == "xlsx" else 80_000  # a sheet has at most 16,384 columns
    names = [f"c{k}" for k in range(count)] + ["c7"]
    path = tmp_path / f"x.{ending}"
    if ending == "csv":
        path.write_text(f"{','.join(names)}\n")
    elif ending == "xlsx":
        book = openpyxl.Workbook(write_only=True)
        book.create_sheet().append(names)
        book.save(path)
    else:
        from pyarrow import array, table
        from pyarrow.parquet import write_table

        write_table(table([array(["a"])] * len(names), names=names), path)
    assert complaint(path) == f"{path}: the column 'c7' comes twice; rename one"


def rewrite_sheet(path, change):
    """Replace the XML of the only sheet of an Excel file."""
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    parts["xl/worksheets/sheet1.xml"] = change(parts["xl/worksheets/sheet1.xml"])
    with zipfile.ZipFile(path, "w") as book:
        for name, content in parts.items():
            book.writestr(name, content)


def entity_bomb(sheet):
    entities = ['<!ENTITY a0 "aaaaaaaaaa">']
    entities += [f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">' for k in range(1, 10)]
    cell = b'<sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>&a9;</t></is></c></row></sheetData>'
    body = re.sub(rb"<sheetData>.*</sheetData>", cell, sheet, flags=re.DOTALL)
    return f"<!DOCTYPE worksheet [{''.join(entities)}]>".encode() + body.removeprefix(b"<?xml version='1.0'?>")


@pytest.mark.parametrize(
    "change",
    [
        entity_bomb,
        lambda sheet: sheet[: len(sheet) // 2],
        lambda sheet: b"",
    ],
    ids=["entity bomb", "cut", "empty"],
)
def test_damaged_excel_sheet_raises(tmp_path, change):
    path = tmp_path / "x.xlsx"
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for cells in (("text", "label"), ("fine", "a"), ("bad", "b")):
        sheet.append(cells)
    book.save(path)
    rewrite_sheet(path, change)
    text = complaint(path)
    assert text.startswith(f"{path}: not an Excel sheet")
    assert "\n" not in text


def test_invalid_json_raises(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "a", "label": 1}\n{"text": \n')
    assert f"{path}, row 2: not valid JSON" in complaint(path)
    path.write_text('{"text": "a", "label": 1}\n3\n')
    assert f"{path}, row 2: a row must be a JSON object" in complaint(path)


def test_invalid_utf8_raises(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes("text,label\ngut,a\nschön,a\n".encode("latin-1"))
    assert (
        complaint(path)
        == f"{path}, line 3: byte 0xf6 is not UTF-8; save the file as UTF-8, or name its encoding, as --encoding cp1252"
    )


def parquet_bytes():
    from pyarrow import Table
    from pyarrow.parquet import write_table

    sink = io.BytesIO()
    write_table(Table.from_pylist(ROWS), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", b'{"text": "a", "label": 1}\n', "ends in .csv but holds JSON"),
        ("x.csv", parquet_bytes, "ends in .csv but holds Parquet data"),
        (
            "x.csv",
            b"PK\x03\x04rest",
            "holds a zip archive (an Excel sheet?); save it as UTF-8 CSV, or let its name end in .xlsx",
        ),
        ("x.csv", b"<!DOCTYPE html><html>", "holds an HTML page"),
        ("x.csv", b"version https://git-lfs.github.com/spec/v1", "holds a Git LFS pointer, not the data"),
        ("x.csv", b"", "holds nothing"),
        ("x.jsonl", b"text,label\na,b\n", "ends in .jsonl but holds plain text"),
        ("x.parquet", b"text,label\na,b\n", "ends in .parquet but holds plain text; rename it"),
        ("x.parquet", b'{"text": "a"}', "ends in .parquet but holds JSON"),
        ("x.parquet", b"PAR1 and then nothing", "damaged Parquet data"),
        ("x.csv.gz", b"text,label\na,b\n", "ends in .gz but is not compressed"),
        ("x.xlsx", b"PK\x03\x04rest", "not an Excel sheet"),
        ("x.xlsx", b"text,label\na,b\n", "ends in .xlsx but holds plain text"),
        ("x.docx", b"PK", "the ending '.docx' is not one of .csv, .tsv"),
    ],
)
def test_content_that_contradicts_the_suffix_raises(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content() if callable(content) else content)
    text = complaint(path)
    assert text.startswith(str(path))
    assert message in text


def test_csv_header_may_begin_with_a_bracket(tmp_path):
    (tmp_path / "x.csv").write_text("[id],text,label\n1,a,b\n")
    assert len(read_examples(tmp_path / "x.csv")) == 1


def test_missing_file_raises(tmp_path):
    assert complaint(tmp_path / "none.csv") == f"{tmp_path / 'none.csv'}: no such file"


def test_damaged_gzip_raises(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"text,label\n" + b"a,b\n" * 5000)[:-12])
    assert f"{path}: damaged" in complaint(path)
