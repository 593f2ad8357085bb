"""Make a table of docs/results.md with one command: train what is missing, print the table and write it to OUT/NAME.md.

    python scripts/tables.py hotels DATA --workers 16 --device cuda
    python scripts/tables.py hotels DATA --only spectra,full-text --seeds 0,1
    python scripts/tables.py hotels DATA --finished  # trains nothing

DATA has a folder for each dataset: sst, agnews, imdb, beer, hotels_location, hatexplain, movies, snli and hans. The
same command continues an interrupted call and trains no finished run again; `--set` replaces a part of the recipe, and
needs another `--out`. The tables minilm-… take a name on the Hugging Face Hub, or a folder, as `--encoder`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from rationalizer.compare import compare, parse_assignments, parse_budgets, parse_methods, parse_seeds, plan_runs
from rationalizer.compare.comparison_charts import score_against_budget
from rationalizer.compare.engines import LocalEngine
from rationalizer.compare.result_tables import ResultRow, markdown, summarize
from rationalizer.compare.single_run import RunOutcome, finished_record
from rationalizer.data import DataSource
from rationalizer.metrics import METRICS, Metric, Summary
from rationalizer.models.atomic_files import write_bytes
from rationalizer.paper.hans_evaluation import PARTS, hans_markdown

BASELINES = "pair-budget,hardkuma,sparsemax,fusedmax,gumbel,sfe-baseline,sfe,full-text"


@dataclass(frozen=True)
class Study:
    """Runs with the same settings."""

    folder: str  # below OUT
    settings: str
    methods: str = f"spectra,{BASELINES}"
    budgets: str | None = None  # None: the dataset's own
    label: str = ""  # added to the methods' names


@dataclass(frozen=True)
class Table:
    source: str
    columns: str  # metrics of the scored split
    studies: tuple[Study, ...]
    data: str | None = None  # folder in DATA; None: that of the source
    split: str | None = None  # the scored one; None: test, or dev if there is none
    dev: str = ""  # metrics of dev
    note: str | None = None  # None: that the data are reduced, if they are


def with_annotations(folder: str, settings: str) -> tuple[Study, ...]:
    weight = "annotation_weight=1"
    return Study(folder, settings), Study(f"{folder}-people", f"{settings} {weight}", "spectra", label=f"`{weight}`")


def against_budget(folder: str, settings: str, budgets: str) -> tuple[Study, ...]:
    """`spectra` at several budgets, the other methods at the dataset's own."""
    return Study(folder, settings, "spectra", budgets), Study(folder, settings, BASELINES)


TASK = "macro_f1 size seconds_per_epoch"
PEOPLE = "token_f1 iou_f1 auprc size seconds_per_epoch"
AGREEMENT = f"macro_f1 {PEOPLE}"
SPANS = "macro_f1 token_f1 iou_f1 auprc spans"
PAIRS = "macro_f1 alignments violation seconds_per_epoch"
SUMS = "tuned=true word_scores=true word_sums=true pooling=max"
SST = "sfe.epochs=12 sfe-baseline.epochs=12 gumbel.epochs=12 hardkuma.penalty=20"
SST_METHODS = "spectra,pair-budget,sparsemax,fusedmax,gumbel,sfe-baseline,sfe,full-text"
POSTS = "batch_size=64 epochs=8 " + " ".join(f"{m}.initial_weights=xavier" for m in ("sfe", "sfe-baseline", "gumbel"))
SMOOTH = "spectra.temperature=1 pair-budget.temperature=1 spectra.transition={0} pair-budget.transition={0}"
BEER = (
    "batch_size=64 epochs=8 learning_rate=1e-3 objective=full-text full_text_weight=3 averaging=0.99 dropout=0.3 "
    f"keep_by=loss {SUMS} {SMOOTH.format(1)}"
)
MOVIES = (
    "batch_size=16 epochs=10 learning_rate=2e-3 objective=full-text full_text_weight=1 averaging=0.98 dropout=0.3 "
    f"{SUMS} {SMOOTH.format(0.1)}"
)
IMDB = "batch_size=128 learning_rate=1e-3 epochs=4 pooling=max"
IMDB_TUNED = (
    f"batch_size=128 learning_rate=1e-3 epochs=5 {SUMS} objective=full-text full_text_weight=3 averaging=0.99 "
    "dropout=0.3 temperature=1 transition=1 keep_by=loss"
)
HOTELS = "batch_size=64 learning_rate=1e-3 epochs=10 pooling=max"
SNLI = "batch_size=256 learning_rate=1e-3 epochs=8 min_epochs=3 temperature=1.0"
ALIGNERS = ("xor-at-most-one", "at-most-one", "budget", "gumbel", "ot-relaxed", "ot-exact-k")
BOTH = ",".join(["softmax:not-faithful", *(f"{name}{kind}" for name in ALIGNERS for kind in ("", ":not-faithful"))])
MINILM_IMDB = "epochs=2 batch_size=32 full_text_epochs=0 start_spread=1"
MINILM_POSTS = "epochs=3 batch_size=64 full_text_weight=3 start_spread=1"
MINILM_SNLI = "epochs=2 batch_size=128 generator_rate=1e-4"
MINILM_MOVIES = "epochs=5 batch_size=8 transition=0.3 generator_rate=1e-4 predictor_rate=5e-5 full_text_weight=3"
MINILM_BEER = (
    "epochs=5 batch_size=32 patience=none full_text_epochs=0 full_text_weight=3 generator_rate=1e-4 "
    "predictor_rate=5e-5 averaging=0.99 transition=10 temperature=1 start_spread=1"
)

