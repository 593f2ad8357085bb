import json
import multiprocessing
import os
import signal
from dataclasses import replace

import pytest

from rationalizer.data import DataError, Labels, load, read_examples
from rationalizer.data.annotation_file import AnnotationFile, text_row
from rationalizer.data.single_examples import make_example, make_pair

HEADER = {"pairs": False, "multi": False, "task": "classification", "rule": "words", "classes": ["bad", "good"]}
TEXTS = {"a": ("A warm film.", "good"), "b": ("Dull!", "bad"), "c": ("So so.", None), "d": ("Hm.", "good")}


def rows():
    return [text_row(make_example(text=text), label) for text, label in TEXTS.values()]


@pytest.fixture
def file(tmp_path):
    return AnnotationFile.open(tmp_path / "x.jsonl", HEADER, rows())


def ids(file):
    return dict(zip(TEXTS, file.content.by_id, strict=True))


def annotate(file, key, person, **row):
    file.append({"id": ids(file)[key], "annotator": person, **row})


def test_rows_of_several_people(file):
    annotate(file, "a", "Ana", label="good", rationale_chars=[[0, 1]])
    annotate(file, "a", "Ana", label="bad", rationale_chars=[[2, 6]])  # her last one holds
    annotate(file, "a", "Ben", label="good", rationale_chars=[[2, 11]])
    annotate(file, "b", "Ana", not_enough=True)
    annotate(file, "c", "Ana", label="bad", rationale_chars=[])
    found = {row["text"]: row for row in file.content.rows()}
    assert found["A warm film."]["label"] == "good"  # one for each; the data decide
    assert "Dull!" not in found
    assert found["So so."] == {"text": "So so.", "label": "bad", "rationale_chars": [[]]}

    first, second, third = read_examples(file.path, labels=Labels("classification", ("bad", "good")))
    assert first.annotator_masks == ((False, True, False, False), (False, True, True, False))
    assert first.annotation == (False, True, True, False)
    assert second.annotation == (False, False, False)
    assert (third.text, third.annotation) == ("Hm.", None)
    assert [example.label for example in (first, second, third)] == [1, 0, 1]


def test_training_splits_and_label_columns(file):
    corpus = load(str(file.path))
    assert corpus.classes == ("bad", "good")
    assert len(corpus.train) + len(corpus.dev) == 3  # without the text that has no label


def test_several_labels_and_never(file):
    for person, labels in (("Ana", ["bad", "good"]), ("Ben", ["good"]), ("Cy", ["good"])):
        annotate(file, "a", person, label=labels)
    assert next(file.content.rows())["label"] == ["good"]
    file.append({"annotator": "Ana", "never": ["Acme"]}, {"annotator": "Ben", "never": ["acme", "Globex"]})
    assert file.content.never_words() == ("acme", "globex")
    file.append({"annotator": "Ben", "never": []})
    assert file.content.never_words() == ("acme",)


def test_words_that_people_unmarked_again_and_again(tmp_path):
    texts = [text_row(make_example(text=f"{word} film, A warm {k}."), "good") for k, word in enumerate("aaab")]
    file = AnnotationFile.open(tmp_path / "r.jsonl", HEADER, texts)
    for k, (key, removed) in enumerate(zip(file.content.by_id, ("Film a", "film a", "film A warm", "a"), strict=True)):
        spans = [[8, 9]] if k == 3 else []  # a word that somebody marked may be a reason elsewhere
        row = {"id": key, "annotator": "Ana", "label": "good", "rationale_chars": spans}
        file.append(row | {"removed_words": removed.split()})
    assert file.content.removed_words() == {"film": 3}
    found = read_examples(file.path, labels=Labels("classification", ("bad", "good")))
    flagged = [[one.tokens[k] for k, on in enumerate(one.removed or ()) if on] for one in found]
    assert flagged == [["film"], ["film"], ["film"], []]
    path = tmp_path / "disk"
    corpus = load(str(file.path), cache_dir=path)
    assert sorted(bool(one.removed) for one in [*corpus.train, *corpus.dev]) == [False, True, True, True]
    plain = [replace(example, removed=None) for example in corpus.train]
    assert replace(corpus, train=plain).digest_with_annotations != corpus.digest_with_annotations


