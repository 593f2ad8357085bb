"""The annotation page: what it answers, and what people do on it in a real browser."""

import json
from itertools import pairwise

import pytest

from rationalizer import Rationalizer
from rationalizer.data import Labels, read_examples
from rationalizer.data.annotation_file import AnnotationFile, text_row
from rationalizer.data.single_examples import make_example, make_pair
from rationalizer.drawing.html import Section, to_html_page
from rationalizer.inference import open_corrections
from rationalizer.server import create_app
from rationalizer.server.annotation_routes import create_annotation_app
from rationalizer.server.annotation_task import AnnotationTask, shuffled
from tests.server.conftest import listening, local_client

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
HEADER = {"pairs": False, "multi": False, "task": "classification", "rule": "words", "classes": ["bad", "good"]}
JSON = {"Content-Type": "application/json"}
TEXTS = ("The acme room was 👍 spotless, truly lovely.", "Rude staff!", "Acme again.")


@pytest.fixture
def file(tmp_path):
    return AnnotationFile.open(
        tmp_path / "x.jsonl", HEADER, [text_row(make_example(text=text), "good") for text in TEXTS]
    )


def last(file):
    return json.loads(file.path.read_text().splitlines()[-1])


def test_endpoints(file, spectra_run):
    task = AnnotationTask(file, model=Rationalizer.load(spectra_run), order=shuffled(list(file.content.by_id)))
    with local_client(create_annotation_app(task)) as client:
        first, *others = client.get("/queue?person=Ana").json()["todo"]
        assert sorted([first, *others]) == sorted(file.content.by_id)
        shown = client.get(f"/texts/{first}?person=Ana").json()
        assert shown["model"]["label"] in ("negative", "positive")
        body = {"id": first, "annotator": "Ana", "label": "good", "rationale_chars": [[0, 4]], "seconds": 2.5}
        assert client.post("/annotations", json=body).status_code == 200
        assert client.get("/queue?person=Ana").json() == {"todo": others, "done": [first]}
        assert client.get("/queue?person=Ben").json()["todo"] == others  # one person for each text
        assert client.get("/task").json()["people"] == {"Ana": {"texts": 1, "seconds": 2.5}}
        (agreement,) = client.get("/agreement").json()
        assert (agreement["people"], agreement["texts"]) == (["the model", "Ana"], 1)
        words = {k: [start, end] for k, start, end in shown["parts"][0]["words"]}
        own = shown["suggested"]["words"]
        for chosen, f1 in ((own, 1), (words.keys() - own, 0), (own, 1)):
            client.post("/annotations", json={**body, "rationale_chars": [words[k] for k in chosen]})
            assert client.get("/agreement").json()[0]["token_f1"] == f1
            tokens = [shown["parts"][0]["text"][slice(*words[k])] for k in own]
            assert last(file).get("removed_words", []) == sorted(set(tokens) if chosen != own else set())
        client.post("/annotations", json=body)
        assert client.get("/agreement").json() == [agreement]

        for wrong, word in (
            ({"label": "fine"}, "label"),
            ({"label": ["good"]}, "one label"),
            ({"rationale_chars": [[0, 400]]}, "not in the text"),
            ({"alignment": [[0, 0]]}, "not in the text"),
            ({"id": "0"}, "no text"),
            ({"annotator": " "}, "name"),
            ({"annotator": "\ud800"}, "surrogate"),
            ({"id": "\ud800"}, "unicode"),
            ({"label": "\ud800"}, "surrogate"),
            ({"seconds": float("inf")}, "10"),
            ({"seconds": float("nan")}, "0"),
            ({"label": float("inf")}, "valid"),
            ({"rationale_chars": [[0, 10**30]]}, "not in the text"),
            ({"other": 1}, "extra"),
        ):
            before = file.path.read_bytes()
            answer = client.post("/annotations", content=json.dumps({**body, **wrong}), headers=JSON)
            assert answer.status_code == 422, wrong
            assert word in answer.json()["error"]["problem"].lower()
            assert file.path.read_bytes() == before
        for words in (["two words"], [""], ["\ud800"], [1], None):
            answer = client.post("/never", content=json.dumps({"annotator": "Ana", "never": words}), headers=JSON)
            assert answer.status_code == 422
            assert answer.json()["error"]["remedy"]
        for texts in (["a " * 10_000], ["\ud800"], [""], [], ["a", "b"]):
            answer = client.post("/draw", content=json.dumps({"texts": texts}), headers=JSON)
            assert answer.status_code in (413, 422)
            assert answer.json()["error"]["remedy"]
        for content in (b"[" * 100_000, b'{"id": 1e999}', b"\xff"):
            assert client.post("/annotations", content=content, headers=JSON).status_code in (400, 422)
        assert client.get("/task").status_code == 200
        assert client.get("/task", headers={"Host": "evil.example"}).status_code == 421
        assert client.post("/annotations", content=json.dumps(body)).status_code == 422  # as foreign pages send it

        drawn = client.post("/draw", json={"texts": ["A new text."]}).json()
        assert client.post("/annotations", json={**body, "id": drawn["id"]}).status_code == 200
        assert file.content.by_id[drawn["id"]]["text"] == "A new text."


