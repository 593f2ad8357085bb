"""The site builds without a warning (broken links are warnings), names everything public, and needs no network."""

import importlib
import re
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT

DOCUMENTED = ["ops", "graph", "nn", "data", "metrics", "learn", "render"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("package", DOCUMENTED)
def test_everything_public_is_in_the_reference(site, package):
    pages = [site / "reference" / f"{name}.html" for name in ("rationalizer", package)]
    anchors = {anchor for page in pages for anchor in re.findall(r'id="(rationalizer[^"]*)"', page.read_text())}
    last = {anchor.rpartition(".")[2] for anchor in anchors}
    missing = set(importlib.import_module(f"rationalizer.{package}").__all__) - last
    assert not missing, f"docs/reference/{package}.md lacks {sorted(missing)}"


def test_nothing_is_loaded_from_elsewhere(site):
    tags = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
    for page in site.rglob("*.html"):
        assert not tags.findall(page.read_text(encoding="utf-8")), page
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_fields_are_described_by_their_comments(site):
    page = (site / "reference" / "learn.html").read_text(encoding="utf-8")
    assert "epochs without a better dev score" in page
