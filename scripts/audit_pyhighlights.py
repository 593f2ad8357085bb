"""Train FR, MCD and DR of pyhighlights, audit them, and print a table of the verdicts.

    python scripts/audit_pyhighlights.py DATA OUT [--dataset sst] [--epochs 20] [--models fr mcd dr]

Needs `pip install pyhighlights`, best in an environment of its own. DATA has the folders `sst` and `hotels_location`
with Parquet files. As in `audit_models.py`, every model is trained on 2,000 texts and audited on up to 1,000 held-out
ones. The models have the settings of pyhighlights, on frozen GloVe vectors. FR and MCD draw their words at random, also
at evaluation; they are audited a second time with the most probable words (`fr-argmax`). Every audit is a JSON file in
OUT.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

VALIDATION = 200  # of the training texts, to choose the epoch
BATCH = 32
METHODS = ("fr", "mcd", "dr")
Labelled = tuple[list[list[str]], list[int]]


def pyhighlights_adapter(model, collator, name="model", classes=None):
    """A trained model of pyhighlights, with the collator that made its batches."""
    from pyhighlights.components.data import HighlightExample

    from rationalizer.auditing import Adapter

    model.eval()

    def batches(texts, size=64):
        for start in range(0, len(texts), size):
            words = [[word.lower() for word in text] for text in texts[start : start + size]]
            part = [HighlightExample(sample_id=0, tokens=each, label=0) for each in words]
            yield slice(start, start + size), collator(part)

    @torch.inference_mode()
    def select(texts):
        masks = [np.zeros(len(words), dtype=np.float32) for words in texts]
        for rows, batch in batches(texts):
            chosen = model.reported(model(batch)).highlight_mask.numpy()
            for mask, row in zip(masks[rows], chosen, strict=True):
                mask[: len(row)] = row[: len(mask)]
        return masks

    @torch.inference_mode()
    def predict_from(texts, masks):
        outputs = []
        for rows, batch in batches(texts):
            chosen = torch.zeros(batch.mask.shape)
            for row, mask in zip(chosen, masks[rows], strict=True):
                row[: len(mask)] = torch.from_numpy(mask[: len(row)])
            outputs.append(model.predict(batch, chosen).softmax(-1))
        return torch.cat(outputs).numpy()

    @torch.inference_mode()
    def predict(texts):
        return torch.cat([model.reported(model(b)).class_logits.softmax(-1) for _, b in batches(texts)]).numpy()

    return Adapter(
        select,
        predict_from,
        # A model that draws its words draws other ones at each call: nothing to compare.
        predict=None if model.sample_at_evaluation else predict,
        name=name,
        classes=classes,
        ignores_gaps=model.compact,
    )


def load_pyhighlights(matrix: torch.Tensor) -> tuple[Any, Any]:
    """Its registered models, and encoders of their own kinds for these word vectors."""
    import pyhighlights
    from cinnamon.registry import Registry
    from pyhighlights.configurations import backbones, keys

    Registry.load(directory=Path(pyhighlights.__file__).parent)
    made = []
    for kind in (backbones.GRUBackboneConfig, backbones.UnnormalisedGRUBackboneConfig):
        config = kind.default()
        config.vocab_size, config.embedding_dim = matrix.shape
        key = keys.NAMESPACE.key("backbone", "glove", kind.__name__)
        component = "pyhighlights.components.models.spp.implementations.GRUBackbone"
        made.append(Registry.register_configuration(config, key=key, component=component))
    Registry.dag_resolution()
    return made[0], made[1]


def build(method: str, encoder: Any, unnormalised: Any, share: float | None = None) -> Any:
    """A model with its own settings; `share` replaces the target of the sparsity penalty."""
    from cinnamon.registry import Registry
    from pyhighlights.configurations import keys

    key = {"fr": keys.GRU_FR, "mcd": keys.GRU_MCD, "dr": keys.GRU_DR}[method]
    predictor = {"fr": None, "mcd": unnormalised, "dr": encoder}[method]
    model = Registry.from_key(key, selector_backbones=encoder, predictor_backbone=predictor)
    if share is not None:
        penalties = [each for each in model.modules() if type(each).__name__ == "SparsityPenalty"]
        assert penalties, "no sparsity penalty found"
        for penalty in penalties:
            penalty.threshold = share
    return model


def train(
    model: Any, collator: Any, training: Labelled, validation: Labelled, epochs: int, device: str = "cpu"
) -> None:
    """As pyhighlights does: the weights of the epoch with the lowest loss on validation texts."""
    import lightning
    from lightning.pytorch.callbacks import ModelCheckpoint
    from pyhighlights.components.data import HighlightDataset, HighlightExample
    from torch.utils.data import DataLoader

    loaders = []
    for (texts, codes), shuffle in ((training, True), (validation, False)):
        part = [HighlightExample(n, words, code) for n, (words, code) in enumerate(zip(texts, codes, strict=True))]
        loaders.append(DataLoader(HighlightDataset(part), batch_size=BATCH, shuffle=shuffle, collate_fn=collator))
    with tempfile.TemporaryDirectory() as folder:
        best = ModelCheckpoint(folder, monitor="val_loss", save_weights_only=True)
        quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary"), False)
        trainer = lightning.Trainer(max_epochs=epochs, accelerator=device, callbacks=[best], **quiet)
        trainer.fit(model, *loaders)
        state = torch.load(best.best_model_path, weights_only=False)["state_dict"]
    model.load_state_dict(state)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dataset", choices=("sst", "hotels"), default="sst")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", nargs="+", choices=METHODS, default=list(METHODS))
    args = parser.parse_args()

    import lightning
    import pyhighlights
    from audit_models import AUDITED, TRAIN, read, sample
    from pyhighlights.components.data import HighlightCollator, VocabularyTokenizer

    import rationalizer
    from rationalizer.text import BUNDLED, load_vectors

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    folder = args.data / {"hotels": "hotels_location"}.get(args.dataset, args.dataset)
    texts, labels = sample(*read(folder, args.dataset, "train"), TRAIN)
    others, truth = sample(*read(folder, args.dataset, "dev"), AUDITED)
    texts, others = ([[word.lower() for word in text] for text in part] for part in (texts, others))
    classes = sorted(set(labels))
    vectors = load_vectors(BUNDLED)
    matrix = torch.from_numpy(np.pad(vectors.decoded(), ((2, 0), (0, 0))))  # rows 0 and 1: padding, unknown words
    words = {word: row for row, word in enumerate(vectors.words, start=2)}
    collator = HighlightCollator(VocabularyTokenizer(words))
    encoders = load_pyhighlights(matrix)

    for method in args.models:
        lightning.seed_everything(args.seed, verbose=False)
        started = time.perf_counter()
        model = build(method, *encoders)
        model.load_embeddings(matrix)
        codes = [classes.index(label) for label in labels]
        splits = [(texts[part], codes[part]) for part in (slice(VALIDATION, None), slice(VALIDATION))]
        train(model, collator, *splits, args.epochs)
        trained = time.perf_counter() - started
        for suffix, sampled in (("", model.sample_at_evaluation), ("-argmax", False)):
            if suffix and not model.sample_at_evaluation:
                continue
            model.sample_at_evaluation = sampled
            name = f"{args.dataset}-{method}{suffix}"
            started = time.perf_counter()
            adapter = pyhighlights_adapter(model, collator, name, classes)
            found = rationalizer.audit(adapter, others, truth, train=texts, progress=False)
            seconds = {"train_seconds": round(trained, 1), "audit_seconds": round(time.perf_counter() - started, 1)}
            record = {**found.to_json(), **seconds, "pyhighlights": pyhighlights.__version__}
            (args.out / f"{name}.json").write_text(json.dumps(record, indent=1))
            print(f"\n{name}: accuracy {found.facts['accuracy']}, {found.facts['selected']}\n{found}", flush=True)


if __name__ == "__main__":
    main()
