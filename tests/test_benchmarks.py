"""The benchmark runner: verdicts, summary, time limit, page. Nothing is timed here."""

import re
import sys
from pathlib import Path

import pytest
from benchmarks.__main__ import ON_GPU, SECONDS, main
from benchmarks.bounded_process import run_benchmark
from benchmarks.page import fill_sections, require_sections

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
TABLE = """
from benchmarks.timing import print_skipped, print_table, verdict
print("Times as long.")
print_table(["n", "ratio", "note", ""], [[20, 1.5, "", verdict(1.5 <= 2)], [64, 2.5, "met late", verdict(2.5 <= 2)]])
print_skipped("no moon")
"""


def run(script, limit=60):
    return run_benchmark("tried", [sys.executable, "-c", script], limit)


def test_met_missed_and_skipped_rows_are_counted(capsys):
    ended = run(TABLE)
    assert (ended.met, ended.missed) == (1, ["n 64, ratio 2.5, note met late"])
    assert ended.remark == "skipped: no moon"
    assert ended.has_table
    assert not ended.succeeded
    assert capsys.readouterr().out == f"\n## tried\n\n{ended.output}"  # shown as well


def test_failed_and_skipped_benchmarks_have_no_table():
    failed = run(f"{TABLE}\nraise SystemExit(3)")
    assert (failed.fault, failed.succeeded, failed.has_table) == ("failed with exit code 3", False, False)
    nothing = run("from benchmarks.timing import print_skipped\nprint_skipped('no moon')")
    assert (nothing.succeeded, nothing.has_table) == (True, False)


def test_time_limit_kills_the_process_group():
    """The child process holds the output open; reading it would take a minute."""
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    ended = run(child, limit=0.5)
    assert (ended.fault, ended.succeeded) == ("stopped after 0.5 seconds", False)
    assert ended.seconds < 30


def test_only_measured_sections_of_the_page_change():
    page = "# A\n\n<!-- benchmark a -->\n\nold\n\n<!-- end of a -->\n\nB\n\n<!-- benchmark b -->\n<!-- end of b -->\n"
    written = fill_sections(page, {"a": "| \\1 |\n"})
    assert written == page.replace("old", "| \\1 |")
    assert fill_sections(written, {"a": "| \\1 |\n"}) == written
    with pytest.raises(SystemExit, match="section for c"):
        require_sections(page, ["a", "b", "c"], Path("page.md"))


def test_every_benchmark_has_a_time_limit_and_a_section():
    modules = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if "\ndef main() -> None:" in path.read_text()}
    assert modules == SECONDS.keys() | ON_GPU.keys()
    assert sum(SECONDS.values()) + 10 * len(ON_GPU) <= 15 * 60  # those end at once where there is no GPU
    require_sections(PAGE.read_text(), [*SECONDS, *ON_GPU], PAGE)


def test_verdicts_come_from_timing():
    """The summary would not count a verdict with another spelling."""
    for path in (ROOT / "benchmarks").glob("*.py"):
        if path.name != "timing.py":
            assert not re.findall(r"[\"'](?:met|missed)[\"']", path.read_text(), re.IGNORECASE), path


def test_unknown_name_is_an_error(capsys):
    with pytest.raises(SystemExit):
        main(["sequence_budgte"])
    assert "sequence_budgte" in capsys.readouterr().err