def test_numbers(tmp_path):
    header = {**HEADER, "task": "regression", "classes": []}
    file = AnnotationFile.open(tmp_path / "n.jsonl", header, [text_row(make_example(text=TEXTS[0]), 2.0)])
    with local_client(create_annotation_app(AnnotationTask(file, people=2))) as client:
        body = {"id": next(iter(file.content.by_id)), "rationale_chars": []}
        for name, label in (("Ana", 3), ("Ben", 4.5)):
            assert client.post("/annotations", json={**body, "annotator": name, "label": label}).status_code == 200
        answer = client.post("/annotations", json={**body, "annotator": "Ana", "label": "three"})
        assert "'three' is not a number" in answer.json()["error"]["problem"]
    (row,) = file.content.rows()
    assert row["label"] == 3.75


def begin(page, address, name):
    page.goto(address)
    page.get_by_label("Your name").fill(name)
    page.keyboard.press("Enter")
    page.locator(".word").first.wait_for()


def marked(page):
    return page.locator(".word.marked").all_inner_texts()


@pytest.fixture
def address(file):
    with listening(create_annotation_app(AnnotationTask(file, people=2))) as address:
        yield address


def test_marking_by_mouse_and_keyboard(page, address, file):
    begin(page, address, "Ana")
    word = page.locator(".word")
    word.nth(5).click()
    assert marked(page) == ["spotless"]
    start, end = word.nth(6).bounding_box(), word.nth(7).bounding_box()
    page.mouse.move(start["x"] + 3, start["y"] + 9)
    page.mouse.down()
    page.mouse.move(end["x"] + 3, end["y"] + 9, steps=4)
    page.mouse.up()
    assert marked(page) == ["spotless", "truly", "lovely"]
    page.keyboard.press("u")
    assert marked(page) == ["spotless"]
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowRight")
    assert marked(page) == ["The", "acme", "spotless"]
    page.keyboard.press("x")
    expect(page.locator(".word.never")).to_have_text(["acme"])
    expect(page.locator("#words-never")).to_contain_text("acme")
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(page.locator(".words")).to_have_text("Rude staff!")
    saved = last(file)
    assert (saved["label"], saved["rationale_chars"]) == ("bad", [[0, 8], [20, 28]])  # in characters, not UTF-16 units
    assert file.content.never == {"Ana": ["acme"]}
    (example, *_) = read_examples(file.path, labels=Labels("classification", ("bad", "good")))
    assert [example.tokens[k] for k in example.annotated] == ["The", "acme", "spotless"]

    page.get_by_role("button", name="Not enough here").click()
    expect(page.locator("#labels [aria-pressed=true]")).to_have_count(0)
    page.keyboard.press("Enter")  # saves, and does not click the button again
    expect(page.locator(".word.never")).to_have_text(["Acme"])  # wherever it is
    assert last(file)["not_enough"] is True
    page.reload()
    page.keyboard.press("Enter")  # the name is remembered
    expect(page.locator("#progress")).to_contain_text("Ana: 2 of 3")
    expect(page.locator(".words")).to_have_text("Acme again.")
    page.get_by_role("button", name="Back").click()
    expect(page.locator("#not-enough")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Back").click()
    expect(page.locator(".word.marked")).to_have_text(["The", "acme", "spotless"])


@pytest.mark.parametrize("width", [390, 1100])
def test_order_on_the_page(page, address, width):
    page.set_viewport_size({"width": width, "height": 800})
    begin(page, address, "Ana")
    boxes = [page.locator(part).bounding_box() for part in ("#question", "#texts", "#labels", "#never", "#save")]
    assert all(one["y"] + one["height"] <= other["y"] for one, other in pairwise(boxes))
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_key_held_down_acts_once(page, address, file):
    begin(page, address, "Ana")
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.down("Space")  # repeats from the second on
    assert marked(page) == ["The"]
    page.keyboard.up("Space")
    page.keyboard.down("Enter")
    expect(page.locator(".words")).to_have_text(TEXTS[1])
    for _ in range(3):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    page.evaluate("for (let k = 0; k < 2; k += 1) document.getElementById('save').click()")  # before the server answers
    expect(page.locator(".words")).to_have_text(TEXTS[2])
    assert len(file.content.people) == 2
    assert len(file.path.read_text().splitlines()) == 1 + len(TEXTS) + 2


def test_the_last_text_can_be_opened_again(page, address, file):
    begin(page, address, "Ana")
    for text in TEXTS:
        expect(page.locator(".words")).to_have_text(text)
        page.keyboard.press("Enter")
    expect(page.locator("#finished")).to_be_visible()
    page.locator("#agreement summary").click()
    expect(page.locator("#agreement")).to_contain_text("No text has been annotated")
    for again in range(2):
        if again:
            page.reload()
            page.keyboard.press("Enter")
        page.get_by_role("button", name="Back to the last text").click()
        expect(page.locator(".words")).to_have_text(TEXTS[2])
        page.locator(".word").nth(again).click()
        page.keyboard.press("Enter")
        expect(page.locator("#finished")).to_be_visible()
    assert last(file)["rationale_chars"] == [[0, 10]]


def test_two_people_at_once(page, browser, address, file):
    other = browser.new_page()
    for name, each in (("Ana", page), ("Ben", other)):
        begin(each, address, name)
    for number, (each, key) in enumerate(((page, "1"), (other, "2"), (page, "1"), (other, "2"))):
        each.locator(".word").nth(1).click()
        each.keyboard.press(key)
        each.keyboard.press("Enter")
        expect(each.locator("#progress")).to_contain_text(f"{number // 2 + 1} of 3")
    assert [people.keys() for people in file.content.people.values()] == [{"Ana", "Ben"}] * 2
    page.locator("#agreement summary").click()
    expect(page.locator("#agreement td")).to_have_text(["Ana and Ben", "2", "1.00", "0.00"])
    other.close()


def test_a_save_that_fails_loses_nothing(browser, file):
    page = browser.new_page()
    with listening(create_annotation_app(AnnotationTask(file))) as address:
        begin(page, address, "Ana")
        page.locator(".word").nth(2).click()
    page.keyboard.press("x")
    expect(page.locator("#problem")).to_contain_text("does not answer")
    page.keyboard.press("Enter")
    expect(page.locator("#problem")).to_contain_text("does not answer")
    assert marked(page) == ["room"]
    with listening(create_annotation_app(AnnotationTask(file)), port=int(address.rpartition(":")[2])):
        page.keyboard.press("Enter")
        expect(page.locator(".words")).to_have_text("Rude staff!")
        expect(page.locator("#words-never")).to_contain_text("room")
    assert last(file)["rationale_chars"] == [[9, 13]]
    file.refresh()
    assert file.content.never == {"Ana": ["room"]}
    page.close()


def test_links_between_words(page, tmp_path, pair_run):
    pair = make_pair(premise="Two old nurses help.", hypothesis="Nurses work.")
    header = {**HEADER, "pairs": True, "classes": ["neutral", "entailment"]}
    file = AnnotationFile.open(tmp_path / "p.jsonl", header, [text_row(pair, "neutral")])
    with listening(create_annotation_app(AnnotationTask(file, model=Rationalizer.load(pair_run)))) as address:
        begin(page, address, "Ana")
        page.keyboard.press("c")
        expect(page.locator("#links button")).to_have_count(0)
        page.locator("#w0-2").click()
        page.locator("#w1-0").click()
        expect(page.locator("#links button")).to_have_text(["nurses – Nurses ×"])
        page.locator("#w0-3").drag_to(page.locator("#w1-1"))
        page.locator("#w0-0").focus()
        page.keyboard.press("Home")
        page.keyboard.press("Space")
        page.keyboard.press("Tab")
        page.keyboard.press("End")
        page.keyboard.press("Space")
        expect(page.locator("#lines path")).to_have_count(3)
        page.get_by_role("button", name="Remove the link help – work").click()
        page.set_viewport_size({"width": 360, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.get_by_role("button", name="Save and go on").click()
        expect(page.locator("#finished")).to_be_visible()
    assert last(file)["alignment"] == [[2, 0], [0, 1]]


def test_marking_by_touch(browser, address):
    context = browser.new_context(viewport={"width": 390, "height": 700}, has_touch=True, is_mobile=True)
    page = context.new_page()
    begin(page, address, "Ana")
    page.locator(".word").nth(2).tap()
    page.locator(".word").nth(5).tap()
    assert marked(page) == ["room", "spotless"]
    page.get_by_role("button", name="A word must never count").tap()
    page.locator(".word").nth(1).tap()
    expect(page.locator(".word.never")).to_have_text(["acme"])
    assert marked(page) == ["room", "spotless"]
    context.close()


def test_correct_this(page, browser, models, tmp_path):
    task = AnnotationTask(open_corrections(tmp_path / "c.jsonl", models[0].model.trained), model=models[0].model)
    with listening(create_app(models, corrections=task)) as address:
        page.goto(address)
        page.get_by_label("Text", exact=True).fill("A lovely room & rude staff.")
        with page.expect_popup() as opened:
            page.get_by_role("link", name="Correct this").first.click()
        other = opened.value
        other.get_by_label("Your name").fill("Ana")
        other.keyboard.press("Enter")
        expect(other.locator(".words")).to_have_text("A lovely room & rude staff.")
        assert len(task.file.path.read_text().splitlines()) == 1  # nothing is written before it is saved
        other.keyboard.press("c")
        other.locator(".word").nth(3).click()
        other.keyboard.press("1")
        other.keyboard.press("Enter")
        expect(other.locator("#finished")).to_be_visible()
    (row,) = task.file.content.rows()
    assert row == {"text": "A lovely room & rude staff.", "label": "negative", "rationale_chars": [[[16, 20]]]}


def test_correct_this_in_a_report(page, models, pair_run, tmp_path):
    pairs, texts = Rationalizer.load(pair_run), models[0].model
    odd = "A 50% + 👍\n& <b>lovely</b> room # 1."
    for model, given, parts in (
        (texts, odd, [odd]),
        (pairs, ("Two & more run.", "Dogs?"), ["Two & more run.", "Dogs?"]),
    ):
        task = AnnotationTask(open_corrections(tmp_path / f"{len(parts)}.jsonl", model.trained), model=model)
        with listening(create_annotation_app(task)) as address:
            (explanation,) = model.explain([given])
            page.set_content(
                to_html_page(title="", sections=[Section(explanations=[explanation], correct=f"{address}/")])
            )
            page.get_by_role("link", name="Correct this").click()
            page.get_by_label("Your name").fill("Ana")
            page.keyboard.press("Enter")
            page.locator(".word").first.wait_for()
            assert page.locator(".words").evaluate_all("all => all.map(one => one.textContent)") == parts
            page.keyboard.press("1")
            page.keyboard.press("Enter")
            expect(page.locator("#finished")).to_be_visible()
            (row,) = task.file.content.rows()
            assert [row[name] for name in ("text", "premise", "hypothesis") if name in row] == parts


def test_no_corrections_without_the_option(client):
    assert "corrections" not in client.get("/models").json()
    assert client.get("/annotate/").status_code == 404


def test_several_labels(page, tmp_path):
    texts = [text_row(make_example(text=text), label) for text, label in ((TEXTS[0], ["bad"]), (TEXTS[1], []))]
    header = {**HEADER, "multi": True, "task": "multi-label"}
    file = AnnotationFile.open(tmp_path / "m.jsonl", header, texts)
    with listening(create_annotation_app(AnnotationTask(file))) as address:
        begin(page, address, "Ana")
        page.keyboard.press("2")
        page.keyboard.press("Enter")
        expect(page.locator(".words")).to_have_text(TEXTS[1])
        page.keyboard.press("Enter")
        expect(page.locator("#finished")).to_be_visible()
    assert [row["label"] for row in file.content.rows()] == [["bad", "good"], []]