TABLES = {
    "sst": Table("sst", TASK, (Study("sst", SST, SST_METHODS), Study("sst", SST, "hardkuma", "18"))),
    "sst-budgets": Table("sst", TASK, (Study("sst", SST, "spectra,hardkuma,gumbel,sfe-baseline,sfe", "5,10,20,30"),)),
    "agnews": Table("agnews", TASK, (Study("agnews", "batch_size=128 learning_rate=1e-3 epochs=6"),)),
    "imdb": Table("imdb", TASK, (Study("imdb", IMDB), Study("imdb-tuned", IMDB_TUNED, "spectra", label="tuned"))),
    "beer": Table("beer", f"mse token_f1_paper {PEOPLE}", (Study("beer", BEER),), "beer-all", dev="mse"),
    "beer-budgets": Table("beer", f"mse {PEOPLE}", against_budget("beer", BEER, "5,10,15,20"), "beer-all"),
    "hotels": Table("hotels", TASK, (Study("hotels", HOTELS),), "hotels_location", note="rebuilt"),
    "hatexplain": Table("hatexplain", AGREEMENT, with_annotations("hatexplain", POSTS)),
    "hatexplain-budgets": Table("hatexplain", AGREEMENT, against_budget("hatexplain", POSTS, "10,20,30,40")),
    "movies": Table("movies", AGREEMENT, with_annotations("movies", MOVIES)),
    "movies-budgets": Table("movies", AGREEMENT, against_budget("movies", MOVIES, "5,10,20,30")),
    "snli": Table("snli", PAIRS, (Study("snli", SNLI, BOTH),), split="dev"),
    "minilm-sst": Table("sst", SPANS, (Study("minilm-sst", "epochs=6 full_text_epochs=0", "spectra"),)),
    "minilm-imdb": Table("imdb", TASK, (Study("minilm-imdb", MINILM_IMDB, "spectra"),), dev="macro_f1"),
    "minilm-movies": Table("movies", SPANS, (Study("minilm-movies", MINILM_MOVIES, "spectra"),)),
    "minilm-hatexplain": Table("hatexplain", SPANS, (Study("minilm-hatexplain", MINILM_POSTS, "spectra"),)),
    "minilm-snli": Table("snli", PAIRS, (Study("minilm-snli", MINILM_SNLI, "at-most-one"),), split="dev"),
    "minilm-beer": Table(
        "beer-binary",
        "token_f1 token_f1_micro iou_f1 auprc accuracy",
        (Study("minilm-beer", MINILM_BEER, "spectra"),),
        "beer",
        dev="macro_f1",
    ),
}


def make_table(name: str, args: argparse.Namespace) -> str:
    """Train what is missing; return the table, and write its chart if it has several budgets."""
    table = TABLES[name]
    folder = data_folder(table.data or table.source, args)
    source = DataSource.resolve(table.source, folder)
    notes = {source.name: table.note or source.note()}
    rows = beside([row for study in table.studies for row in train(study, table, source, notes, args)])
    if not rows:
        return "no finished runs\n"
    levels = {"people": agreement(folder)} if name == "hatexplain-budgets" else {}
    chart = score_against_budget(rows, "token_f1" if "token_f1" in table.columns else rows[0].task_score, levels)
    if chart is not None:
        write_bytes(args.out / f"{name}.svg", chart.encode())
    return markdown(rows, {}, columns(table, rows)).partition("\n\n")[2]


