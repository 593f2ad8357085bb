"""What works where PyTorch, Numba and pyarrow are not installed, and what is refused."""

import os
import re
import subprocess
import sys

import pytest

from rationalizer import Rationalizer
from rationalizer.export import ExportedModel, NotExportableError, export_model
from rationalizer.export.model_facts import read_facts
from tests.export.untrained_models import save_model
from tests.nn.tiny_transformers import write_encoder

TEXT = "The room was spotless but the staff was rude."
SCRIPT = """
import sys
sys.modules.update(dict.fromkeys(("torch", "numba", "pyarrow", "entmax", "lightning_fabric")))
from rationalizer.cli import main
for line in sys.stdin.read().splitlines():
    print(f"== {line}", flush=True)
    sys.argv = ["rationalizer", *line.split("|")]
    try:
        main()
    except SystemExit as stopped:
        print(f"exit code {stopped.code}")
"""


def test_command_line(tmp_path):
    export_model("sentiment", tmp_path / "exported")
    (tmp_path / "new.csv").write_text(f'id,text\n1,"{TEXT}"\n2,\n', encoding="utf-8")
    save_model(tmp_path / "run", "at-most-one")
    save_model(tmp_path / "full", "full-text")
    lines = [
        f"explain|sentiment|{TEXT}",
        f"explain|exported|{TEXT}",
        f"explain|sentiment|{TEXT}|--budget|50%|--constraint|spans=1|--format|jsonl",
        "explain|sentiment|--file|new.csv|--out|new.html",
        "explain|exported|--file|new.csv|--format|csv",
        "explain|run|A good film.|A film.",
        f"explain|full|{TEXT}",
        f"explain|sentiment|{TEXT}|--record|records.jsonl",
    ]
    command, path = [sys.executable, "-c", SCRIPT], os.pathsep.join(filter(None, sys.path))
    how = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": path}, "capture_output": True, "text": True}
    done = subprocess.run(command, input="\n".join(lines), **how)
    answers = re.split("^== .*\n", done.stdout, flags=re.MULTILINE)[1:]
    assert len(answers) == len(lines), done.stderr
    expected = str(Rationalizer.load("sentiment", device="cpu").explain(TEXT))
    assert answers[0] == answers[1] == f"{expected}\n\n"
    assert '"spans": [[' in answers[2]
    assert "spotless" in (tmp_path / "new.html").read_text(encoding="utf-8")
    assert "negative" in answers[4]
    assert "aligned" in answers[5]
    assert [answer.strip() for answer in answers[6:]] == ["exit code 2", "exit code 2"]
    assert "full-text" in done.stderr
    assert "needs the package torch" in done.stderr


def test_refusals(tmp_path):
    save_model(tmp_path / "fusedmax", "fusedmax")
    with pytest.raises(NotExportableError, match="fusedmax"):
        export_model(tmp_path / "fusedmax", tmp_path / "out")
    save_model(tmp_path / "contiguous", "gumbel", decoding="contiguous")
    with pytest.raises(NotExportableError, match="contiguous"):
        read_facts(tmp_path / "contiguous")
    save_model(tmp_path / "albert", encoder=write_encoder(tmp_path / "encoder", "albert"))
    with pytest.raises(NotExportableError, match="albert"):
        export_model(tmp_path / "albert", tmp_path / "out")
    with pytest.raises(FileNotFoundError, match="itself an export"):
        export_model(export_model("sentiment", tmp_path / "exported", words=100), tmp_path / "out")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="empty"):
        export_model("sentiment", tmp_path)


def test_damaged_export_is_refused(tmp_path):
    export_model("nli", tmp_path, words=100)
    path = tmp_path / "learned.bin"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match="damaged"):
        ExportedModel.load(tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match="missing"):
        ExportedModel.load(tmp_path)


def test_settings_that_the_model_does_not_follow():
    model = ExportedModel.load("nli")
    refused = (("budget", 2, "budget"), ("budget", "10% on average", "budget"), ("constraints", ["spans=2"], "spans"))
    for name, value, said in refused:
        with pytest.raises(ValueError, match=said):
            setattr(model, name, value)
    with pytest.raises(ValueError, match="PyTorch"):
        ExportedModel.load("sentiment").budget = "enough"
    model.constraints = ["exactly-k=2"]
    assert len(model.explain("A man plays a guitar.", "A man makes music.").pairs) == 2
    with pytest.raises(ValueError, match="pairs"):
        model.explain("one text")
