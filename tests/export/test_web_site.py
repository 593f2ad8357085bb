"""The static page in a real browser: Debian's Chromium, driven by Playwright."""

import json
import random
import re
import runpy
import shutil
from pathlib import Path

import pytest
import torch

from rationalizer import Rationalizer, ops
from rationalizer.constraints import CONSTRAINTS, PairLayerConstraints
from rationalizer.export import NotExportableError
from rationalizer.export.web_site import SITE_CONSTRAINTS, export_site
from rationalizer.hub import STARTERS
from rationalizer.models.atomic_files import read_record, write_record
from rationalizer.nn.aligners.matching_solver import MAP
from rationalizer.text import BUNDLED, VectorLookup, load_vectors, split_words
from rationalizer.text.word_splitting import is_punctuation
from tests.export.conftest import PARITY, run_in_page

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return export_site(["sentiment", "nli", "align"], tmp_path_factory.mktemp("site"), title="Three models")


@pytest.fixture(scope="module")
def address(site):
    with PARITY["serving"](site) as address:
        yield address


@pytest.fixture
def page(browser, address):
    """A page without console messages, and without requests to other servers."""
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.set_default_timeout(60_000)
    messages, requests = [], []
    page.on("console", lambda message: messages.append(message.text) if message.type in ("error", "warning") else 0)
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    yield page
    assert messages == []
    assert all(url.startswith((address, "data:")) for url in requests)
    page.close()


def marked(page):
    page.wait_for_selector("#results:not(.stale) article mark")
    return page.locator("#results mark").all_inner_texts()


def test_text_budget_and_constraints(page, address):
    from playwright.sync_api import expect

    page.goto(address)
    assert marked(page)[:2] == ["spotless", "rude"]
    assert page.title() == "Three models"
    expect(page.locator("#status")).to_have_text("negative, 2 of 9 words read.")
    page.get_by_label("Budget").focus()
    page.keyboard.press("End")
    expect(page.locator(".method")).to_contain_text("up to 100%")
    assert "of 9 words read" in page.locator(".summary").inner_text()
    page.get_by_role("button", name="Reset to the model").first.click()
    page.get_by_role("button", name="whole sentences").click()
    expect(page.locator(".method")).to_contain_text("whole sentences")
    page.get_by_label("Another constraint").fill("must=words:room,was,staff")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("9 words must be selected, but the budget allows 2")
    page.get_by_label("Text", exact=True).fill("<img src=x onerror='document.title=1'>")
    page.get_by_role("button", name="Reset to the model").last.click()
    expect(page.locator(".rz-text")).to_have_text("<img src=x onerror='document.title=1'>")
    page.get_by_label("Text", exact=True).fill("")
    expect(page.locator("#note")).to_have_text("Write a text, or choose an example.")


def test_pairs_fit_all_screens(page, address):
    from playwright.sync_api import expect

    page.goto(address)
    marked(page)
    page.get_by_text("nli", exact=True).click()
    expect(page.locator("#status")).to_have_text("entailment, 4 pairs of words aligned.")
    expect(page.locator(".alignment .spoken")).to_contain_text("guitar with musician")
    page.get_by_text("About this model").click()
    expect(page.locator("#model-card")).to_contain_text("captions of photographs")
    page.get_by_label("Premise").fill(
        "Two extraordinarily old nurses often help young dogs in the evening of a very long day."
    )
    page.get_by_label("Hypothesis").fill("Nurses help animals.")
    for width, layout in ((1100, "lines"), (390, "columns")):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_selector(f".alignment.{layout} path", state="attached")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    is_result_first = (
        "document.querySelector('.result').getBoundingClientRect().top < question.getBoundingClientRect().top"
    )
    assert page.evaluate(is_result_first)


def test_model_without_labels(page, address):
    from playwright.sync_api import expect

    page.goto(address)
    marked(page)
    page.get_by_text("align", exact=True).click()
    expect(page.locator("#status")).to_have_text(re.compile("no label, [0-9]+ pairs of words aligned."))
    expect(page.locator(".rz-remark")).to_contain_text("not to predict labels")
    expect(page.locator(".rz-bars")).to_have_count(0)


