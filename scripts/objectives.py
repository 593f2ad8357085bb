"""Compare objectives on data with annotations: agreement with people, share, accuracy, time.

    python scripts/objectives.py beer-binary DATA/beer --encoder ENCODER --seeds 5,6,7 --workers 4 --device cuda
    python scripts/objectives.py beer-binary DATA/beer --aspect aroma --budget 16% --objectives dr …  # not annotated
    python scripts/objectives.py beer-binary DATA/beer --budget "18% on average, 8% to 35%" --objectives dr …
    python scripts/objectives.py hatexplain DATA/hatexplain …         # three classes, 30%
    python scripts/objectives.py hatexplain-binary DATA/hatexplain …  # normal or toxic, 6.5%, as GenSPP
    python scripts/objectives.py movies DATA/movies …
    python scripts/objectives.py beer-binary DATA/beer --encoder bilstm --objectives dr --seeds 0,1,2 …

Writes a copy of the data to OUT/data. Beer: as many positive reviews (rating >= 0.6) as negative ones (<= 0.4), from
the rows of all aspects, by the rating of one aspect; the annotated reviews are the test set. Others: a tenth of the
training texts becomes dev, which chooses the epoch, and the published dev is the test set. Trains objectives × seeds,
several at the same time, and writes the table to OUT/objectives.md. The same command continues an interrupted call;
finished runs are not trained again. Beer reviews between the classes are left out. The ceilings are the scores of the
best selections that the budget allows. "hatexplain-binary" has what GenSPP was published with: posts of at most 30
tokens, annotations of more than half of the annotators, and in the last column token-F1 pooled over all posts, where
words selected in normal posts, in which nobody marks anything, are wrong.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from rationalizer.compare import Variant, compare, parse_assignments, parse_objectives, plan_runs
from rationalizer.compare.engines import LocalEngine
from rationalizer.compare.grid import PlannedRun
from rationalizer.compare.single_run import RunOutcome
from rationalizer.data import Columns, DataSource
from rationalizer.inference import predict
from rationalizer.metrics import METRICS, Summary
from rationalizer.metrics.plausibility_context import Ceiling, token_f1_ceiling
from rationalizer.models import TrainedModel
from rationalizer.paper.datasets.beer import ASPECTS, polarity
from rationalizer.text import Budget, Example, is_punctuation
from rationalizer.training.runs import read_run_record

BUDGETS = {"beer-binary": "18%", "hatexplain": "30%", "hatexplain-binary": "6.5%", "movies": "20%"}
RECIPE = {  # of transformers, chosen on Beer
    "temperature": 1.0,
    "transition": 10.0,
    "start_spread": 1.0,
    "epochs": 6,
    "averaging": 0.99,
    "generator_rate": 1e-4,
    "full-text.full_text_weight": 3.0,
    "full-text.full_text_epochs": 0,
    "dar.full_text_epochs": 1,
}
BILSTM_RECIPE = {"transition": 3.0}
BILSTM_OWN = {
    "beer-binary": {
        "transition": 10.0,
        "start_spread": 1.0,
        "averaging": 0.99,
        "learning_rate": 1e-3,
        "epochs": 14,
        "patience": None,
    },
    "hatexplain-binary": {"transition": 0.1, "class_weight": "balanced"},  # a word or two of each post
}
# People mark single words of posts, and sentences all over a film review: a bonus for neighbours as large as on Beer
# would select a block or two.
OWN = {
    "hatexplain": {"transition": 1.0},
    "hatexplain-binary": {"transition": 1.0},
    "movies": {"transition": 0.3, "batch_tokens": 16384},
}
LONGEST = {"hatexplain-binary": 30}  # tokens
COLUMNS = {"hatexplain-binary": Columns(rationale_mask="rationale_majority")}
PREDICTOR_RATE = 5e-5  # except for objectives that derive it from the generator's
SHOWN = ("token_f1_micro", "token_f1", "iou_f1", "auprc", "size", "empty", "accuracy", "macro_f1")


def write_copy(dataset: str, folder: Path, out: Path, aspect: str | None, most: int | None = None) -> int:
    """Write the copy, and return the number of training texts, at most `most` of each class."""
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)

    def read(name: str) -> pa.Table:
        table = pq.read_table(folder / f"{name}.parquet")
        longest = LONGEST.get(dataset, math.inf)
        return table.filter(pa.array([len(tokens) <= longest for tokens in table["tokens"].to_pylist()]))

    table = read("train")
    if aspect is not None:
        others = {name: read(name) for name in ("dev", "annotated_dev")}
        table, others["dev"] = (each.drop_columns(["aspect"]) for each in (table, others["dev"]))
        labels = np.array([polarity(rating) for rating in table[aspect].to_pylist()])
        groups = [np.flatnonzero(labels == name) for name in ("negative", "positive")]
        most = min(map(len, groups)) if most is None else min(most, *map(len, groups))
    else:
        rows = rng.permutation(table.num_rows)
        held = len(rows) // 10
        others = {"dev": table.take(pa.array(np.sort(rows[:held])))}
        others["test"] = read("dev" if (folder / "dev.parquet").exists() else "val")
        table = table.take(pa.array(np.sort(rows[held:])))
        labels = np.array([str(label) for label in table["label"].to_pylist()])
        groups = [np.flatnonzero(labels == name) for name in np.unique(labels)]
    chosen = np.sort(np.concatenate([rng.permutation(group)[:most] for group in groups]))
    pq.write_table(table.take(pa.array(chosen)), out / "train.parquet")
    for name, other in others.items():
        pq.write_table(other if most is None else other.slice(0, 2 * most), out / f"{name}.parquet")
    return len(chosen)


def ceilings(examples: list[Example], budget: Budget, *, exactly: bool) -> Ceiling:
    """The token-F1 of the best selections of at most, or exactly, as many words as the budget allows.

    Punctuation, which costs nothing, is left out.
    """
    annotated, limits = [], []
    for example in examples:
        if example.annotation is None:
            continue
        words = torch.tensor([not is_punctuation(token) for token in example.tokens])
        marked = int((words & torch.from_numpy(np.array(example.annotation))).sum())
        if marked:
            annotated.append(marked)
            limits.append(int(budget.word_limit(words[None])))
    return token_f1_ceiling(annotated, limits, exactly=exactly)


def f1_over_all(folder: Path, test: list[Example]) -> float:
    """Token-F1 pooled over all texts: without an annotation nothing is marked."""
    masks = predict(TrainedModel.load(folder), test).selected
    marked = [np.zeros(len(e.tokens), bool) if e.annotation is None else np.array(e.annotation, bool) for e in test]
    right = sum(int((mask & other).sum()) for mask, other in zip(masks, marked, strict=True))
    return 2 * right / max(sum(int(mask.sum()) for mask in (*masks, *marked)), 1)


def plan(args: argparse.Namespace, source: DataSource) -> list[PlannedRun]:
    runs = []
    for name in parse_objectives(args.objectives):
        variant = Variant(args.method, objective=name)
        own = parse_assignments(args.set, "--set")
        if args.encoder == "bilstm":
            settings: dict[str, Any] = {**BILSTM_RECIPE, **BILSTM_OWN.get(args.dataset, {}), **own}
        else:
            settings = {**RECIPE, **OWN.get(args.dataset, {}), "encoder": args.encoder, **own}
            if name not in ("dr", "mgr"):
                settings.setdefault("predictor_rate", PREDICTOR_RATE)
        seeds = [int(seed) for seed in args.seeds.split(",")]
        runs += plan_runs([source], [variant], seeds, [Budget.parse(args.budget)], settings, args.out)
    return runs


def write_table(runs: list[PlannedRun], test: list[Example], budget: Budget, out: Path) -> str:
    records = {run.directory: record for run in runs if (record := read_run_record(run.directory)) is not None}
    heads = ["objective", "seeds", *(METRICS[name].short_name for name in SHOWN), "accuracy (dev)", "s", "findings"]
    heads[2:4] = ["token-F1, pooled", "token-F1, per text"]
    counts_all = any(run.source.dataset in LONGEST for run in runs)
    heads += ["token-F1, pooled over all"] * counts_all
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in dict.fromkeys(run.config.objective for run in runs):
        own = [(run, records[run.directory]) for run in runs if run.directory in records]
        own = [(run, record) for run, record in own if run.config.objective == name]
        if not own:
            continue
        values = [[record["scores"]["test"].get(score) for _, record in own] for score in SHOWN]
        values.append([record["scores"]["dev"]["accuracy"] for _, record in own])
        cells = [_cell([value for value in column if value is not None]) for column in values]
        over_all = [_cell([f1_over_all(run.directory, test) for run, _ in own])] if counts_all else []
        seconds = np.mean([record["seconds"] for _, record in own])
        kinds = sorted({finding["kind"] for _, record in own for finding in record["findings"]["dev"]})
        seeds = ", ".join(str(run.config.seed) for run, _ in own)
        row = [name, seeds, *cells, f"{seconds:.0f}", ", ".join(kinds) or "-", *over_all]
        lines.append(f"| {' | '.join(row)} |")
    rules = (("at most", False), ("exactly", True))[: 2 if budget.kind in ("share", "count") else 1]
    for rule, exactly in rules if any(example.annotated for example in test) else ():
        each, pooled = (_cell([value]) for value in ceilings(test, budget, exactly=exactly))
        empty = " | ".join([""] * (len(heads) - 4))
        lines.append(f"| ceiling: {rule} {budget} | | {pooled} | {each} | {empty} |")
    text = "\n".join(lines) + "\n"
    out.write_text(text)
    return text


def _cell(values: list[float]) -> str:
    if not values:
        return ""
    summary = Summary.from_values(values)
    mean, low, high = (f"{value:.3f}".removeprefix("0") for value in (summary.mean, summary.low, summary.high))
    return mean if len(values) == 1 else f"{mean} ({low}/{high})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=BUDGETS)
    parser.add_argument("data_dir", type=Path, help="folder with Parquet files")
    parser.add_argument("--encoder", required=True, help="a folder with a transformer, or bilstm")
    parser.add_argument("--aspect", choices=ASPECTS, help="of Beer; appearance by default")
    parser.add_argument("--method", default="spectra")
    parser.add_argument("--objectives", default="all")
    parser.add_argument("--seeds", default="5,6,7")
    parser.add_argument("--budget", help="by default 18%% for Beer, 30%% and 6.5%% for HateXplain, 20%% for Movies")
    parser.add_argument("--set", action="append", metavar="[OBJECTIVE.]KEY=VALUE", help="replace a part of the recipe")
    parser.add_argument("--texts", type=int, help="use at most so many training texts per class, and few others")
    parser.add_argument("--workers", type=int, default=1, help="runs at the same time")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", help="such as bf16-mixed, the default for transformers on a GPU")
    parser.add_argument("--out", type=Path, default=Path("runs/objectives"))
    args = parser.parse_args()
    args.budget = args.budget or BUDGETS[args.dataset]
    aspect = (args.aspect or ASPECTS[0]) if args.dataset == "beer-binary" else None
    data = args.out / "data"
    count = write_copy(args.dataset, args.data_dir, data, aspect, args.texts)
    columns = {"columns": COLUMNS[args.dataset]} if args.dataset in COLUMNS else {}
    source = DataSource.resolve(args.dataset, data_dir=data, aspect=aspect, **columns)
    runs, budget = plan(args, source), Budget.parse(args.budget)
    test = list(source.load().test)
    print(f"{count} training texts, {len(test)} test texts, {len(runs)} runs", flush=True)
    table = args.out / "objectives.md"

    def on_run_end(number: int, outcome: RunOutcome) -> None:
        print(f"{number}: {outcome.run.title}: {outcome.error or 'finished'}", flush=True)
        write_table(runs, test, budget, table)

    engine = LocalEngine(args.workers)
    compare(runs, args.out, engine=engine, device=args.device, precision=args.precision, on_run_end=on_run_end)
    print(write_table(runs, test, budget, table))


if __name__ == "__main__":
    main()
