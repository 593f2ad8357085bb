"""Tables of a comparison, with mean (minimum/maximum) over seeds, as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rationalizer.compare.grid import FAITHFUL, PlannedRun
from rationalizer.data.dataset_registry import PUBLISHED
from rationalizer.metrics import METRICS, Metric, Summary
from rationalizer.models import Config
from rationalizer.models.atomic_files import write_bytes, write_json
from rationalizer.text import Budget
from rationalizer.training.runs import RunRecord

COLUMNS = tuple(metric for metric in METRICS.values() if metric.heading)


@dataclass(frozen=True)
class ResultRow:
    """One method on one dataset at one budget."""

    dataset: str
    method: str
    budget: Budget | None  # None: the method takes no budget
    split: str
    seeds: tuple[int, ...]
    scores: dict[str, Summary]  # only scores that all seeds have
    paper: dict[str, Summary]  # published figures, by the name of our corresponding score
    findings: dict[str, tuple[tuple[int, str], ...]]  # signs of degeneration, by kind: (seed, message)
    note: str = ""
    pairs: bool = False  # whether the examples are pairs of texts

    @property
    def budget_text(self) -> str:
        return "any" if self.budget is None else self.budget.describe("pair" if self.pairs else "word")

    @property
    def data(self) -> str:
        """The dataset, with the note on its data."""
        return f"{self.dataset} ({self.note})" if self.note else self.dataset

    @property
    def task_score(self) -> str:
        names = ("macro_f1", "mse", "alignment_f1", "token_f1")  # the last two if there is nothing to predict
        return next(name for name in names if name in self.scores)


def summarize(
    finished: Iterable[tuple[PlannedRun, RunRecord]],
    *,
    split: str | None = None,
    notes: Mapping[str, str] | None = None,
) -> list[ResultRow]:
    """Summarize runs over their seeds. Datasets and methods are in the order of the runs, budgets ascend.

    Args:
        finished: runs and their records.
        split: "test" or "dev"; default: test, or dev if there is none.
        notes: remarks on the data, by dataset.
    """
    groups: dict[tuple[str, str], dict[Budget, list[tuple[PlannedRun, RunRecord]]]] = {}
    for run, record in finished:
        budgets = groups.setdefault((run.source.name, run.method.label), {})
        budgets.setdefault(run.config.budget, []).append((run, record))
    ordered = [budgets[budget] for budgets in groups.values() for budget in sorted(budgets, key=Budget.sort_key)]
    datasets = list(dict.fromkeys(dataset for dataset, _ in groups))
    ordered.sort(key=lambda members: datasets.index(members[0][0].source.name))
    return [_row(members, split, notes or {}) for members in ordered]


def _row(members: list[tuple[PlannedRun, RunRecord]], split: str | None, notes: Mapping[str, str]) -> ResultRow:
    members = sorted(members, key=lambda member: member[0].config.seed)
    run = members[0][0]
    available = [set(record["scores"]) for _, record in members]
    chosen = split or ("test" if all("test" in splits for splits in available) else "dev")
    if not all(chosen in splits for splits in available):
        raise ValueError(f"{run.source.name} has no {chosen} split to score; it has {', '.join(sorted(available[0]))}")
    measured = [record["scores"][chosen] for _, record in members]
    names = [name for name in measured[0] if all(name in scores for scores in measured)]
    return ResultRow(
        dataset=run.source.name,
        method=run.method.label,
        budget=run.config.budget if run.method.uses_budget else None,
        split=chosen,
        seeds=tuple(run.config.seed for run, _ in members),
        scores={name: Summary.from_values([scores[name] for scores in measured]) for name in names},
        paper=_paper(run, names) if chosen == "test" and run.config.budget == run.source.budget else {},
        findings=_findings(members, chosen),
        note=notes.get(run.source.name, ""),
        pairs=run.method.pairs,
    )


def _findings(members: list[tuple[PlannedRun, RunRecord]], split: str) -> dict[str, tuple[tuple[int, str], ...]]:
    by_kind: dict[str, list[tuple[int, str]]] = {}
    for run, record in members:
        for finding in record["findings"][split]:
            by_kind.setdefault(finding["kind"], []).append((run.config.seed, finding["message"]))
    return {kind: tuple(cases) for kind, cases in by_kind.items()}


def _paper(run: PlannedRun, names: Sequence[str]) -> dict[str, Summary]:
    if run.config.objective not in ("joint", Config.objective):  # another objective is not the paper's experiment
        return {}
    variant = FAITHFUL[not run.config.faithful] if run.method.pairs else run.config.options.get("decoding")
    figures = PUBLISHED.get(run.source.name, {})
    keys = {metric.name: (metric.paper, run.method.name, variant) for metric in COLUMNS if metric.paper}
    return {name: Summary(*figures[key]) for name, key in keys.items() if name in names and key in figures}


def write_tables(rows: Sequence[ResultRow], out: Path, charts: Mapping[str, Sequence[str]] | None = None) -> list[Path]:
    """Write `table.md`, `table.csv` and `table.json`; `charts` are files by dataset."""
    paths = [out / "table.md", out / "table.csv", out / "table.json"]
    write_bytes(paths[0], markdown(rows, charts or {}).encode())
    write_bytes(paths[1], _csv(rows).encode())
    write_json(paths[2], {"rows": [_json(row) for row in rows]})
    return paths


def markdown(
    rows: Sequence[ResultRow], charts: Mapping[str, Sequence[str]], metrics: Sequence[Metric] = COLUMNS
) -> str:
    """Return the tables of all datasets; `charts` are files by dataset."""
    sections = ["# Comparison\n"]
    for dataset in dict.fromkeys(row.dataset for row in rows):
        members = [row for row in rows if row.dataset == dataset]
        sections.append("\n".join(_section(dataset, members, charts.get(dataset, ()), metrics)))
    return "\n".join(sections)


def _section(dataset: str, rows: Sequence[ResultRow], charts: Sequence[str], metrics: Sequence[Metric]) -> list[str]:
    lines = [f"## {rows[0].data}", "", _caption(dataset, rows), ""]
    heads, cells = result_table(rows, metrics)
    lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    lines += [f"| {' | '.join(row)} |" for row in cells]
    lines += ["", *(f"![{name}]({name})" for name in charts)] if charts else []
    findings = [f"- {_describe(row, cases)}: {cases[0][1]}" for row in rows for cases in row.findings.values()]
    if findings:
        lines += ["", "Signs of degeneration:", "", *findings]
    return [*lines, ""]


def _describe(row: ResultRow, cases: Sequence[tuple[int, str]]) -> str:
    budget = f", budget {row.budget_text}" if row.budget is not None else ""
    return f"{row.method}{budget}, {_seeds([seed for seed, _ in cases])}"


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"


def _caption(dataset: str, rows: Sequence[ResultRow]) -> str:
    all_seeds = sorted({seed for row in rows for seed in row.seeds})
    prefix = "Seed" if len(all_seeds) == 1 else "Mean (minimum/maximum) over seeds"
    caption = f"{prefix} {', '.join(map(str, all_seeds))}, {rows[0].split} split."
    fewer: dict[tuple[int, ...], list[str]] = {}
    for row in rows:
        if list(row.seeds) != all_seeds:
            several = [other.method for other in rows].count(row.method) > 1
            fewer.setdefault(row.seeds, []).append(f"{row.method} at {row.budget_text}" if several else row.method)
    for own, methods in fewer.items():
        caption += f" {_seeds(own).capitalize()} only: {', '.join(methods)}."
    if any(row.paper for row in rows):
        seeds = "three" if rows[0].pairs else "five"
        caption += f' Columns marked "paper" quote the paper\'s figures ({seeds} seeds, 300-dimensional vectors)'
        caption += f"; our data is {rows[0].note}, which is not the paper's." if rows[0].note else "."
    elif dataset in PUBLISHED:
        caption += " The paper has no figures that are comparable with these rows."
    return caption


def result_table(rows: Sequence[ResultRow], metrics: Sequence[Metric] = COLUMNS) -> tuple[list[str], list[list[str]]]:
    """Return headings and cells, without columns that no row has a value for."""
    heads, cells = ["method"], [[row.method] for row in rows]
    if any(row.budget is not None for row in rows):
        heads.append("budget")
        for row, line in zip(rows, cells, strict=True):
            line.append(row.budget_text)
    for metric in metrics:
        name, heading = metric.name, metric.heading
        quoted = any(name in row.paper for row in rows)
        # Token-F1 in the paper's convention serves only for a comparison with the paper.
        if not (quoted if name == "token_f1_paper" else any(name in row.scores for row in rows)):
            continue
        heads.append(heading)
        if quoted:
            heads.append(f"{heading.partition(',')[0].partition(' (')[0]}, paper")
        for row, line in zip(rows, cells, strict=True):
            line.append(_cell(metric, row.scores.get(name)))
            if quoted:
                line.append(_quote(metric, row.paper.get(name)))
    return heads, cells


def _cell(metric: Metric, score: Summary | None) -> str:
    if score is None:
        return ""
    if len(score.values) == 1:
        return metric.format_value(score.mean)
    return f"{metric.format_value(score.mean)} ({metric.format_value(score.low)}/{metric.format_value(score.high)})"


def _quote(metric: Metric, quoted: Summary | None) -> str:
    if quoted is None:
        return ""
    digits = 3 if metric.format == "error" else 2
    mean, low, high = (f"{value:.{digits}f}".removeprefix("0") for value in (quoted.mean, quoted.low, quoted.high))
    return f"{mean} ({low}/{high})"


def _csv(rows: Sequence[ResultRow]) -> str:
    names = [metric.name for metric in COLUMNS if any(metric.name in row.scores for row in rows)]
    quoted = [name for name in names if any(name in row.paper for row in rows)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    head = ["dataset", "note", "split", "method", "budget", "seeds"]
    head += [f"{name}_{part}" for name in names for part in ("mean", "min", "max")]
    head += [f"paper_{name}_{part}" for name in quoted for part in ("mean", "min", "max")]
    writer.writerow(head)
    for row in rows:
        budget = "" if row.budget is None else str(row.budget)
        line: list[Any] = [row.dataset, row.note, row.split, row.method, budget, " ".join(map(str, row.seeds))]
        for summary in (*map(row.scores.get, names), *map(row.paper.get, quoted)):
            line += [summary.mean, summary.low, summary.high] if summary else ["", "", ""]
        writer.writerow(line)
    return text.getvalue()


def _json(row: ResultRow) -> dict[str, Any]:
    return {
        "dataset": row.dataset,
        "note": row.note,
        "split": row.split,
        "method": row.method,
        "budget": None if row.budget is None else str(row.budget),
        "seeds": list(row.seeds),
        "scores": {
            name: {"mean": s.mean, "min": s.low, "max": s.high, "values": list(s.values)}
            for name, s in row.scores.items()
        },
        "paper": {name: {"mean": f.mean, "min": f.low, "max": f.high} for name, f in row.paper.items()},
        "findings": [
            {"kind": kind, "seed": seed, "message": message}
            for kind, cases in row.findings.items()
            for seed, message in cases
        ],
    }
