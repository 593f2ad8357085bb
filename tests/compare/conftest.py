import json

import pytest

from rationalizer.compare import compare
from rationalizer.data import generated_reviews as reviews
from tests.compare.small_runs import plan_small


@pytest.fixture(scope="package")
def folder(tmp_path_factory):
    """A user's folder: reviews with their rationales as JSON lines."""
    corpus = reviews(train=160, dev=40, test=40)
    directory = tmp_path_factory.mktemp("data") / "small"
    directory.mkdir()
    for split in ("train", "dev", "test"):
        rows = [
            {"text": e.text, "label": corpus.classes[e.label], "rationale_mask": [int(z) for z in e.annotation]}
            for e in getattr(corpus, split)
        ]
        (directory / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


@pytest.fixture(scope="package")
def study(folder, tmp_path_factory):
    """One comparison, run in this process."""
    out = tmp_path_factory.mktemp("study")
    runs = plan_small(folder, out)
    return out, runs, compare(runs, out)
