"""The page in a real browser: Debian's Chromium, driven by Playwright."""

import base64
import json
import re
from pathlib import Path

import pytest

from rationalizer.drawing.evaluation_report import Report, report_sections
from rationalizer.drawing.html import to_html_fragment
from rationalizer.server import create_app, load_models
from tests.server.conftest import listening
from tests.server.page_actions import enter, marked

playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
expect = playwright.expect

TEXT = "We found truly helpful lovely care. Expect barely musty regrettable comfort."


def test_text_and_budget_slider(page, server):
    page.goto(server)
    enter(page, TEXT)
    before = marked(page)
    assert 0 < len(" ".join(before).split()) <= 3
    assert page.locator("#amount").inner_text() == "up to 20% of the words"
    assert page.locator("#reset").is_hidden()
    assert page.locator(".ends").inner_text().split() == ["1%", "100%"]

    page.locator("#budget").focus()
    for _ in range(3):
        page.keyboard.press("PageUp")
    expect(page.locator(".method").first).to_contain_text("up to 50%")
    after = marked(page)
    assert len(" ".join(after).split()) > len(" ".join(before).split())
    assert "6 of 11 words read" in page.locator(".summary").first.inner_text()

    page.get_by_role("button", name="Reset to the model").click()
    expect(page.locator(".method").first).to_contain_text("up to 20%")
    assert marked(page) == before


def test_two_models_side_by_side(page, server):
    page.goto(server)
    page.locator("#examples button").first.click()
    marked(page)
    assert page.get_by_label("Text", exact=True).input_value() == page.locator("#examples button").first.inner_text()
    assert page.get_by_label("Both", exact=True).is_checked()
    expect(page.locator("#results article")).to_have_count(2)
    assert page.locator("#results h2").all_inner_texts()[1].startswith("sparsemax no budget")
    assert page.locator("#why").inner_text() == "sparsemax has no budget."
    page.get_by_text("sparsemax", exact=True).first.click()
    expect(page.locator("#results article")).to_have_count(1)
    assert page.locator("#budget").is_hidden()
    assert page.locator("#why").is_hidden()
    page.get_by_text("spectra", exact=True).first.click()
    expect(page.locator("#budget")).to_be_visible()


def test_downloads(page, server):
    page.goto(server)
    enter(page, TEXT)
    words = marked(page)
    found = {}
    for kind in ("HTML", "SVG", "PNG", "JSON"):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Download spectra.{kind.lower()}").click()
        assert download.value.suggested_filename == f"spectra.{kind.lower()}"
        found[kind] = Path(download.value.path()).read_bytes()
    assert found["HTML"].startswith(b"<!DOCTYPE html>")
    assert found["SVG"].startswith(b"<svg")
    assert found["PNG"].startswith(b"\x89PNG")
    size = [int(side) for side in re.search(rb'width="(\d+)" height="(\d+)', found["SVG"]).groups()]
    assert [int.from_bytes(found["PNG"][k : k + 4], "big") for k in (16, 20)] == [2 * side for side in size]
    page.goto("data:image/png;base64," + base64.b64encode(found["PNG"]).decode())
    assert page.evaluate(COLOURS) > 20  # letters are drawn, and highlights
    explanation = json.loads(found["JSON"])["explanation"]
    assert explanation["text"] == TEXT
    assert [TEXT[start:end] for start, end in explanation["spans"]] == words


# The number of colours of the image that is shown.
COLOURS = """() => {
  const image = document.querySelector("img");
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
  const pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0);
  return new Set(new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size;
}"""


def test_hostile_text_is_escaped(page, server):
    page.goto(server)
    page.get_by_label("Text", exact=True).fill(
        '<img src=x onerror="document.title=1"><script>document.title=1</script>'
    )
    page.locator("#budget").focus()
    page.keyboard.press("End")
    expect(page.locator(".method").first).to_contain_text("100%")
    assert page.title() == "rationalizer"
    assert page.locator("#results img, #results script").count() == 0
    assert "<script>" in page.locator(".rz-text").first.inner_text()


