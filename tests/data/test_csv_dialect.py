"""Files as other programs write them: delimiters, encodings, headers, Excel sheets; and all bad rows at once."""

import datetime

import openpyxl
import pytest

from rationalizer.data import BadRows, DataError, Dialect, Labels, iter_rows, load, read_corpus, read_examples
from rationalizer.data.table_files import read_table

ROWS = [("schön, wirklich", "gut"), ("fad; langweilig", "schlecht")] * 2


def texts(path, **options):
    return [row["text"] for row in read_table(path, dialect=Dialect(**options)).rows]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_is_detected(tmp_path, delimiter):
    path = tmp_path / "x.csv"
    lines = [delimiter.join(("text", "label")), *(delimiter.join((f'"{text}"', label)) for text, label in ROWS)]
    path.write_text("\n".join(lines))
    assert texts(path) == [text for text, _ in ROWS]
    assert texts(path, delimiter=delimiter) == [text for text, _ in ROWS]


def test_header_determines_the_delimiter_if_rows_are_bad(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("text;label\na, b, c;x\na; b;x\n")
    with pytest.raises(DataError, match="row 2: 3 fields, but 2 in the header; put fields that contain ';'"):
        read_table(path)
    path.write_text("text\none, two\nthree; four\n")
    with pytest.raises(DataError, match="row 1: 2 fields, but 1 in the header; put fields that contain ','"):
        read_table(path)
    assert texts(path, delimiter="tab") == ["one, two", "three; four"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings(tmp_path, encoding):
    path = tmp_path / "x.csv"
    path.write_text("text;label\n" + "".join(f"{text.replace(';', ',')};{label}\n" for text, label in ROWS), encoding)
    given = {"encoding": encoding} if encoding == "cp1252" else {}
    assert texts(path, **given)[0] == "schön, wirklich"
    if encoding == "cp1252":
        with pytest.raises(DataError, match="name its encoding, as --encoding cp1252"):
            texts(path)
        with pytest.raises(DataError, match="the file is not utf-16"):
            texts(path, encoding="utf-16")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"delimiter": "::"}, "::"), ({"encoding": "klingon"}, "klingon")],
)
def test_invalid_dialect_raises(options, message):
    with pytest.raises(ValueError, match=message):
        Dialect(**options)


def test_columns_are_numbered_without_header(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("lovely,pos\nawful,neg\n")
    table = read_table(path, dialect=Dialect(header=False))
    assert table.columns == ("1", "2")
    assert table.rows[0] == {"1": "lovely", "2": "pos"}
    with pytest.raises(DataError, match=r"there is no column 'label'.*--no-header"):
        read_corpus(path)


def test_excel_sheets(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["text", "label", "when"])
    for text, label in ROWS:
        sheet.append([text, label, datetime.date(2024, 5, 1)])
    sheet.append([])
    sheet.append(["zuletzt", 3])
    book.save(tmp_path / "x.xlsx")
    table = read_table(tmp_path / "x.xlsx")
    assert table.columns == ("text", "label", "when")
    assert table.rows[0] == {"text": "schön, wirklich", "label": "gut", "when": "2024-05-01 00:00:00"}
    assert table.rows[-1] == {"text": "zuletzt", "label": 3, "when": None}
    assert len(table.rows) == 5
    rows = list(iter_rows(tmp_path / "x.xlsx", labels=Labels("classification", ("gut", "schlecht", "3"))))
    assert [row.example is None for row in rows] == [False] * 4 + [True, False]


BAD = 'text,label\nfine,a\n,b\n"x",\n<br />,b\nfine,b\none,two,b\n,a\nfine,nan\n'


def test_error_lists_all_bad_rows(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(BAD)
    with pytest.raises(DataError) as raised:
        read_corpus(path)
    said = str(raised.value)
    assert said.startswith(f"{path}: 6 rows cannot be used: ")
    for part in (
        "rows 2, 7: the text is empty",
        "row 3: the label is missing",
        "row 4: the text '<br />' has no token",
    ):
        assert part in said
    assert "row 6: 3 fields, but 2 in the header" in said
    assert "row 8: the label 'nan'" in said
    assert "--skip-bad" in said
    path.write_text("text,label\nfine,a\nfine,b\n" + ",a\n" * 30)
    with pytest.raises(DataError, match=r"30 rows cannot be used: rows 3, .*, 22: .*; and 10 more"):
        read_corpus(path)


def test_skip_bad_counts_skipped_rows(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(BAD + "fine,a\n" * 3)
    corpus = load(path, skip_bad=True)
    assert len(corpus.train) + len(corpus.dev) == 5
    (note,) = corpus.skipped
    assert note.startswith(f"{path}: 6 rows skipped: rows 2, 7: the text is empty")
    assert "; row 6: 3 fields" in note
    bad = BadRows(skip=True)
    assert len(read_examples(path, labels=Labels("classification", ("a", "b")), bad=bad)) == 5
    assert len(bad) == 6
    with pytest.raises(ValueError, match="cannot be loaded with the option skip_bad"):
        load("reviews", skip_bad=True)


def test_skipped_rows_keep_row_numbers(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('id,review,label\n1,fine,a\n\n3," ",a\n4,<br />,a\n5,good,\n')
    given = {"labels": Labels("classification", ("a",)), "model_columns": {"text": "review", "label": "stars"}}
    bad = BadRows(skip=True)
    rows = list(iter_rows(path, bad=bad, **given))
    assert [row.row["id"] for row in rows] == ["1", "", "3", "4", "5"]
    assert [row.example and (row.example.text, row.example.label) for row in rows] == [
        ("fine", 0),
        None,
        None,
        None,
        ("good", None),
    ]
    assert bad.messages() == (
        f"{path}: 1 row skipped: row 4: the text '<br />' has no token; fill it in or leave the row out",
    )
    strict = iter_rows(path, **given)
    assert [next(strict).row["id"] for _ in range(3)] == ["1", "", "3"]
    with pytest.raises(DataError, match="row 4"):
        next(strict)


def test_suspicious_labels(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("text,label\n" + "fine,very good\nbad,very  Good\n" * 3)
    with pytest.raises(DataError, match=r"row 1: .*'very  Good' and 'very good' differ"):
        read_corpus(path)
    path.write_text("text,label\n" + "".join(f"fine,{1000 + k % 40}\n" for k in range(60)))
    with pytest.raises(DataError, match=r"40 different labels for 60 texts, such as 1000, 1001, 1002: are they ids\?"):
        read_corpus(path)
    assert read_corpus(path, task="regression").task == "regression"
    assert len(read_corpus(path, task="classification").classes) == 40
