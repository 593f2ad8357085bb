"""Audit a classifier with attributions: fine-tune a transformer on whole texts, and show the words that count most.

    python scripts/audit_post_hoc.py DATA ENCODER OUT [--dataset sst] [--epochs 3] [--share 0.2]

As in `audit_models.py`, the model is trained on 2,000 texts and audited on up to 1,000 held-out ones. A word's score is
the sum over its subwords of gradient times input, for the predicted class; the words with the highest scores are shown.
It is audited twice: as it is used, where the prediction comes from the whole text (`post-hoc`), and with a second
prediction from the shown words alone, the others masked (`shown-only`). Each audit is a JSON file in OUT. Needs the
extra `transformers`; ENCODER is a folder or a name on the Hub.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from audit_models import AUDITED, TRAIN, read, sample
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import rationalizer
from rationalizer.auditing import Adapter

BATCH, RATE, LONGEST = 32, 5e-5, 256
Texts = list[list[str]]


class PostHoc:
    """A fine-tuned classifier of whole texts, and the words that its gradients point at."""

    def __init__(self, encoder: str, classes: list[str], share: float) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(encoder)
        self.classifier = AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=len(classes))
        self.classes, self.share = classes, share

    def encode(self, texts: Texts):
        return self.tokenizer(
            texts, is_split_into_words=True, truncation=True, max_length=LONGEST, padding=True, return_tensors="pt"
        )

    def train(self, texts: Texts, labels: list[str], epochs: int) -> None:
        codes = torch.tensor([self.classes.index(label) for label in labels])
        optimizer = torch.optim.AdamW(self.classifier.parameters(), lr=RATE)
        self.classifier.train()
        for _ in range(epochs):
            for rows in torch.randperm(len(texts)).split(BATCH):
                loss = self.classifier(**self.encode([texts[k] for k in rows]), labels=codes[rows]).loss
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        self.classifier.eval()

    @torch.inference_mode()
    def read_everything(self, texts: Texts) -> np.ndarray:
        parts = [texts[k : k + BATCH] for k in range(0, len(texts), BATCH)]
        return torch.cat([self.classifier(**self.encode(part)).logits.softmax(-1) for part in parts]).numpy()

    def select(self, texts: Texts) -> list[np.ndarray]:
        return [mask for k in range(0, len(texts), BATCH) for mask in self._select(texts[k : k + BATCH])]

    def _select(self, texts: Texts) -> list[np.ndarray]:
        batch = self.encode(texts)
        vectors = self.classifier.get_input_embeddings()(batch["input_ids"]).detach().requires_grad_()
        logits = self.classifier(inputs_embeds=vectors, attention_mask=batch["attention_mask"]).logits
        (gradient,) = torch.autograd.grad(logits.max(-1).values.sum(), vectors)
        attributions = (gradient * vectors).sum(-1).detach().numpy()
        masks = []
        for row, words in enumerate(texts):
            scores = np.zeros(len(words))
            for word, score in zip(batch.word_ids(row), attributions[row], strict=True):
                if word is not None:
                    scores[word] += score
            mask = np.zeros(len(words))
            mask[np.argsort(-scores, kind="stable")[: max(1, round(self.share * len(words)))]] = 1
            masks.append(mask)
        return masks

    def read_shown(self, texts: Texts, masks: list[np.ndarray]) -> np.ndarray:
        hidden = self.tokenizer.mask_token
        rows = zip(texts, masks, strict=True)
        return self.read_everything([[w if m else hidden for w, m in zip(*row, strict=True)] for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("encoder")
    parser.add_argument("out", type=Path)
    parser.add_argument("--dataset", choices=("sst", "hotels"), default="sst")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    warnings.simplefilter("ignore")
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # sums in one order, so that a second run gives the same bits
    args.out.mkdir(parents=True, exist_ok=True)
    folder = args.data / {"hotels": "hotels_location"}.get(args.dataset, args.dataset)
    texts, labels = sample(*read(folder, args.dataset, "train"), TRAIN)
    others, truth = sample(*read(folder, args.dataset, "dev"), AUDITED)
    classes = sorted(set(labels))
    model = PostHoc(args.encoder, classes, args.share)
    started = time.perf_counter()
    model.train(texts, labels, args.epochs)
    print(f"trained in {time.perf_counter() - started:.0f} s", flush=True)
    ways = {"post-hoc": lambda texts, masks: model.read_everything(texts), "shown-only": model.read_shown}
    for way, predict_from in ways.items():
        name = f"{args.dataset}-{way}"
        started = time.perf_counter()
        adapter = Adapter(model.select, predict_from, name=name, classes=classes)
        found = rationalizer.audit(adapter, others, truth, train=texts, progress=False)
        record = {**found.to_json(), "audit_seconds": round(time.perf_counter() - started, 1)}
        (args.out / f"{name}.json").write_text(json.dumps(record, indent=1))
        print(f"\n{name}: accuracy {found.facts['accuracy']}, {found.facts['selected']}\n{found}", flush=True)


if __name__ == "__main__":
    main()
