"""`rationalizer explain`: what it reads, prints and writes."""

import csv
import json

import pandas
import pytest
import torch

from rationalizer import Rationalizer
from rationalizer import drawing as render
from rationalizer.data import generated_pairs as pairs
from rationalizer.drawing.result_columns import result_columns
from tests.cli.calls import records, refused, run
from tests.cli.conftest import COUNT


@pytest.fixture(scope="module")
def model(spectra_run):
    return Rationalizer.load(spectra_run)


def test_single_text_in_terminal(spectra_run, model):
    text = "We found truly helpful lovely care."
    printed = run("explain", spectra_run, text).stdout
    assert printed == render.to_terminal(model.explain(text), colour=False) + "\n\n"
    assert "[" in printed


def test_warnings_are_printed_and_written(spectra_run):
    result = run("explain", spectra_run, "qwzxqq vrblgh", "lovely care", "--format", "jsonl")
    assert "1 of 2 texts" in result.stderr
    assert [len(json.loads(line)["warnings"]) for line in result.stdout.splitlines()] == [1, 0]


@pytest.fixture
def selects_nothing(spectra_run, tmp_path):
    """A model whose scores are all negative."""
    model = Rationalizer.load(spectra_run, "cpu")
    with torch.no_grad():
        model.trained.model.method.scorer.bias.fill_(-1000)
    with pytest.warns(UserWarning, match="examples.json"):
        model.save(tmp_path / "model")
    return tmp_path / "model"


def test_empty_rationales_are_flagged(selects_nothing, tmp_path):
    """In Python, as JSON lines and CSV, and in the terminal."""
    text = "We found truly helpful lovely care."
    with pytest.warns(UserWarning, match="No word is selected"):
        (warning,) = Rationalizer.load(selects_nothing, "cpu").explain(text).warnings
    lines = run("explain", selects_nothing, text, "--format", "jsonl")
    assert json.loads(lines.stdout)["warnings"] == [warning]
    shown = run("explain", selects_nothing, text)
    for printed in (lines.stderr, shown.stdout):  # once
        assert warning in " ".join(printed.split())
    assert shown.stderr == ""
    (tmp_path / "in.csv").write_text(f"text\n{text}\n")
    run("explain", selects_nothing, "--file", tmp_path / "in.csv", "--out", tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="") as file:
        assert [row["warnings"] for row in csv.DictReader(file)] == [warning]


def test_legend_is_printed_once(spectra_run):
    printed = run("explain", spectra_run, "lovely care", "awful slop").stdout
    assert printed.count("read, for ") == 2
    assert "lovely" in printed
    assert "awful" in printed


def test_standard_input(spectra_run, model, corpus):
    texts = [e.text for e in corpus.test[:10]]
    printed = run("explain", spectra_run, "--format", "jsonl", stdin="\n".join(texts) + "\n\n").stdout
    found = [json.loads(line) for line in printed.splitlines()]
    assert found.pop() == {"text": "", "label": None}  # output line k is of input line k
    assert [one["text"] for one in found] == texts
    assert [one["selected"] for one in found] == [list(e.selected) for e in model.explain(texts)]
    assert run("explain", spectra_run, "-", "--format", "jsonl", stdin="\ufeffa b\r\n").stdout.startswith(
        '{"text": "a b"'
    )


