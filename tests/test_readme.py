"""Every Python block of the README runs, in order, as a reader would run it."""

import re
from pathlib import Path

import pytest

from rationalizer.data import reviews

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def namespace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    corpus = reviews(train=80, dev=10, test=10)
    return {
        "texts": [example.text for example in corpus.train],
        "labels": [corpus.classes[example.label] for example in corpus.train],
    }


def test_code_blocks(namespace, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, str(README), "exec"), namespace)
    assert namespace["explanation"].label in set(namespace["labels"])
    assert namespace["y"].sum(-1).max() <= 40
    assert namespace["alignment"].sum(-1).sub(1).abs().max() < 1e-5
    assert (tmp_path / "runs" / "mine").is_dir()
    solution, z = namespace["solution"], namespace["z"]
    assert solution.converged.all()
    assert solution[z].sum(-1).sub(1).abs().max() < 1e-5