def test_damaged_files_are_reported(browser, site, address):
    from playwright.sync_api import expect

    damaged = site / json.loads((site / "site.json").read_text())["models"][0]["files"]["vocabulary.json"]["url"]
    content = damaged.read_bytes()
    page = browser.new_page()
    try:
        damaged.write_bytes(b"[]")
        page.goto(address)
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("missing or damaged")
    finally:
        damaged.write_bytes(content)
    alert.get_by_role("button", name="Try again").click()
    assert marked(page)
    page.close()


def test_same_answers_as_pytorch(browser, address):
    cases_script = runpy.run_path(str(SCRIPTS / "export_parity.py"))
    cases = cases_script["make_cases"](40, seed=1)
    models = {name: Rationalizer.load(name, device="cpu") for name in ("sentiment", "nli", "align")}
    page = browser.new_page()
    page.goto(f"{address}style.css")
    found = page.evaluate(PARITY["ANSWER"], cases)
    differences = [
        PARITY["difference"](cases_script["answer"](models[case["model"]], case), actual)
        for case, actual in zip(cases, found["answers"], strict=True)
    ]
    assert None not in differences
    assert max(differences) < 1e-4
    page.close()


PIECES = (
    *("film", "Wasn't", "U.S.A.", "Ph.D.", "$10.50", "3,000km", "http://a.b/c(d)", "me@x.org", ":-)", "<3", "8-)"),
    *("...", "?!", "“", '"', "'", "(", "]", "<br/>", "&amp;", "#tag", "👍🏽", "👨\u200d👩\u200d👧", "🇩🇪", "★★★"),
    *("我们喜欢", "カタカナ", "ไทย", "naïve", "ﬁne", "Straße", "\u00ad", "\u200d", "_so_", "f***ing", "AT&T", "w/o"),
    *("C++", "'90s", "10", "½", "gooood", "wonderfull", "definately", "café-bar", "\n\n", "\t", "\x1c", "\u3000"),
    *("*", "--", "e-mail", "wouldn't've"),
)


def test_words_and_vectors_are_those_of_python(browser, address):
    rng = random.Random(0)
    texts = [
        "".join(rng.choice(PIECES) + rng.choice(("", " ", " ")) for _ in range(rng.randint(1, 12))) for _ in range(300)
    ]
    lookup = VectorLookup(load_vectors(BUNDLED).words)
    tokens = [split_words(text)[0] for text in texts]
    expected = [
        [list(own), [is_punctuation(token) for token in own], [list(lookup.find_rows(token)) for token in own]]
        for own in tokens
    ]
    function = """async (texts) => {
      const { Splitter } = await import("./words.js");
      const { VectorLookup } = await import("./lookup.js");
      const { readTensors } = await import("./networks.js");
      const { shared, models } = await (await fetch("site.json")).json();
      const buffer = await (await fetch(models[0].files["vectors.safetensors"].url)).arrayBuffer();
      const lookup = new VectorLookup(new TextDecoder().decode(readTensors(buffer).get("words").data).split("\\n"));
      const splitter = new Splitter(shared.patterns, "words");
      return texts.map((text) => {
        const { tokens } = splitter.split(text);
        return [tokens, tokens.map((one) => splitter.isPunctuation(one)), tokens.map((one) => lookup.rows(one))];
      });
    }"""
    assert run_in_page(browser, address, function, texts) == expected


def _random_scores(rng, n):
    return [rng.choice((-1.0, 0.0, 0.5, 1.0, 2.0)) for _ in range(n)]  # many ties