def test_file_labels_and_annotations(spectra_run, table, corpus, tmp_path):
    out = tmp_path / "out.jsonl"
    result = run("explain", spectra_run, "--file", table, "--column", "text=review", "--out", out)
    assert result.stdout == ""
    assert result.stderr == f"{out}: {COUNT} explained\n"
    found = records(out)
    assert [one["truth"] for one in found] == [corpus.classes[e.label] for e in corpus.test]
    assert found[0]["annotation"] == list(corpus.test[0].annotation)
    assert found[5]["annotation"] is None
    page = tmp_path / "out.html"
    run("explain", spectra_run, "--file", table, "--column", "text=review", "--out", page, "--budget", "40%")
    assert page.read_text().count("<article>") == COUNT
    assert page.read_text().endswith("</html>\n")
    assert "marked in the data" in page.read_text()


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "parquet", "csv.gz"])
def test_table_formats_agree(spectra_run, table, tmp_path, ending):
    frame = pandas.read_csv(table).rename(columns={"review": "text"})[["text"]]
    path = tmp_path / f"mine.{ending}"
    if ending == "tsv":
        frame.to_csv(path, sep="\t", index=False)
    elif ending == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    run("explain", spectra_run, "--file", path, "--out", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"] for row in rows] == list(frame["text"])
    for row in rows:
        words = [row["text"][start:end] for start, end in json.loads(row["spans"])]
        assert row["rationale"] == " ... ".join(words)
        assert list(row) == ["text", *result_columns((), pairs=False, classes=["negative", "positive"])]
        assert json.loads(row["words"])[0]["weight"] is None


def test_pairs(pair_run, tmp_path):
    corpus = pairs(train=1, dev=1, test=20)
    texts = [(e.premise.text, e.hypothesis.text) for e in corpus.test]
    model = Rationalizer.load(pair_run)
    expected = [[list(pair) for pair in one.pairs] for one in model.explain(texts)]
    lines = "".join(f"{p}\t{h}\n" for p, h in texts[:10])
    lines += "".join(json.dumps({"premise": p, "hypothesis": h}) + "\n" for p, h in texts[10:])
    printed = run("explain", pair_run, "--format", "jsonl", stdin=lines).stdout
    assert [json.loads(line)["pairs"] for line in printed.splitlines()] == expected
    table = tmp_path / "pairs.csv"
    frame = pandas.DataFrame(texts, columns=["premise", "hypothesis"])
    frame["label"] = [corpus.classes[e.label] for e in corpus.test]
    frame.to_csv(table, index=False)
    run("explain", pair_run, "--file", table, "--out", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [json.loads(row["pairs"]) for row in rows] == expected
    assert [row["label"] for row in rows] == list(frame["label"])
    assert "<svg" in run("explain", pair_run, *texts[0], "--format", "html").stdout
    assert run("explain", pair_run, *texts[0], "--format", "svg").stdout.startswith("<svg")
    assert "pairs of texts" in refused("explain", pair_run, "one")
    assert "line 2: got no tab" in refused("explain", pair_run, stdin="a\tb\nc\n")
    assert "line 1: the JSON object has no 'hypothesis'" in refused("explain", pair_run, stdin='{"premise": "a"}\n')


def test_pairs_need_pair_model(spectra_run, tmp_path):
    table = tmp_path / "pairs.csv"
    table.write_text("premise,hypothesis\na,b\n")
    assert "single texts" in refused("explain", spectra_run, "--file", table)


def test_unknown_labels(spectra_run, tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("text,label\nlovely care,negative\nlovely care,\nlovely care,fine\n")
    command = ["explain", spectra_run, "--file", table, "--format", "jsonl"]
    assert "mine.csv, row 3: the label 'fine'" in refused(*command)
    found = [json.loads(line) for line in run(*command, "--column", "label=").stdout.splitlines()]
    assert len(found) == 3
    assert not any("truth" in one for one in found)


def test_budget_option(spectra_run, sparsemax_run):
    text = "We found truly helpful lovely care."
    printed = run("explain", spectra_run, text, "--budget", "3", "--format", "jsonl").stdout
    assert sum(json.loads(printed)["selected"]) == 3
    assert "budget" in refused("explain", sparsemax_run, text, "--budget", "3")


def test_bad_row_keeps_rows_before_it(spectra_run, tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("text\n" + "lovely care\n" * 200 + "<br />\n" + "awful slop\n")
    out = tmp_path / "out.jsonl"
    command = ["explain", spectra_run, "--file", table, "--out", out, "--batch-size", 8]
    assert "mine.csv, row 201: " in refused(*command)
    assert len(records(out)) == 200
    table.write_text("text\n" + "lovely care\n" * 200 + "fine\n" + "awful slop\n")
    assert "10 explained, 192 existed already" in run(*command, "--resume").stderr
    assert [one["text"] for one in records(out)[199:]] == ["lovely care", "fine", "awful slop"]
    assert "line 2: byte 0xe9" in refused("explain", spectra_run, stdin=b"caf\xc3\xa9\ncaf\xe9\n")


def test_bad_texts_are_skipped_from_arguments_and_standard_input(spectra_run, pair_run):
    assert "row 2: the text is empty" in refused("explain", spectra_run, "lovely care", "")
    shown = run("explain", spectra_run, "lovely care", "", "slop", "--format", "jsonl", "--skip-bad")
    assert len(shown.stdout.splitlines()) == 2
    assert "1 row skipped: row 2: the text is empty" in shown.stderr
    shown = run("explain", spectra_run, "lovely care", "--format", "jsonl", "--abstain", "1")
    assert "the model abstains" in json.loads(shown.stdout)["warnings"][-1]
    assert "Parquet" in refused("explain", spectra_run, "--abstain", "1", "--format", "parquet")
    lines = "a dog\tan animal\nno tab\na cat\tan animal\n"
    shown = run("explain", pair_run, "--format", "jsonl", "--skip-bad", stdin=lines)
    assert len(shown.stdout.splitlines()) == 3  # line k of the output is line k of the input
    assert "standard input: 1 row skipped: row 2: got no tab" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "--format", "pdf"], "'pdf'"),
        (["a", "--file", "x.csv"], "both by --file"),
        (["a", "--column", "text=review"], "add --file"),
        (["--file", "no.csv"], "no.csv"),
        (["--file", "no.docx"], "no.docx"),
        (["a", "--resume"], "--resume needs --out"),
        (["a", "--overwrite"], "--overwrite needs --out"),
        (["a", "--out", "x.csv", "--resume", "--overwrite"], "exclude each other"),
        (["a", "--out", "."], "is a folder"),
        (["a", "--budget", "0"], "got '0'"),
        (["a", "--device", "gpu"], "'gpu'"),
        (["a", "--device", "cuda:99"], "cuda:99"),
        ([" "], "the text is empty"),
    ],
)
def test_bad_input(spectra_run, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused("explain", spectra_run, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_unknown_suffix(spectra_run, tmp_path):
    said = refused("explain", spectra_run, "Lovely.", "--out", tmp_path / "x.docx")
    assert ".docx" in said
    assert not list(tmp_path.iterdir())
    run("explain", spectra_run, "Lovely.", "--out", tmp_path / "x.txt")
    assert "Lovely" in (tmp_path / "x.txt").read_text()


def test_constraint_option(spectra_run, model):
    text = "We found truly helpful lovely care. Expect barely musty regrettable comfort."
    found = json.loads(
        run("explain", spectra_run, text, "--budget", "50%", "--constraint", "spans=1", "--format", "jsonl").stdout
    )
    model.budget = "50%"
    try:
        assert found["spans"] == [list(span) for span in model.explain(text, constraints=["spans=1"]).spans]
    finally:
        model.budget = "20%"
    assert len(found["spans"]) == 1
    assert "'sentences'" in refused("explain", spectra_run, text, "--constraint", "sentences")
    said = refused("explain", spectra_run, text, "--constraint", "must=words:care,lovely,helpful")
    assert "text 1 ('We found" in said
    assert "3 words" in said


def test_conflicts_name_the_row(spectra_run, tmp_path):
    rows = ["", *["Slow staff."] * 9, "We found truly helpful lovely care."]  # in the second round of eight
    (tmp_path / "new.csv").write_text("id,text\n" + "".join(f"{k},{text}\n" for k, text in enumerate(rows)))
    asked = ("--constraint", "must=words:care,lovely", "--budget", "1", "--batch-size", "1")
    said = refused("explain", spectra_run, "--file", tmp_path / "new.csv", *asked)
    assert "new.csv, row 11 ('We found" in said
    said = refused("explain", spectra_run, "--file", tmp_path / "new.csv", "--out", tmp_path / "x.parquet", *asked)
    assert "new.csv, row 11 ('We found" in said
    assert "--skip-bad" in said
    said = refused("explain", spectra_run, *asked, stdin="\n".join(rows))
    assert "standard input, line 11 ('We found" in said
    assert "--skip-bad" not in said


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_rows_in_conflict_are_skipped(spectra_run, form, tmp_path):
    table, out = tmp_path / "new.csv", tmp_path / f"out.{form}"
    rows = ["lovely care", "Slow staff.", "", *["awful slop", "lovely care"] * 20]
    pandas.DataFrame({"text": rows}).to_csv(table)
    asked = ("--constraint", "must=words:care,lovely", "--budget", "1", "--batch-size", "1", "--skip-bad")
    result = run("explain", spectra_run, "--file", table, "--out", out, *asked)
    assert "21 rows skipped: rows 1, 5, 7, 9" in result.stderr
    assert "('lovely care') under must=" in result.stderr
    assert f"{out}: 21 explained, 1 without a text copied unchanged\n" in result.stderr
    whole = out.read_bytes()
    lines = pandas.read_csv(out)["predicted"] if form == "csv" else pandas.DataFrame(records(out))["label"]
    assert lines.notna().tolist() == ["s" in text for text in rows]
    out.write_bytes(whole[: 2 * len(whole) // 3])
    run("explain", spectra_run, "--file", table, "--out", out, *asked, "--resume")
    assert out.read_bytes() == whole


def test_formulas_are_escaped_on_request(spectra_run, tmp_path):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    texts = ["=lovely care", "+lovely care", "-lovely care", "@lovely care", "\tlovely care", "lovely = care"]
    pandas.DataFrame({"text": texts, "@note": ["x"] * 6}).to_csv(source, index=False)
    plain = run("explain", spectra_run, "--file", source, "--format", "csv").stdout
    assert [row["text"] for row in csv.DictReader(plain.splitlines())] == texts
    options = ("--file", source, "--out", out, "--escape-formulas", "--batch-size", "1")
    run("explain", spectra_run, *options)
    whole = out.read_bytes()
    rows = list(csv.DictReader(whole.decode().splitlines()))
    assert [row["text"] for row in rows] == [f"'{text}" for text in texts[:5]] + texts[5:]
    assert "'@note" in rows[0]
    out.write_bytes(whole[:-20])
    run("explain", spectra_run, *options, "--resume")
    assert out.read_bytes() == whole
    refused("explain", spectra_run, "lovely care", "--format", "jsonl", "--escape-formulas")
