"""The site builds without a warning (broken links are warnings), names everything public, and needs no network."""

import importlib
import re
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT

DOCUMENTED = ["ops", "graph", "constraints", "nn", "data", "metrics", "inference", "learn", "drawing", "bulk"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    # Not --quiet: what is not printed does not count as a warning.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def path_of(package, name):
    """Where a public name is defined, which is its anchor; for values, the package that shows them."""
    home = getattr(getattr(package, name), "__module__", None) or ""
    defined = home.startswith("rationalizer") and hasattr(importlib.import_module(home), name)
    return f"{home if defined else package.__name__}.{name}"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_everything_public_is_in_the_reference(site, name):
    package = importlib.import_module(f"rationalizer.{name}")
    pages = [site / "reference" / f"{page}.html" for page in ("rationalizer", name)]
    anchors = {anchor for page in pages for anchor in re.findall(r'id="([^"]*)"', page.read_text(encoding="utf-8"))}
    missing = [public for public in package.__all__ if path_of(package, public) not in anchors]
    assert not missing, f"docs/reference/{name}.md lacks {missing}"


def test_nothing_is_loaded_from_elsewhere(site):
    tags = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
    for page in site.rglob("*.html"):
        assert not tags.findall(page.read_text(encoding="utf-8")), page
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_fields_are_described_by_their_comments(site):
    page = (site / "reference" / "learn.html").read_text(encoding="utf-8")
    assert "epochs that are no better on dev" in page


def test_examples_in_docstrings_are_code(site):
    for page in (site / "reference").glob("*.html"):
        assert "<blockquote>" not in page.read_text(encoding="utf-8"), page