def _random_selection(rng):
    n = rng.randint(1, 10)
    arguments = {}
    if rng.random() < 0.5:
        arguments["spans"] = rng.randint(1, 3)
    if rng.random() < 0.3:
        arguments["shortest"] = rng.randint(1, 3)
    if rng.random() < 0.3:
        arguments["longest"] = arguments.get("shortest", 1) + rng.randint(0, 2)
    if rng.random() < 0.3:
        arguments["unit"] = sorted(rng.randint(0, n) for _ in range(n))
    if rng.random() < 0.3:
        arguments |= {"group": sorted(rng.randint(0, 3) for _ in range(n)), "per_group": rng.randint(0, 2)}
    if rng.random() < 0.5:
        arguments["fixed"] = [rng.choice((0, 0, 0, 1, -1)) for _ in range(n)]
    return _random_scores(rng, n), rng.choice((0.0, 0.5, -0.5, 1.0)), rng.randint(0, n + 1), arguments


def _random_alignment(rng):
    m, n = rng.randint(1, 5), rng.randint(1, 5)
    masks = [[rng.random() < 0.9 for _ in range(size)] for size in (m, n)]
    method = rng.choice(({}, {"complete": True}, {"budget": rng.randint(0, min(map(sum, masks)))}))
    arguments = {"monotone": rng.random() < 0.4}
    if "complete" not in method and rng.random() < 0.3:
        arguments["exactly"] = rng.randint(1, 3)
    if rng.random() < 0.4:
        arguments["fixed"] = [[rng.choice((0, 0, 0, 0, 1, -1)) for _ in range(n)] for _ in range(m)]
    return [_random_scores(rng, n) for _ in range(m)], masks, method, arguments


def _solve_in_python(scores, transition, budget, arguments):
    batch = {key: torch.tensor([value]) if isinstance(value, list) else value for key, value in arguments.items()}
    try:
        return ops.spans_map(torch.tensor([scores]), budget, transition=transition, **batch)[0].int().tolist()
    except ops.InfeasibleError:
        return None


def _align_in_python(scores, masks, method, arguments):
    method = {key: torch.tensor([value]) if key == "budget" else value for key, value in method.items()}
    fixed = {"fixed": torch.tensor([arguments["fixed"]], dtype=torch.int8)} if "fixed" in arguments else {}
    constraints = PairLayerConstraints(**{**arguments, **fixed})
    try:
        z = MAP(torch.tensor([scores]), *(torch.tensor([mask]) for mask in masks), **method, constraints=constraints)[0]
    except ValueError:
        return None
    return None if z.isnan().any() else z.int().tolist()


def test_decoders_break_ties_as_in_python(browser, address):
    rng = random.Random(0)
    selections = [_random_selection(rng) for _ in range(250)]
    alignments = [_random_alignment(rng) for _ in range(250)]
    expected = [[_solve_in_python(*one) for one in selections], [_align_in_python(*one) for one in alignments]]
    function = """async ([selections, alignments]) => {
      const { bestSpans } = await import("./selection.js");
      const { bestAlignment } = await import("./alignment.js");
      return [
        selections.map(([scores, transition, budget, { per_group: perGroup, ...others }]) => {
          const y = bestSpans(Float64Array.from(scores), transition, budget, { ...others, perGroup });
          return y && [...y];
        }),
        alignments.map((one) => bestAlignment(...one)?.map((row) => [...row]) ?? null),
      ];
    }"""
    found = run_in_page(browser, address, function, [selections, alignments])
    assert [None in part for part in expected] == [True, True]
    assert found == expected


def test_all_constraints_run_in_the_browser():
    own = {name for name, kind in CONSTRAINTS.items() if kind.__module__.startswith("rationalizer.")}
    assert own == set(SITE_CONSTRAINTS)


def test_what_cannot_be_exported(tmp_path):
    folder = shutil.copytree(STARTERS["sentiment"], tmp_path / "attention")
    stored = read_record(folder / "config.json")
    config = {**stored["config"], "method": "sparsemax", "options": {"temperature": 1.0}}
    write_record(folder / "config.json", {**stored, "config": config})
    with pytest.raises(NotExportableError, match="sparsemax"):
        export_site([folder], tmp_path / "site")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="other files"):
        export_site(["sentiment"], tmp_path / "mine")
