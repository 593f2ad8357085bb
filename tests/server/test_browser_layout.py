"""The page in Chromium: contrast, narrow screens, wide drawings, printing."""

from dataclasses import replace

import pytest

from rationalizer import Rationalizer
from rationalizer.drawing import Section, to_html_page
from rationalizer.drawing.charts import histogram
from rationalizer.drawing.evaluation_report import Report, evaluation_report
from tests.server.page_actions import marked

playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
expect = playwright.expect
TEXT = "We found truly helpful lovely care. Expect barely musty regrettable comfort."
CONTRAST = """(selectors) => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = channels(colour).map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const colour = getComputedStyle(element).backgroundColor;
      if ((channels(colour)[3] ?? 1) === 1) return colour;
    }
  };
  return selectors.map((selector) => {
    const element = document.querySelector(selector);
    const [a, b] = [light(getComputedStyle(element).color), light(ground(element))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  });
}"""
SHOWN_CURVES = "#results svg:visible path"


def test_long_premise_is_not_clipped(browser, pair_server):
    """Also where the browser does not know field-sizing."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.add_init_script("CSS.supports = () => false")
    page.goto(pair_server)
    page.add_style_tag(content="textarea { field-sizing: fixed !important }")
    premise = page.get_by_label("Premise", exact=True)
    hidden = "(field) => field.scrollHeight - field.clientHeight"
    premise.fill("Two extraordinarily old nurses often help young dogs in the evening. " * 3)
    page.get_by_label("Hypothesis").fill("Nurses help animals.")
    page.wait_for_selector("#results article svg:visible")
    assert premise.evaluate(hidden) == 0
    fitted = premise.get_attribute("style")
    premise.fill("Two nurses.")
    expect(premise).not_to_have_attribute("style", fitted)
    assert premise.bounding_box()["height"] < 100
    page.close()


def test_contrast_and_narrow_screens(page, server):
    page.goto(server)
    page.get_by_label("Text", exact=True).fill(f"{TEXT} {'long' * 60}")
    marked(page)
    parts = ["h1", "#lead", "label[for=text]", "#why", ".rz-text", ".summary", ".downloads"]
    for width in (320, 1100):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for scheme, ground in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(24, 28, 31)")):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("getComputedStyle(document.querySelector('article')).backgroundColor") == ground
            assert min(page.evaluate(CONTRAST, parts)) >= 4.5


def test_pair_drawings_fit_phones(page, pair_server):
    page.goto(pair_server)
    page.get_by_label("Premise").fill("Two extraordinarily old nurses often help young dogs in the evening.")
    page.get_by_label("Hypothesis").fill("Nurses help animals.")
    for width in (390, 1100):
        page.set_viewport_size({"width": width, "height": 800})
        page.locator("#results svg:visible").wait_for()
        assert page.locator("#results svg:visible").count() == 1
        drawing = page.locator("#results svg:visible").bounding_box()
        frame = page.locator("#results .rz-drawing:visible")
        assert frame.evaluate("(one) => one.scrollWidth - one.clientWidth") == 0  # nothing to scroll to
        assert drawing["x"] + drawing["width"] <= width
        # Letters keep their size, but for a little.
        assert page.locator("#results svg:visible").evaluate("(one) => one.getScreenCTM().a") > 0.9


def test_wide_drawings_scroll_on_narrow_pages(browser, pair_run):
    pair = Rationalizer.load(pair_run).explain("Two old nurses help young dogs.", "Nurses help animals.")
    plot = histogram([1, 2], title="sizes", x_label="words")
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.set_content(to_html_page([pair], title="narrow", sections=[Section("Sizes", pictures=[plot])]))
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    drawing, plotted = page.evaluate("[...document.querySelectorAll('svg')].map((svg) => svg.clientWidth)")
    assert plotted == 480
    assert 250 < drawing < 480  # as much as its words take
    frames = page.evaluate("[...document.querySelectorAll('.rz-drawing, .picture')].map((one) => one.scrollWidth)")
    assert frames == [max(drawing, page.locator(".rz-drawing").evaluate("(one) => one.clientWidth")), 480]
    page.close()


@pytest.mark.parametrize("width", [390, 1100])
def test_all_columns_of_many_classes_are_visible(browser, models, width):
    explanation = models[0].model.explain("lovely care")
    names = [f"city of {name}" for name in ("Bangkok", "Bucharest", "Rome", "Athens")] * 13
    names = [f"{name} {k}" for k, name in enumerate(names)]
    texts = [replace(explanation, label=name, probabilities=dict.fromkeys(names, 1 / len(names))) for name in names]
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.set_content(evaluation_report(Report(title="cities", scores=None, explanations=texts, truths=names)))
    tables = page.locator("section .scroll")
    assert tables.count() == 1  # there is no confusion to list
    assert tables.first.evaluate("(one) => one.scrollWidth - one.clientWidth") == 0
    heights = tables.first.locator("td:first-child").evaluate_all("(all) => all.map((one) => one.clientHeight)")
    assert len(heights) == len(names)
    assert width == 390 or max(heights) < 40  # on one line, but for phones
    page.close()


def test_phone(page, server):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(server)
    marked(page)  # the first example
    chips = page.locator("#examples button")
    expect(chips.first).to_have_attribute("aria-pressed", "true")
    assert page.locator("#budget").is_hidden()
    assert "up to 20% of the words" in page.locator("#settings summary").inner_text()
    chips.nth(1).click()
    expect(chips.nth(1)).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#results .rz-text").first).to_be_in_viewport(ratio=0.5)
    page.get_by_label("Text", exact=True).fill("lovely care")
    expect(page.locator("#examples [aria-pressed=true]")).to_have_count(0)
    page.locator("#settings summary").click()
    expect(page.locator("#budget")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_prints_in_light_colours(browser, server):
    page = browser.new_page(color_scheme="dark")
    page.goto(server)
    page.get_by_label("Text", exact=True).fill(TEXT)
    marked(page)
    ink = "getComputedStyle(document.querySelector('.rz-text')).color"
    ground = "getComputedStyle(document.querySelector('article')).backgroundColor"
    assert page.evaluate(ink) == "rgb(230, 232, 234)"
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(ink) == "rgb(31, 35, 40)"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.close()