def test_empty_and_too_long_text(page, server):
    page.goto(server)
    box = page.get_by_label("Text", exact=True)
    box.fill(TEXT)
    marked(page)
    box.fill("x" * 10_001)
    page.wait_for_selector("#results:empty", state="attached")
    assert "10001 characters; the maximum is 10000" in page.locator("#length").inner_text()
    box.fill("👍" * 5001)  # 10002 of the units that JavaScript counts
    expect(page.locator("#length")).to_have_text("5001 of 10000 characters")
    box.fill("")
    expect(page.locator("#length")).to_have_text("")
    assert page.locator("#waiting").is_visible()


# WCAG contrast of a text with the nearest opaque background.


def test_keyboard_only(page, server):
    page.goto(server)
    page.wait_for_selector("#examples button")
    assert page.evaluate("document.activeElement.id") == "text"
    page.keyboard.type("lovely care")
    marked(page)
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert "budget" in reached
    assert "SVG" in reached
    assert "API documentation" in reached


SHOWN_CURVES = "#results svg:visible path"


def test_pairs(page, pair_server):
    page.goto(pair_server)
    page.get_by_label("Premise").fill("Two old nurses often help young dogs.")
    assert page.locator("#results article").count() == 0
    page.get_by_label("Hypothesis").fill("Nurses help animals.")
    page.wait_for_selector("#results article svg")
    assert "pairs of words aligned" in page.locator(".summary").first.inner_text()
    curves = page.locator(SHOWN_CURVES).count()
    page.locator("#budget").focus()
    page.keyboard.press("Home")
    expect(page.locator(".summary")).to_have_text("1 pair of words aligned")
    assert page.locator(SHOWN_CURVES).count() < curves


@pytest.fixture(scope="module")
def locked(models):
    with listening(create_app(models, token="s3cret", examples=["lovely care"])) as address:
        yield address


@pytest.fixture
def outsider(browser):
    """A page whose first requests are refused, of which the console tells."""
    page = browser.new_page()
    page.set_default_timeout(20_000)
    yield page
    page.close()


def test_token_prompt(outsider, locked):
    page = outsider
    page.goto(locked)
    field = page.get_by_label("This server needs a token")
    expect(field).to_be_focused()
    assert page.locator("main").is_hidden()
    field.fill("wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#token [role=alert]")).to_have_text("The token is wrong.")
    field.fill("s3cret")
    page.get_by_role("button", name="Continue").click()
    page.locator("#examples button").first.click()
    assert marked(page)
    assert page.locator("#token").is_hidden()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download spectra.svg").click()
    assert download.value.suggested_filename == "spectra.svg"
    page.reload()
    expect(page.locator("#examples button")).to_have_count(1)  # remembered for this tab
    page.get_by_role("link", name="API documentation").click()
    page.wait_for_selector("article")
    assert '-H "Authorization: Bearer $RATIONALIZER_TOKEN"' in page.locator("pre").first.inner_text()
    page.get_by_role("link", name="openapi.json").click()
    expect(page.locator("body")).to_contain_text('"/explain"')


def test_token_in_a_link(page, locked):
    page.goto(f"{locked}/#token=s3cret")
    page.locator("#examples button").first.click()
    assert marked(page)
    assert page.url == f"{locked}/"  # it is not left in the address
    assert page.locator("#token").is_hidden()


def test_wrong_token_in_a_link(outsider, locked):
    outsider.goto(f"{locked}/docs#token=wrong")
    expect(outsider.locator("#token [role=alert]")).to_have_text("The token is wrong.")


def test_api_documentation(page, server):
    page.goto(f"{server}/docs")
    page.wait_for_selector("article")
    assert page.locator("article .path").all_inner_texts()[0] == "/explain"
    assert f"curl {server}/explain" in page.locator("pre").first.inner_text()