def train(
    study: Study, table: Table, source: DataSource, notes: dict[str, str], args: argparse.Namespace
) -> Iterator[ResultRow]:
    settings = {"encoder": args.encoder} if study.folder.startswith("minilm-") else {}
    settings |= parse_assignments(study.settings.split(), "settings") | parse_assignments(args.set, "--set")
    methods = parse_methods(study.methods, source.pairs)
    methods = [method for method in methods if not args.only or method.label in args.only.split(",")]
    budgets = parse_budgets(study.budgets) if study.budgets else None
    runs = plan_runs([source], methods, parse_seeds(args.seeds), budgets, settings, args.out / study.folder)
    runs = [run for run in runs if not args.finished or finished_record(run) is not None]
    engine = LocalEngine(args.workers) if args.workers > 1 else None
    if runs:
        compare(runs, args.out / study.folder, engine=engine, device=args.device, notes=notes, on_run_end=report)
    done = [(run, record) for run in runs if (record := finished_record(run)) is not None]
    scored = summarize(done, split=table.split, notes=notes)
    for row, on_dev in zip(scored, summarize(done, split="dev") if table.dev else scored, strict=True):
        scores = row.scores | {f"{metric}, dev": on_dev.scores[metric] for metric in table.dev.split()}
        yield replace(row, method=f"{row.method}, {study.label}" if study.label else row.method, scores=scores)


def report(count: int, outcome: RunOutcome) -> None:
    print(f"{count}: {outcome.run.title}: {outcome.error or 'finished'}", flush=True)


def columns(table: Table, rows: Sequence[ResultRow]) -> list[Metric]:
    """The table's metrics, and scores of another split or method: "mse, dev"."""
    others = dict.fromkeys(name for row in rows for name in row.scores if ", " in name)
    shown = [METRICS[name] for name in table.columns.split()]
    shown = [metric if metric.heading else replace(metric, heading=metric.short_name) for metric in shown]
    for name in others:
        metric = METRICS[name.partition(",")[0]]
        shown.append(replace(metric, name=name, heading=f"{metric.short_name},{name.partition(',')[2]}"))
    return shown


def beside(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """Move the macro-F1 of METHOD:not-faithful into the row of METHOD, if there is one."""
    kind, names = ":not-faithful", {row.method for row in rows}
    other = {row.method.removesuffix(kind): row.scores["macro_f1"] for row in rows if row.method.endswith(kind)}
    kept = [row for row in rows if not row.method.endswith(kind) or row.method.removesuffix(kind) not in names]
    scores = [{"macro_f1, not faithful": other[row.method]} if row.method in other else {} for row in kept]
    return [replace(row, scores=row.scores | more) for row, more in zip(kept, scores, strict=True)]


def agreement(folder: Path) -> Summary:
    """Token-F1 of one person's annotation with the words that any of the others marked, averaged over posts."""
    values = []
    for row in pq.read_table(folder / "dev.parquet").to_pylist():
        masks = [np.array(mask, bool) for mask in row["annotator_rationales"] if len(mask) == len(row["tokens"])]
        if len(masks) > 1 and np.any(masks):
            others = [np.any(masks[:k] + masks[k + 1 :], axis=0) for k in range(len(masks))]
            pairs = zip(masks, others, strict=True)
            values.append(np.mean([2 * (a & b).sum() / max(a.sum() + b.sum(), 1) for a, b in pairs]))
    return Summary.from_values([float(np.mean(values))])


def data_folder(name: str, args: argparse.Namespace) -> Path:
    if name != "beer-all":
        return Path(args.data, name)
    if not Path(args.out, name).exists():
        from beer_ridge import copy_all_rows

        copy_all_rows(args.data / "beer", args.out / name)
    return Path(args.out, name)


def make_hans(args: argparse.Namespace) -> str:
    """Accuracy on HANS, of models trained without and with its training pairs; `rationalizer hans` for each seed."""
    found = []
    for seed in parse_seeds(args.seeds):
        out = args.out / "hans" / f"seed-{seed}"
        folders = ["--data-dir", f"{args.data}/snli", "--hans-dir", f"{args.data}/hans", "--out", str(out)]
        settings = [f"--set={setting}" for setting in (*SNLI.split(), f"seed={seed}", *args.set)]
        command = [sys.executable, "-m", "rationalizer", "hans", "snli", *folders, "--device", args.device, *settings]
        if not args.finished and not (out / "hans.json").exists():
            subprocess.run(command, check=True)
        if (out / "hans.json").exists():
            found.append(json.loads((out / "hans.json").read_text()))
    means = {
        name: {part: float(np.mean([one[name][" / ".join(part)] for one in found])) for part in PARTS}
        for name in (found[0] if found else ())
    }
    return hans_markdown(means, f"Mean of {len(found)} seeds.").partition("\n\n")[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=[*TABLES, "hans"])
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--out", type=Path, default=Path("study"), help="folder of all runs and tables")
    parser.add_argument("--only", help="methods, such as spectra,sfe; by default all of the table")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--workers", type=int, default=1, help="runs at the same time")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--encoder", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--set", action="append", default=[], metavar="[METHOD.]KEY=VALUE", help="replace a setting")
    parser.add_argument("--finished", action="store_true", help="train nothing: the table of the finished runs")
    args = parser.parse_args()
    text = make_hans(args) if args.name == "hans" else make_table(args.name, args)
    write_bytes(args.out / f"{args.name}.md", text.encode())
    print(text)


if __name__ == "__main__":
    main()
