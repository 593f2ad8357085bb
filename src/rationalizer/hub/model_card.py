"""The model card, `README.md` in a model's folder: what a user must know about the model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rationalizer.data import DataSource
from rationalizer.drawing import AnyExplanation, to_svg, to_terminal
from rationalizer.drawing.html import HtmlTable
from rationalizer.drawing.label_overview import MAX_LABELS, label_table
from rationalizer.hub.publishing import name_of
from rationalizer.hub.starters import CARD, Facts
from rationalizer.metrics import METRICS, headline_metrics
from rationalizer.models import TrainedModel
from rationalizer.models.atomic_files import write_bytes
from rationalizer.plurals import count_of
from rationalizer.training.runs import RunRecord

PICTURE = "example.svg"
# Marks the cards written by this module; a card without it was edited by a user and is kept.
MARKER = "<!-- Written by rationalizer. Without this line the next save leaves the card as it is. -->"
TEXT_LIMITATIONS = (
    "The prediction is based only on the words of the rationale. Other words might have led to the same prediction, "
    "and the selection of the words depends on the whole text.",
    "Words that the model does not know are marked in its explanations. They are part of a rationale only if the model "
    "knows no word of the text, and the prediction is then a guess.",
)
PAIR_LIMITATIONS = (
    "The alignment shows which words were compared. Words that are not aligned are not compared, but the choice of the "
    "aligned words depends on both texts.",
)
CONTEXT_LIMITATION = (
    "The state of an aligned word is computed from its whole text and may contain information about its neighbours."
)

BALANCED_LIMITATION = (
    "The classes counted equally in training, whatever their frequencies. Where some are rare, the model predicts them "
    "more often than they occur, and the probabilities are those for equally frequent classes."
)


def write_card(
    folder: Path,
    trained: TrainedModel,
    *,
    name: str | None = None,
    record: RunRecord | None = None,
    example: AnyExplanation | None = None,
    facts: Facts | None = None,
) -> None:
    """Write `README.md`, and `example.svg` if there is an example, unless a user has edited the card.

    Args:
        folder: the model's folder.
        trained: the model.
        name: the name to load it by; by default the folder's name.
        record: the scores of its run (`training.runs.read_run_record`).
        example: an explanation to draw.
        facts: further facts.
    """
    path = folder / CARD
    if path.is_file() and MARKER not in path.read_text(encoding="utf-8", errors="replace"):
        return
    text = card(trained, name=name or folder.resolve().name, record=record, example=example, facts=facts)
    write_bytes(path, text.encode())
    if example is not None:
        write_bytes(folder / PICTURE, to_svg(example).encode())


def card(
    trained: TrainedModel,
    *,
    name: str,
    record: RunRecord | None = None,
    example: AnyExplanation | None = None,
    facts: Facts | None = None,
) -> str:
    """Return the text of the card; see `write_card`."""
    facts = facts or Facts()
    limitations = [
        *(PAIR_LIMITATIONS if trained.pairs else TEXT_LIMITATIONS),
        *([CONTEXT_LIMITATION] if trained.pairs and not trained.model.ignores_gaps else []),
        *_class_limitations(trained),
        *facts.limits,
    ]
    parts = {
        "": [_header(trained, facts), MARKER, f"# {name}", facts.about or _about(trained), _use(trained, name)],
        "Example": [] if example is None else _draw(example),
        "Data": _data(record, facts),
        "Scores": _scores(trained, record, facts),
        "Thresholds": _thresholds(trained),
        "Budget": [_budget(trained)],
        "Limitations": ["\n".join(f"- {point}" for point in limitations)],
        "Settings": [_settings(trained, facts)],
    }
    blocks: list[str] = []
    for title, part in parts.items():
        blocks += [f"## {title}"] if title and part else []
        blocks += part
    return "\n\n".join(blocks) + "\n"


def _header(trained: TrainedModel, facts: Facts) -> str:
    lines = ["library_name: rationalizer", "pipeline_tag: text-classification"]
    lines += [f"license: {facts.licence}"] if facts.licence else []
    lines += [f"language: {facts.language}"] if facts.language else []
    lines += ["tags:", "- rationalization", "- explainability", f"- {trained.config.method}"]
    return "\n".join(["---", *lines, "---"])


def _about(trained: TrainedModel) -> str:
    names = trained.description.labels.names or trained.classes
    more = f" and {len(names) - MAX_LABELS} more" if len(names) > MAX_LABELS else ""
    what = f"predicts {', '.join(names[:MAX_LABELS])}{more}" if names else "predicts a number"
    if trained.pairs:
        return f"A model for pairs of texts that {what} and shows which words it compared."
    if trained.description.rationales != "shared":
        return f"A model for texts that {what}, each from words of its own, and shows these words."
    return f"A model for texts that {what} and reads only the words it shows."


def _use(trained: TrainedModel, name: str) -> str:
    texts = '"A man plays a guitar.", "A man makes music."' if trained.pairs else '"A text to explain."'
    return (
        "```python\nfrom rationalizer import Rationalizer\n\n"
        f"model = Rationalizer.load({json.dumps(name, ensure_ascii=False)})\nprint(model.explain({texts}))\n```"
    )


def _draw(example: AnyExplanation) -> list[str]:
    return [f"```text\n{to_terminal(example, colour=False)}\n```", f"![The same example as a picture]({PICTURE})"]


def _data(record: RunRecord | None, facts: Facts) -> list[str]:
    if facts.data:
        rows = [(one["name"], one["use"], one["terms"]) for one in facts.data]
        return [_table(("data", "used for", "terms"), rows)]
    source = None if record is None else record["data"]["source"]
    known = "" if source is None else f"Trained on {DataSource.from_json(source).name}. "
    return [f"{known}The terms of use of the training data are not recorded; ask the author of the model."]


def _scores(trained: TrainedModel, record: RunRecord | None, facts: Facts) -> list[str]:
    if facts.scores:
        measured = [(one["data"], one) for one in facts.scores]
    elif record is not None and record["scores"]:
        measured = [(f"{split} split", scores) for split, scores in record["scores"].items()]
    else:
        best, score = trained.history["best"], METRICS[trained.history["score"]]
        if best is None:
            return ["No scores were computed after the training."]
        return [f"{score.description} {score.format_value(best)} on the dev texts; no others were measured."]
    shown = [metric for metric in headline_metrics() if any(metric.name in scores for _, scores in measured)]
    heads = ("data", *(metric.description for metric in shown))
    rows = [
        (data, *(metric.format_value(scores[metric.name]) if metric.name in scores else "" for metric in shown))
        for data, scores in measured
    ]
    return [_table(heads, rows), *_label_scores(record)]


def _label_scores(record: RunRecord | None) -> list[str]:
    """The scores of each of several labels, on the last split."""
    splits = {} if record is None else record.get("labels", {})
    if not splits:
        return []
    split, by_label = list(splits.items())[-1]
    table = label_table(by_label, most=MAX_LABELS)
    return [f"By label, {split} split:", _table(table.heads, table.lines)]


def _thresholds(trained: TrainedModel) -> list[str]:
    if trained.task != "multi-label":
        return []
    rows = [(name, f"{p:.3f}") for name, p in zip(trained.classes, trained.thresholds, strict=True)]
    table = HtmlTable(("label", "threshold"), rows).first(MAX_LABELS)
    return ["A text has a label from this probability on (`model.thresholds`).", _table(table.heads, table.lines)]


def _class_limitations(trained: TrainedModel) -> list[str]:
    if len(trained.classes) < 2:
        return []
    weighed = trained.task == "classification" and trained.config.class_weight == "balanced"
    balanced = weighed or trained.config.sampling == "balanced"
    warnings = [f"On the dev texts {message}." for message in trained.history.get("warnings", [])]
    return [*([BALANCED_LIMITATION] if balanced else []), *warnings]


def _budget(trained: TrainedModel) -> str:
    config = trained.config
    if not trained.model.method.follows_budget:
        return f"`{config.method}` does not follow a budget."
    unit = "pair" if trained.pairs else "word"
    of = " of the shorter text" if trained.pairs else " of a text's words, but at least one"
    if config.budget.kind == "average":
        return (
            f"{config.budget.describe()} of each text. Another average can be asked for at any time, without training."
        )
    amount = config.budget.describe(unit) + (of if config.budget.kind == "share" else "")
    return f"At most {amount}. The budget can be changed at any time (`model.budget = ...`), without training."


def _settings(trained: TrainedModel, facts: Facts) -> str:
    config = trained.config
    versions = trained.history.get("versions") or {}
    options = {**config.options, **facts.settings}
    listed = ", ".join(f"{key} {value}" for key, value in options.items())
    lines = [
        f"Method `{config.method}`{f' ({listed})' if listed else ''}, "
        f"encoder `{name_of(config.encoder)}`, seed {config.seed}.",
        f"{count_of(len(trained.history['epochs']), 'epoch')}; trained with "
        f"{', '.join(f'{k} {v}' for k, v in versions.items())}.",
    ]
    return " ".join(lines)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