def test_constraints_beside_the_slider(page, server):
    page.goto(server)
    enter(page, TEXT)
    page.locator("#budget").fill("60")
    expect(page.locator(".method").first).to_contain_text("60%")
    whole = page.get_by_role("button", name="whole sentences")
    assert whole.get_attribute("aria-pressed") == "false"
    with page.expect_response("**/explain"):
        whole.click()
    assert " ".join(marked(page)) in ("We found truly helpful lovely care.", "Expect barely musty regrettable comfort.")
    assert whole.get_attribute("aria-pressed") == "true"
    assert "whole-sentences" in page.locator("article h2").first.inner_text()

    page.get_by_label("Another constraint").fill("must=words:comfort")
    with page.expect_response("**/explain"):
        page.get_by_role("button", name="Add").click()
    assert " ".join(marked(page)) == "Expect barely musty regrettable comfort."
    with page.expect_response("**/explain"):
        page.locator("#own").click()
    marked(page)
    assert "whole-sentences" not in page.locator("article h2").first.inner_text()
    assert page.locator("#own").is_hidden()


def test_mistyped_constraint_changes_nothing_else(outsider, server):
    page = outsider
    page.goto(server)
    enter(page, TEXT)
    words = marked(page)
    offers = page.locator("#offers button").count()
    page.get_by_label("Another constraint").fill("span=1")
    page.keyboard.press("Enter")
    expect(page.locator("#constraints-problem")).to_contain_text("did you mean 'spans'?")
    assert page.locator("#problem").is_hidden()
    assert page.get_by_label("Another constraint").input_value() == "span=1"  # to be corrected
    assert page.locator("#offers button").count() == offers
    assert marked(page) == words
    page.get_by_label("Another constraint").fill("spans=1")
    page.keyboard.press("Enter")
    expect(page.locator("#offers [aria-pressed=true]")).to_have_text(["spans=1"])
    expect(page.locator("#constraints-problem")).to_be_hidden()


def test_examples_with_the_same_beginning(browser, models):
    alike = "We stayed here for three nights in June and the room was "
    with listening(
        create_app(models, examples=[f"{alike}lovely.", f"{alike}dirty.", "Slow careless staff."])
    ) as address:
        page = browser.new_page()
        page.goto(address)
        chips = page.locator("#examples button")
        chips.first.wait_for()
        assert chips.all_inner_texts() == ["… lovely.", "… dirty.", "Slow careless staff."]
        chips.nth(1).click()
        assert page.get_by_label("Text", exact=True).input_value() == f"{alike}dirty."
        page.close()


def test_dataset_view(page, models):
    texts = models[0].model.explain(["lovely care", "dirty room"])
    view = to_html_fragment(report_sections(Report(title="", scores=None, explanations=texts, truths=None)))
    with listening(create_app(models, views={"spectra": view}, dataset="mine.csv")) as address:
        page.goto(address)
        expect(page.locator("#dataset-name")).to_have_text("Rationales in mine.csv")
        assert page.locator("#dataset > details > summary").all_inner_texts() == ["spectra"]
        page.locator("#dataset > details > summary").click()
        page.locator("#dataset summary", has_text="1 of 1").first.click()
        expect(page.locator("#dataset details details .rz-text").first).to_be_visible()
        assert page.evaluate("getComputedStyle(document.querySelector('h1')).fontSize") == "25.6px"  # as before


def test_search_among_many_labels(page, server):
    """Only the most probable labels are drawn; the others are found by their names."""
    names = [f"topic {k:03}" for k in range(300)]
    own = [{"name": name, "spans": [[2, 8], [9, 13]] if k == 7 else []} for k, name in enumerate(names)]

    def many(route):
        answer = route.fetch().json()
        probabilities = {name: k / 1000 for k, name in enumerate(names)}
        answer["explanations"][0] |= {"probabilities": probabilities, "labels": own, "separate": True}
        route.fulfill(json=answer)

    page.route("**/explain", many)
    page.goto(server)
    enter(page, "🙂 lovely care")
    field = page.get_by_label("Find a label").first
    found = page.locator(".found").first.locator("li")
    field.fill("TOPIC 00")
    expect(found).to_have_count(9)
    assert found.first.inner_text().split() == ["topic", "009", "0.9%"]
    assert found.last.inner_text() == "2 more"
    field.fill("007")
    expect(found).to_have_text(["topic 0070.7%lovely ... care"])
    field.fill("weather")
    expect(found).to_have_text(["no such label"])


