"""The site builds without warnings (a broken link is one), documents every public name, and works offline."""

import importlib
import re
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT

DOCUMENTED = ["ops", "graph", "constraints", "nn", "data", "metrics"]
DOCUMENTED += ["models", "training", "inference", "drawing", "hub", "records", "bulk", "export"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    # Not --quiet: --strict only counts warnings that are printed.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def anchor_of(package, name):
    """The anchor of a public name: the module that defines it, or for values the package."""
    home = getattr(getattr(package, name), "__module__", None) or ""
    defined = home.startswith("rationalizer") and hasattr(importlib.import_module(home), name)
    return f"{home if defined else package.__name__}.{name}"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_reference_is_complete(site, name):
    package = importlib.import_module(f"rationalizer.{name}")
    pages = [site / "reference" / f"{page}.html" for page in ("rationalizer", "text", "ops", name)]
    anchors = {anchor for page in pages for anchor in re.findall(r'id="([^"]*)"', page.read_text(encoding="utf-8"))}
    missing = [public for public in package.__all__ if anchor_of(package, public) not in anchors]
    assert not missing, f"docs/reference/{name}.md lacks {missing}"


def test_site_loads_no_external_files(site):
    tags = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
    for page in site.rglob("*.html"):
        assert not tags.findall(page.read_text(encoding="utf-8")), page
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_field_comments_are_shown(site):
    page = (site / "reference" / "models.html").read_text(encoding="utf-8")
    assert "epochs without improvement on dev" in page


def test_docstring_examples_are_code_blocks(site):
    for page in (site / "reference").glob("*.html"):
        assert "<blockquote>" not in page.read_text(encoding="utf-8"), page
