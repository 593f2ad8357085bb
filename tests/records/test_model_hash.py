"""The hash of a model: the same wherever the model is, another one whenever predictions may change."""

import shutil
from dataclasses import replace

import pytest
import torch

from rationalizer import Rationalizer
from rationalizer.hub.publishing import remove_paths_from_encoder, without_private_data
from rationalizer.models import TrainedModel
from rationalizer.records import model_hash
from tests.nn.tiny_transformers import write_encoder

SMALL = {"epochs": 1, "min_epochs": 1, "hidden": 4}


def fitted(texts, **settings):
    labels = [str(k % 2) for k in range(len(texts))]
    return Rationalizer(**settings).fit(texts, labels, progress=False)


@pytest.mark.parametrize("encoder", ["bilstm", "transformer"])
def test_fit_save_load_and_publish_keep_it(encoder, texts, tmp_path):
    """With bundled word vectors, or with a pretrained encoder from a folder, whose path is not published."""
    settings = SMALL
    if encoder == "transformer":
        settings = {"encoder": write_encoder(tmp_path / "encoder"), "epochs": 1, "min_epochs": 1, "full_text_epochs": 0}
    model = fitted(texts[:16], **settings)
    expected = model_hash(model.trained)
    model.save(tmp_path / "model")
    shutil.copytree(tmp_path / "model", tmp_path / "elsewhere" / "copy")
    without_private_data(model.trained, include_examples=False).save(tmp_path / "published")
    remove_paths_from_encoder(tmp_path / "published")
    for name in ("model", "elsewhere/copy", "published"):
        assert model_hash(TrainedModel.load(tmp_path / name)) == expected


def test_budget_and_constraints_are_not_part_of_it(model):
    changed = model.trained.with_budget(3).with_constraints(["spans=1"])
    assert model_hash(changed) == model_hash(model.trained)


def test_every_part_counts(spectra_run, tmp_path):
    trained = TrainedModel.load(spectra_run)
    description, config = trained.description, trained.config
    hashes = [
        model_hash(trained),
        model_hash(replace(trained, description=replace(description, classes=description.classes[::-1]))),
        model_hash(replace(trained, description=replace(description, config=replace(config, pooling="mean")))),
        model_hash(
            replace(
                trained,
                description=replace(
                    description, config=replace(config, options={**config.options, "temperature": 9.0})
                ),
            )
        ),
    ]
    trained.save(tmp_path, compact=True)
    hashes.append(model_hash(TrainedModel.load(tmp_path)))
    with torch.no_grad():
        next(trained.model.parameters()).view(-1)[0] += 1e-3
    hashes.append(model_hash(trained))
    trained.encoder.punctuation = "count"
    hashes.append(model_hash(trained))
    trained.encoder.vocabulary.words = trained.encoder.vocabulary.words[::-1]
    hashes.append(model_hash(trained))
    assert len(set(hashes)) == len(hashes)


def test_word_vectors_count():
    trained = Rationalizer.load("sentiment").trained
    before = model_hash(trained)
    trained.encoder.vectors.scales[5] *= 2
    try:
        assert model_hash(trained) != before
    finally:
        trained.encoder.vectors.scales[5] /= 2