def test_pairs(tmp_path):
    pair = make_pair(premise="A man plays.", hypothesis="Somebody plays.")
    file = AnnotationFile.open(tmp_path / "p.jsonl", {**HEADER, "pairs": True}, [text_row(pair, "good")])
    for person, links in (("Ana", [[1, 0]]), ("Ben", [[1, 0], [2, 1]])):
        file.append({"id": next(iter(file.content.by_id)), "annotator": person, "label": "bad", "alignment": links})
    (example,) = read_examples(file.path, labels=Labels("classification", ("bad", "good")))
    assert (example.alignment, example.label) == (((1, 0), (2, 1)), 0)
    with pytest.raises(DataError, match="pairs of texts"):
        AnnotationFile.open(file.path, HEADER)


def test_tokens_survive_as_they_are(tmp_path):
    example = make_example(tokens=["don't", "@-@", "go"], mask=[0, 1, 1])
    file = AnnotationFile.open(tmp_path / "t.jsonl", HEADER, [text_row(example, "bad", tokenized=True)])
    (read,) = read_examples(file.path, labels=Labels("classification", ("bad", "good")), rule="spaces")
    assert (read.tokens, read.annotation) == (example.tokens, example.annotation)


def test_a_line_that_was_cut_off_does_not_count(file):
    annotate(file, "a", "Ana", label="bad", rationale_chars=[[0, 1]])
    with file.path.open("ab") as raw:
        raw.write(b'{"id": "12", "annotator": "An')
    assert next(file.content.rows())["label"] == "bad"
    assert len(load(str(file.path)).train) == 2
    again = AnnotationFile.open(file.path, HEADER, rows())
    annotate(again, "b", "Ana", label="good")
    lines = [json.loads(line) for line in file.path.read_text().splitlines()]
    assert len(lines) == 1 + len(TEXTS) + 2
    file.refresh()
    assert list(file.content.people.values())[1]["Ana"]["label"] == "good"


def test_other_files_are_left_alone(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"text": "a", "label": 1}\n')
    with pytest.raises(DataError, match="not a file of annotations"):
        AnnotationFile.open(path, HEADER)
    assert path.read_text() == '{"text": "a", "label": 1}\n'


def write(path, person, ready):
    texts = [text_row(make_example(text=f"Text {k}.")) for k in range(50)]
    file = AnnotationFile.open(path, HEADER, texts)
    for text in texts:
        file.append({"id": text["id"], "annotator": person, "label": "good", "rationale_chars": [[0, 4]]})
    ready.set()
    signal.pause()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_two_processes_lose_nothing_even_if_killed(tmp_path):
    path, forks = tmp_path / "both.jsonl", multiprocessing.get_context("fork")
    ready = [forks.Event() for _ in range(2)]
    writers = [forks.Process(target=write, args=(path, *each)) for each in zip(("Ana", "Ben"), ready, strict=True)]
    for writer in writers:
        writer.start()
    for writer, event in zip(writers, ready, strict=True):
        assert event.wait(60)
        writer.kill()
        writer.join()
    file = AnnotationFile.open(path, HEADER)
    assert len(file.content.texts) == 50  # created by both at once
    assert all(people.keys() == {"Ana", "Ben"} for people in file.content.people.values())
    assert len(file.content.people) == 50


@pytest.mark.parametrize(
    "line",
    [
        {"id": {}, "text": "a"},
        {"id": "1", "annotator": ["Ana"]},
        {"id": "1", "annotator": "Ana", "seconds": float("inf")},
        {"id": "1", "annotator": "Ana", "seconds": "4"},
        {"id": "1", "annotator": "Ana", "not_enough": 3},
        {"annotator": "Ana", "never": "acme"},
        {"annotator": "Ana", "never": [1]},
        {"never": ["acme"]},
        {"rationalizer": "annotations", "version": 1},
        {"rationalizer": "annotations", "version": 1, **HEADER, "classes": {}},
        5,
        None,
        [["id"]],
    ],
)
def test_foreign_lines_are_an_error(file, line):
    with file.path.open("a") as raw:
        raw.write(json.dumps(line) + "\n")
    with pytest.raises(DataError, match=r"x\.jsonl, line 6: .* is not a line of an annotation file; remove the line"):
        file.refresh()
    with pytest.raises(DataError, match="line 6"):
        load(str(file.path))
