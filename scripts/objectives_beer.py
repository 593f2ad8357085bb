"""Compare objectives on beer reviews with balanced classes: agreement with annotations, share, accuracy.

    python scripts/objectives_beer.py DATA/beer --encoder ENCODER --seeds 5,6,7 --workers 4 --device cuda

Writes a copy of the data to OUT/data: as many positive reviews (rating >= 0.6) as there are negative ones (<= 0.4),
from the rows of all aspects, by the rating of one aspect. Trains objectives × seeds on it, several runs at the same
time, and writes the table to OUT/objectives-ASPECT.md. The same command continues an interrupted call; finished runs
are not trained again. Scores of agreement are those of the annotated reviews, accuracy is that of dev; the reviews
between the classes are left out of both. The ceilings are the scores of the best selections that the budget allows.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rationalizer.compare import Variant, compare, parse_assignments, parse_objectives, plan_runs
from rationalizer.compare.engines import LocalEngine
from rationalizer.compare.grid import PlannedRun
from rationalizer.compare.single_run import RunOutcome
from rationalizer.data import DataSource
from rationalizer.metrics import METRICS, Summary
from rationalizer.metrics.plausibility import f1_of
from rationalizer.paper.datasets.beer import ASPECTS, polarity
from rationalizer.text import Budget, Example, is_punctuation
from rationalizer.training.runs import read_run_record

RECIPE = {
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
PREDICTOR_RATE = 5e-5  # except for objectives that derive it from the generator's
SHOWN = ("token_f1_micro", "token_f1", "iou_f1", "size")


def write_balanced(folder: Path, out: Path, aspect: str, most: int | None = None) -> int:
    """Write the balanced copy, and return the number of training reviews per class, at most `most`."""
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob("*.parquet")):
        table = pq.read_table(path)
        table = table.drop_columns([name for name in table.column_names if name == "aspect"])
        if path.stem == "train":
            classes = np.array([polarity(rating) for rating in table[aspect].to_pylist()])
            rng = np.random.default_rng(0)
            rows = [rng.permutation(np.flatnonzero(classes == name)) for name in ("negative", "positive")]
            count = min(len(rows[0]), len(rows[1]), most or len(classes))
            table = table.take(pa.array(np.sort(np.concatenate([each[:count] for each in rows]))))
        elif most is not None:
            table = table.slice(0, most)
        pq.write_table(table, out / path.name)
    return count


def ceilings(examples: list[Example], budget: Budget, *, exactly: bool) -> tuple[float, float]:
    """Pooled and per-review F1 of the best selections of at most, or exactly, as many words as the budget allows.

    Punctuation, which costs nothing, is left out.
    """
    hits, selected, annotated, each = 0, 0, 0, []
    for example in examples:
        if example.annotation is None:
            continue
        words = [not is_punctuation(token) for token in example.tokens]
        marked = sum(word and flag for word, flag in zip(words, example.annotation, strict=True))
        if not marked:
            continue
        allowed = max(1, round(budget.amount * sum(words)))
        right = min(allowed, marked)
        chosen = allowed if exactly else right
        each.append(f1_of(right / chosen, right / marked))
        hits, selected, annotated = hits + right, selected + chosen, annotated + marked
    return f1_of(hits / selected, hits / annotated), float(np.mean(each))


def plan(args: argparse.Namespace, source: DataSource) -> list[PlannedRun]:
    runs = []
    for name in parse_objectives(args.objectives):
        variant = Variant(args.method, objective=name)
        settings: dict[str, Any] = {**RECIPE, "encoder": args.encoder, **parse_assignments(args.set, "--set")}
        if args.encoder == "bilstm":
            del settings["generator_rate"]
        elif name not in ("dr", "mgr"):
            settings.setdefault("predictor_rate", PREDICTOR_RATE)
        seeds = [int(seed) for seed in args.seeds.split(",")]
        runs += plan_runs([source], [variant], seeds, [Budget.parse(args.budget)], settings, args.out)
    return runs


def write_table(runs: list[PlannedRun], test: list[Example], budget: Budget, out: Path) -> str:
    records = {run.directory: record for run in runs if (record := read_run_record(run.directory)) is not None}
    heads = ["objective", "seeds", *(METRICS[name].short_name for name in SHOWN), "accuracy (dev)", "s", "findings"]
    heads[2:4] = ["token-F1, pooled", "token-F1, per review"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in dict.fromkeys(run.config.objective for run in runs):
        own = [(run, records[run.directory]) for run in runs if run.directory in records]
        own = [(run, record) for run, record in own if run.config.objective == name]
        if not own:
            continue
        values = [[record["scores"]["test"].get(score) for _, record in own] for score in SHOWN]
        values.append([record["scores"]["dev"]["accuracy"] for _, record in own])
        cells = [_cell([value for value in column if value is not None]) for column in values]
        seconds = np.mean([record["seconds"] for _, record in own])
        kinds = sorted({finding["kind"] for _, record in own for finding in record["findings"]["dev"]})
        seeds = ", ".join(str(run.config.seed) for run, _ in own)
        lines.append(f"| {' | '.join([name, seeds, *cells, f'{seconds:.0f}', ', '.join(kinds) or '-'])} |")
    for rule, exactly in (("at most", False), ("exactly", True)):
        pooled, each = (_cell([value]) for value in ceilings(test, budget, exactly=exactly))
        empty = " | ".join([""] * (len(heads) - 4))
        lines.append(f"| ceiling: {rule} {budget} | | {pooled} | {each} | {empty} |")
    text = "\n".join(lines) + "\n"
    out.write_text(text)
    return text


def _cell(values: list[float]) -> str:
    summary = Summary.from_values(values)
    mean, low, high = (f"{value:.3f}".removeprefix("0") for value in (summary.mean, summary.low, summary.high))
    return mean if len(values) == 1 else f"{mean} ({low}/{high})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path, help="folder with train, dev and annotated_dev as Parquet files")
    parser.add_argument("--encoder", required=True, help="a folder with a transformer, or bilstm")
    parser.add_argument("--aspect", default="appearance", choices=ASPECTS)
    parser.add_argument("--method", default="spectra")
    parser.add_argument("--objectives", default="all")
    parser.add_argument("--seeds", default="5,6,7")
    parser.add_argument("--budget", default="18%", help="the share of words")
    parser.add_argument("--set", action="append", metavar="[OBJECTIVE.]KEY=VALUE", help="replace a part of the recipe")
    parser.add_argument("--texts", type=int, help="use at most so many training reviews per class, and dev reviews")
    parser.add_argument("--workers", type=int, default=1, help="runs at the same time")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", help="such as bf16-mixed, the default for transformers on a GPU")
    parser.add_argument("--out", type=Path, default=Path("runs/objectives-beer"))
    args = parser.parse_args()
    data = args.out / "data"
    count = write_balanced(args.data_dir, data, args.aspect, args.texts)
    source = DataSource.resolve("beer-binary", data_dir=data, aspect=args.aspect)
    runs, budget = plan(args, source), Budget.parse(args.budget)
    test = list(source.load().test)
    print(f"{count} training reviews per class, {len(test)} annotated reviews, {len(runs)} runs", flush=True)
    table = args.out / f"objectives-{args.aspect}.md"

    def on_run_end(number: int, outcome: RunOutcome) -> None:
        print(f"{number}: {outcome.run.title}: {outcome.error or 'finished'}", flush=True)
        write_table(runs, test, budget, table)

    engine = LocalEngine(args.workers)
    compare(runs, args.out, engine=engine, device=args.device, precision=args.precision, on_run_end=on_run_end)
    print(write_table(runs, test, budget, table))


if __name__ == "__main__":
    main()
