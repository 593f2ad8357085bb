"""Chromium for the tests of static pages."""

import runpy
from pathlib import Path

import pytest

PARITY = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "browser_parity.py"))


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    if PARITY["CHROMIUM"] is None:
        pytest.skip("the browser tests need Chromium (apt-get install chromium)")
    playwright.expect.set_options(timeout=60_000)  # the machine may be busy
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=PARITY["CHROMIUM"], args=["--no-sandbox"])
        yield browser
        browser.close()


def run_in_page(browser, address, function, argument):
    """Call a JavaScript function on a page of the address."""
    page = browser.new_page()
    page.goto(f"{address}style.css")
    answer = page.evaluate(function, argument)
    page.close()
    return answer
