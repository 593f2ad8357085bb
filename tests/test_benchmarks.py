"""The frame of the benchmarks: what is marked, counted, bounded and written. Nothing is timed here."""

import re
import sys
from pathlib import Path

import pytest
from benchmarks.__main__ import ON_GPU, SECONDS, main
from benchmarks.apart import run_module
from benchmarks.page import filled, require_places

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
TABLE = """
from benchmarks.timing import print_table, skipped, verdict
print("Times as long.")
print_table(["n", "ratio", "note", ""], [[20, 1.5, "", verdict(1.5 <= 2)], [64, 2.5, "met late", verdict(2.5 <= 2)]])
skipped("there is no moon")
"""


def run(script, limit=60):
    return run_module("tried", [sys.executable, "-c", script], limit)


def test_what_was_met_missed_and_skipped_is_counted(capsys):
    ended = run(TABLE)
    assert (ended.met, ended.missed) == (1, ["n 64, ratio 2.5, note met late"])
    assert ended.remark == "skipped: there is no moon"
    assert ended.measured
    assert not ended.succeeded
    assert capsys.readouterr().out == f"\n## tried\n\n{ended.output}"  # shown as well


def test_a_benchmark_that_fails_or_measures_nothing_is_no_success_and_no_table():
    failed = run(f"{TABLE}\nraise SystemExit(3)")
    assert (failed.fault, failed.succeeded, failed.measured) == ("failed with exit code 3", False, False)
    nothing = run("from benchmarks.timing import skipped\nskipped('there is no moon')")
    assert (nothing.succeeded, nothing.measured) == (True, False)


def test_a_benchmark_that_takes_too_long_is_ended_with_all_that_it_has_started():
    """What it started holds its output open: reading would go on for a minute."""
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    ended = run(child, limit=0.5)
    assert (ended.fault, ended.succeeded) == ("stopped after 0.5 seconds", False)
    assert ended.seconds < 30


def test_the_page_shows_outputs_word_for_word_and_keeps_the_rest():
    page = "# A\n\n<!-- benchmark a -->\n\nold\n\n<!-- end of a -->\n\nB\n\n<!-- benchmark b -->\n<!-- end of b -->\n"
    written = filled(page, {"a": "| \\1 |\n"})
    assert written == page.replace("old", "| \\1 |")
    assert filled(written, {"a": "| \\1 |\n"}) == written
    with pytest.raises(SystemExit, match="one place for c: a line <!-- benchmark c -->"):
        require_places(page, ["a", "b", "c"], Path("page.md"))


def test_every_benchmark_has_its_time_and_its_place():
    modules = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if "\ndef main() -> None:" in path.read_text()}
    assert modules == SECONDS.keys() | ON_GPU.keys()
    assert sum(SECONDS.values()) + 10 * len(ON_GPU) <= 15 * 60  # those end at once where there is no GPU
    require_places(PAGE.read_text(), [*SECONDS, *ON_GPU], PAGE)


def test_rows_are_marked_in_one_way():
    """A mark of another spelling would not be counted."""
    for path in (ROOT / "benchmarks").glob("*.py"):
        if path.name != "timing.py":
            assert not re.findall(r"[\"'](?:met|missed)[\"']", path.read_text(), re.IGNORECASE), path


def test_other_names_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["sequence_budgte"])
    assert (
        "no benchmark 'sequence_budgte'; there are: sequence_budget, where_training_starts" in capsys.readouterr().err
    )
