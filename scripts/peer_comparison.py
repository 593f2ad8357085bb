"""Train methods of pyhighlights and ours on the same texts, and print one table.

    python scripts/peer_comparison.py hatexplain-binary DATA/hatexplain --share 20 --out OUT
    python scripts/peer_comparison.py movies DATA/movies --share 20 --device cuda --seeds 0,1,2 --out OUT
    python scripts/peer_comparison.py beer-binary DATA/beer --share 18 --device cuda --seeds 0,1,2 --out OUT

Needs `pip install pyhighlights`, best in an environment of its own; no network. Both sides get the same copies of the
data (those of `objectives.py`), the same GloVe vectors, `--epochs` epochs, and keep the weights of the epoch with the
lowest loss on dev. pyhighlights' sparsity penalty has the same share as target that is our budget; its other settings
are its own, and its models select by argmax at evaluation. Ours are BiLSTMs with the default settings, classes that
weigh the same, and an objective of the same idea. Agreement with people, share (of all tokens, punctuation included)
and accuracy are those of the test set; the leaks are those that the audit finds in at most `--audited` test texts. On
a CPU, which has one thread, seconds are CPU time. Finished runs in OUT are not repeated.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rationalizer import Rationalizer
from rationalizer.auditing import audit_examples
from rationalizer.auditing.audited_model import AuditedModel
from rationalizer.auditing.rationalizer_adapter import RationalizerAdapter
from rationalizer.data import Corpus, load
from rationalizer.metrics import TextEvaluation, compute_scores
from rationalizer.models import configure
from rationalizer.text import BUNDLED, Budget, load_vectors
from rationalizer.training import train as train_ours

OBJECTIVES = ("full-text", "fr", "dr", "mcd")
CHECKS = ("replaced-words", "moved-words", "positions", "gaps", "size", "emptiness")
SHOWN = ("accuracy", "token_f1_micro", "token_f1", "size", "empty")
HEADS = ("accuracy", "token-F1, pooled", "token-F1, per text", "share", "empty", "leaks", "training, s")


def train_theirs(method: str, corpus: Corpus, args: argparse.Namespace, seed: int) -> AuditedModel:
    import lightning
    from audit_pyhighlights import build, load_pyhighlights, pyhighlights_adapter, train
    from pyhighlights.components.data import HighlightCollator, VocabularyTokenizer

    vectors = load_vectors(BUNDLED)
    matrix = torch.from_numpy(np.pad(vectors.decoded(), ((2, 0), (0, 0))))  # rows 0 and 1: padding, unknown words
    collator = HighlightCollator(VocabularyTokenizer({word: row for row, word in enumerate(vectors.words, start=2)}))
    lightning.seed_everything(seed, verbose=False)
    model = build(method, *load_pyhighlights(matrix), share=args.share / 100)
    model.load_embeddings(matrix)
    splits = [
        ([[w.lower() for w in e.tokens] for e in part], [e.label for e in part]) for part in (corpus.train, corpus.dev)
    ]
    train(model, collator, *splits, args.epochs, args.device)
    model.sample_at_evaluation = False
    return pyhighlights_adapter(model.cpu(), collator, f"pyhighlights {method}", corpus.classes)


def train_own(objective: str, corpus: Corpus, args: argparse.Namespace, seed: int) -> AuditedModel:
    from objectives import BILSTM_RECIPE

    settings = {**BILSTM_RECIPE, "objective": objective, "budget": Budget.share(args.share / 100), "seed": seed}
    settings |= {"epochs": args.epochs, "patience": args.epochs, "class_weight": "balanced"}  # the best epoch of all
    settings |= {"min_epochs": min(5, args.epochs)}
    folder = args.out / "models" / f"{objective}-{seed}"
    train_ours(corpus, configure("spectra", settings), folder, resume=True, device=args.device, threads=1)
    return RationalizerAdapter(Rationalizer.load(folder, device=args.device), f"ours {objective}")


def measure(model: AuditedModel, corpus: Corpus, audited: int) -> dict[str, Any]:
    test = list(corpus.test)
    weights, outputs = model.select_and_predict(test)
    scores = compute_scores(
        TextEvaluation(
            task="classification",
            truth=[e.label for e in test],
            predictions=np.asarray(outputs).argmax(-1).tolist(),
            classes=range(len(corpus.classes)),
            masks=[np.asarray(row) > 0.5 for row in weights],
            annotations=[e.annotation for e in test],
        )
    ).as_dict()
    found = audit_examples(model, test[:audited], None, checks=CHECKS, progress=False)
    return {"scores": scores, "leaks": found.leaks, "audit": found.to_json()}


def table(results: dict[str, list[dict[str, Any]]]) -> str:
    lines = [f"| model | seeds | {' | '.join(HEADS)} |", "|---" * (len(HEADS) + 2) + "|"]
    for name, runs in results.items():
        cells = []
        for score in SHOWN:
            values = [run["scores"].get(score, float("nan")) for run in runs]
            spread = f" ({min(values):.3f}/{max(values):.3f})" if len(values) > 1 else ""
            cells.append(f"{np.mean(values):.3f}{spread}")
        leaks = sorted({leak for run in runs for leak in run["leaks"]})
        seconds = np.mean([run["seconds"] for run in runs])
        lines.append(f"| {name} | {len(runs)} | {' | '.join(cells)} | {', '.join(leaks) or '-'} | {seconds:.0f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    from audit_pyhighlights import METHODS
    from objectives import BUDGETS, COLUMNS, write_copy

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=BUDGETS)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--share", type=float, required=True, help="percentage of the words")
    parser.add_argument("--theirs", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--ours", nargs="*", choices=OBJECTIVES, default=list(OBJECTIVES))
    parser.add_argument("--texts", type=int, help="use at most so many training texts per class, and few others")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--audited", type=int, default=500)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("runs/peers"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    clock = time.process_time if args.device == "cpu" else time.perf_counter  # other processes take no CPU time of ours
    warnings.simplefilter("ignore")
    aspect = "appearance" if args.dataset == "beer-binary" else None
    write_copy(args.dataset, args.data_dir, args.out / "data", aspect, args.texts)
    columns = {"columns": COLUMNS[args.dataset]} if args.dataset in COLUMNS else {}
    corpus = load(args.dataset, data_dir=args.out / "data", aspect=aspect, **columns)
    makers = [("pyhighlights", name, train_theirs) for name in args.theirs]
    makers += [("ours", name, train_own) for name in args.ours]
    results: dict[str, list[dict[str, Any]]] = {}
    for seed in map(int, args.seeds.split(",")):
        for side, name, make in makers:
            file = args.out / f"{side}-{name}-{seed}.json"
            if not file.exists():
                started = clock()
                model = make(name, corpus, args, seed)
                seconds = clock() - started
                found = measure(model, corpus, args.audited)
                file.write_text(json.dumps(found | {"seconds": seconds}, indent=1))
            results.setdefault(f"{side} {name}", []).append(json.loads(file.read_text()))
            print(f"{side} {name}, seed {seed}", flush=True)
            (args.out / "peers.md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