def test_recovers_when_the_server_returns(outsider, models):
    page = outsider
    with listening(create_app(models)) as address:
        page.goto(address)
        page.get_by_label("Text", exact=True).fill(TEXT)
        marked(page)
    page.get_by_label("Text", exact=True).fill(f"{TEXT} Again.")
    expect(page.locator("#problem")).to_have_text("The server does not answer; trying again.")
    with listening(create_app(models), port=int(address.rpartition(":")[2])):
        assert marked(page)
        expect(page.locator("#problem")).to_be_hidden()
        assert page.get_by_label("Text", exact=True).input_value() == f"{TEXT} Again."


@pytest.fixture(scope="module")
def both_kinds(spectra_run, pair_run):
    examples = ["A warm, funny film.", ("Two nurses help boys.", "Two medics help boys.")]
    with listening(create_app(load_models([spectra_run, pair_run]), examples=examples)) as address:
        yield address


def test_models_of_both_kinds(page, both_kinds):
    page.goto(both_kinds)
    expect(page.locator("#models label")).to_have_text(["spectra", "matching"])  # and not both at once
    assert page.locator("#premise").is_hidden()
    page.get_by_role("button", name="A warm, funny film.").click()
    assert marked(page)

    page.get_by_text("matching", exact=True).click()
    expect(page.locator("#premise")).to_be_visible()
    assert page.locator("#text").is_hidden()
    assert page.locator("#lead").inner_text().startswith("A classifier of pairs")
    expect(page.locator("#examples button")).to_have_text(["Two nurses help boys.Two medics help boys."])
    page.locator("#examples button").click()
    expect(page.locator("#results article h2")).to_contain_text("matching")

    page.get_by_text("spectra", exact=True).click()
    assert page.locator("#text").input_value() == "A warm, funny film."
    expect(page.locator("#results article h2")).to_contain_text("spectra")
    assert marked(page)


def test_constraints_of_pairs(outsider, both_kinds):
    page = outsider  # the console tells of the request that is refused
    page.goto(both_kinds)
    page.get_by_role("button", name="whole sentences").click()
    page.get_by_text("matching", exact=True).click()
    expect(page.locator("#own")).to_be_hidden()  # what held for single texts does not for pairs
    expect(page.get_by_label("Another constraint")).to_have_attribute("placeholder", re.compile("align"))
    page.get_by_label("Premise").fill("Two old nurses help dogs.")
    page.get_by_label("Hypothesis").fill("Dogs help two nurses.")
    page.get_by_role("button", name="exactly 1 pair").click()
    expect(page.locator(".summary")).to_have_text("1 pair of words aligned")
    expect(page.locator("#results h2")).to_contain_text("exactly-k=1")

    page.get_by_role("button", name="equal words aligned").click()
    problem = page.locator("#constraints-problem")
    expect(problem).to_contain_text(
        "the pair ('Two old nurses help dogs.' / 'Dogs help two nurses.') under exactly-k=1"
    )
    expect(problem).to_contain_text("no alignment by budget")
    expect(page.locator("#results article")).to_have_count(0)

    page.get_by_role("button", name="no crossing links").click()
    expect(problem).to_contain_text("must be aligned (must-align=equal), but they cross; leave a constraint out")
    page.locator("#own").click()
    expect(page.locator(".summary")).to_have_text("2 pairs of words aligned")
    expect(problem).to_be_hidden()
