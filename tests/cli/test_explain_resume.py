"""`rationalizer explain --resume`, interrupted output, and what remains of it."""

import gc
import os
import signal
import subprocess
import sys
import time
import tracemalloc

import pytest

from tests.cli.calls import records, refused, run
from tests.cli.conftest import COUNT


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_resume(spectra_run, table, tmp_path, form):
    """However much of the file is there, torn records and all, it ends as if nothing had happened."""
    command = ["explain", spectra_run, "--file", table, "--column", "text=review", "--batch-size", 16, "--out"]
    run(*command, tmp_path / f"whole.{form}")
    whole = (tmp_path / f"whole.{form}").read_bytes()
    out = tmp_path / f"part.{form}"
    ends = [0, 3, whole.index(b"\n") + 1, len(whole) // 2, whole.index(b'"', len(whole) // 3) + 1, len(whole) - 1]
    for end in [*ends, len(whole)]:
        out.write_bytes(whole[:end])
        result = run(*command, out, "--resume")
        assert out.read_bytes() == whole
        assert f"{out}: " in result.stderr
    assert f"{COUNT % 128} explained, {COUNT - COUNT % 128} existed already" in result.stderr
    out.unlink()
    run(*command, out, "--resume")
    assert out.read_bytes() == whole
    assert "--resume, --overwrite" in refused(*command, out)
    out.write_bytes(b"something else\n")
    run(*command, out, "--overwrite")
    assert out.read_bytes() == whole


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_resume_checks_model_and_budget(spectra_run, sparsemax_run, table, tmp_path, form):
    """One file must not hold two kinds of answers."""
    out = tmp_path / f"part.{form}"
    command = ["--file", table, "--column", "text=review", "--batch-size", 16, "--out", out]
    run("explain", spectra_run, *command)
    kept = out.read_bytes()
    message = "differs from the answer of this model"
    assert message in refused("explain", spectra_run, *command, "--resume", "--budget", "1")
    assert message in refused("explain", sparsemax_run, *command, "--resume")
    assert out.read_bytes() == kept
    run("explain", spectra_run, *command, "--resume", "--budget", "20%")


def test_resume_checks_input_and_format(spectra_run, table, tmp_path):
    out = tmp_path / "out.jsonl"
    command = ["explain", spectra_run, "--out", out, "--resume"]
    run("explain", spectra_run, "lovely care", "--out", out)
    kept = out.read_bytes()
    assert "record 1" in refused(*command, "another text")
    assert "more records" in refused(*command, stdin="")
    assert out.read_bytes() == kept
    out.write_text('{"text": "lovely care"\n')
    assert "record 1 of" in refused(*command, "lovely care")
    out.write_text("[1]\n")
    assert "was not written by this command" in refused(*command, "lovely care")
    other = tmp_path / "out.csv"
    other.write_text("text,stars\nlovely care,3\n")
    assert "has other columns" in refused("explain", spectra_run, "lovely care", "--out", other, "--resume")
    assert other.read_text() == "text,stars\nlovely care,3\n"
    page = tmp_path / "out.html"
    assert "cannot be resumed" in refused("explain", spectra_run, "a", "--out", page, "--resume")


def test_failed_document_leaves_no_file(spectra_run, tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("text\n" + "lovely care\n" * 3 + "<br />\n")
    refused("explain", spectra_run, "--file", table, "--out", tmp_path / "out.html")
    assert "an SVG shows one text" in refused("explain", spectra_run, "a", "b", "--out", tmp_path / "out.svg")
    refused("explain", spectra_run, "--file", table, "--column", "text=txt", "--out", tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.csv"]


def test_memory_is_constant(spectra_run, tmp_path):
    """Of ten times the rows hardly anything is kept: what garbage is around varies, but is far less than the rows."""
    peaks, sizes = [], []
    for rows in (8, 160, 1600):  # the first for what is imported and kept once
        table, explained = tmp_path / f"{rows}.csv", tmp_path / f"{rows}.jsonl"
        table.write_text("text\n" + f"{'lovely care ' * 20}\n" * rows)
        gc.collect()
        tracemalloc.start()
        run("explain", spectra_run, "--file", table, "--out", explained, "--batch-size", 4)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        sizes.append(explained.stat().st_size)
    assert peaks[2] - peaks[1] < (sizes[2] - sizes[1]) / 4


def test_progress_only_on_terminals(spectra_run, table, tmp_path):
    """On the terminal while the output goes to a file; nothing where nobody looks."""
    command = [sys.executable, "-m", "rationalizer", "explain", spectra_run, "--file", table]
    command += ["--column", "text=review", "--format", "jsonl"]
    terminal, its_end = os.openpty()
    with (tmp_path / "out.jsonl").open("wb") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=its_end)
    os.close(its_end)
    shown = b""
    while chunk := _read(terminal):
        shown += chunk
    os.close(terminal)
    assert process.wait() == 0
    assert f"{COUNT}/{COUNT}".encode() in shown
    assert b"left" in shown
    assert len(records(tmp_path / "out.jsonl")) == COUNT
    quiet = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert quiet.stderr == b""
    assert quiet.stdout == (tmp_path / "out.jsonl").read_bytes()


def _read(terminal):
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # nobody writes to it any more
        return b""


def test_ctrl_c_and_closed_pipes(spectra_run, table, tmp_path):
    """A process of its own, stopped in the middle: what it wrote is whole, and can be continued."""
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "rationalizer", "explain", str(spectra_run), "--batch-size", "1"]
    process = subprocess.Popen(
        [*command, "--out", str(out)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    process.stdin.write("lovely care\n" * 50)
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not out.exists() or out.read_bytes().count(b"\n") < 50:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == 130
    assert process.stderr.read().startswith("Stopped.")
    assert len(records(out)) == 50
    process.stdin.close()
    process.stderr.close()

    shell = f"yes 'lovely care' | head -3000 | {' '.join(command)} --format jsonl | head -1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {shell}"], capture_output=True, text=True, timeout=60)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
