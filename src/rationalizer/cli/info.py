"""`rationalizer info`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from rationalizer.cli.base import command, out
from rationalizer.cli.options import RunArgument, describe_size, find_model, folder_size


@command("rationalizer info runs/mine", "rationalizer info runs/mine --json")
def info(
    run: RunArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
) -> None:
    """Describe a saved model: method, budget, data, task, scores, size, versions."""
    facts = collect_facts(find_model(run))
    if as_json:
        typer.echo(json.dumps(facts, indent=1, ensure_ascii=False))
        return
    table = Table.grid(padding=(0, 2))
    for name, words in _describe(facts).items():
        table.add_row(Text(name, style="bold"), Text(words))
    out.print(table, soft_wrap=not out.is_terminal)


def collect_facts(run: Path) -> dict[str, Any]:
    """Return the facts about a model as plain values, ready for JSON."""
    from rationalizer.models import TrainedModel
    from rationalizer.models.trained_model import CONFIG, ENCODER_FILE, HISTORY, MODEL, VECTORS
    from rationalizer.training import read_source
    from rationalizer.training.runs import read_run_record

    trained = TrainedModel.load(run, "cpu")
    config, history, source = trained.config, trained.history, read_source(run)
    parameters = list(trained.model.parameters())
    record = read_run_record(run)
    return {
        "method": config.method,
        "options": dict(config.options),
        "reads": "pairs of texts" if trained.pairs else "texts",
        "faithful": config.faithful if trained.pairs else None,
        "budget": str(config.budget),
        "constraints": [str(constraint) for constraint in config.constraints],
        "follows_budget": trained.model.method.follows_budget,
        "data": None if source is None else source.to_json(),
        "task": trained.task,
        "classes": list(trained.classes),
        "best": {"score": history["score"], "value": history["best"], "epoch": history["best_epoch"]},
        "scores": {} if record is None else record["scores"],
        "epochs": len(history["epochs"]),
        "seconds": trained.seconds,
        "seed": config.seed,
        "encoder": config.encoder,
        "encoder_options": dict(config.encoder_options),
        "words": trained.encoder.summary(),
        "parameters": sum(parameter.numel() for parameter in parameters),
        "trainable": sum(parameter.numel() for parameter in parameters if parameter.requires_grad),
        "versions": history.get("versions"),
        "bytes": sum(
            path.stat().st_size
            for name in (CONFIG, HISTORY, MODEL, ENCODER_FILE, VECTORS)
            if (path := run / name).is_file()
        ),
        "bytes_with_logs": folder_size(run),
    }


def _describe(facts: dict[str, Any]) -> dict[str, str]:
    from rationalizer.data import DataSource
    from rationalizer.metrics import METRICS
    from rationalizer.text import Budget

    options = ", ".join(f"{name} {value}" for name, value in facts["options"].items())
    best = facts["best"]
    unit = "word" if facts["faithful"] is None else "pair"
    followed = "" if facts["follows_budget"] else ", but the method does not follow it"
    words = {
        "method": f"{facts['method']}{f' ({options})' if options else ''}",
        "reads": facts["reads"] + _faithfulness(facts["faithful"]),
        "budget": Budget.parse(facts["budget"]).describe(unit) + followed,
        "constraints": ", ".join(facts["constraints"]) or "none",
        "data": "not stored" if facts["data"] is None else DataSource.from_json(facts["data"]).name,
        "task": f"{facts['task']}: {', '.join(facts['classes'])}" if facts["classes"] else facts["task"],
        "epochs": f"{facts['epochs']} in {facts['seconds']:.1f} s, seed {facts['seed']}",
    }
    if best["value"] is not None:
        metric = METRICS[best["score"]]
        words["best on dev"] = f"{metric.description} {metric.format_value(best['value'])} (epoch {best['epoch']})"
    for split, scores in facts["scores"].items():
        words[f"scores, {split}"] = ", ".join(
            f"{metric.description} {metric.format_value(scores[name])}"
            for name, metric in METRICS.items()
            if name in scores
        )
    options = ", ".join(f"{name} {value}" for name, value in facts["encoder_options"].items())
    words["encoder"] = f"{facts['encoder']} ({options})"
    words["words"] = ", ".join(f"{name} {value}" for name, value in facts["words"].items())
    words["parameters"] = f"{facts['parameters']:,}, {facts['trainable']:,} of them trained"
    versions = facts["versions"]
    words["trained with"] = ", ".join(f"{name} {v}" for name, v in versions.items()) if versions else "unknown"
    words["on disk"] = f"{describe_size(facts['bytes'])}, with logs {describe_size(facts['bytes_with_logs'])}"
    return words


def _faithfulness(faithful: bool | None) -> str:
    if faithful is None:
        return ""
    return ", the premise only through the alignment" if faithful else ", the premise also outside the alignment"
