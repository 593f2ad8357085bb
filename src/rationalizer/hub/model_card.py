"""The model card: what somebody must know who finds a model without its maker. `README.md` beside the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rationalizer.data import DataSource
from rationalizer.drawing import AnyExplanation, to_svg, to_terminal
from rationalizer.metrics import METRICS, headline_metrics
from rationalizer.models import TrainedModel
from rationalizer.models.atomic_files import write_bytes
from rationalizer.training.runs import RunRecord

CARD, PICTURE = "README.md", "example.svg"
# In every card that was written here; a card without it is somebody's own and stays.
OURS = "<!-- Written by rationalizer. Without this line the next save leaves the card as it is. -->"
LIMITS = (
    "The words that are shown are all that the prediction was made from. They are not all that could have led to it, "
    "and which words are shown depends on the whole text.",
    "Words that the model does not know are marked in its explanations and are never shown as reasons.",
)
LIMITS_OF_PAIRS = (
    "The alignment says which words were compared. The state of an aligned word comes from its whole sentence and may "
    "know of its neighbours.",
    "A word that is not aligned is not compared, but which words are aligned depends on both sentences.",
)


@dataclass(frozen=True)
class Facts:
    """What a model's files do not say of it, and its maker does."""

    about: str = ""  # in a sentence
    data: Sequence[Mapping[str, str]] = ()  # each with `name`, `use` and `terms`
    scores: Sequence[Mapping[str, Any]] = ()  # each with `data` and the scores by their names
    limits: Sequence[str] = ()
    licence: str = ""  # as the Hub abbreviates it
    language: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)  # what training was called with


def write_card(
    folder: Path,
    trained: TrainedModel,
    *,
    name: str | None = None,
    record: RunRecord | None = None,
    example: AnyExplanation | None = None,
    facts: Facts | None = None,
) -> None:
    """Writes `README.md`, and `example.svg` if there is an example, unless somebody wrote a card of their own.

    Args:
        folder: where the model is.
        trained: the model.
        name: what it is loaded by; the folder's if not given.
        record: what was measured after its training (`learn.runs.record_of`).
        example: an explanation to be drawn.
        facts: what else is known.
    """
    path = folder / CARD
    if path.is_file() and OURS not in path.read_text(encoding="utf-8", errors="replace"):
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
    """The card's text; see `write_card`."""
    facts = facts or Facts()
    parts = {
        "": [_header(trained, facts), OURS, f"# {name}", facts.about or _about(trained), _use(trained, name)],
        "Example": [] if example is None else _drawn(example),
        "Data": _data(trained, record, facts),
        "Scores": _scores(trained, record, facts),
        "Budget": [_budget(trained)],
        "Limits": [_listed([*(LIMITS_OF_PAIRS if trained.pairs else LIMITS), *facts.limits])],
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
    what = f"predicts {', '.join(trained.classes)}" if trained.classes else "predicts a number"
    if trained.pairs:
        return f"A model of pairs of texts that {what} and shows which words it compared."
    return f"A model of texts that {what} and reads only the words it shows."


def _use(trained: TrainedModel, name: str) -> str:
    texts = '"A man plays a guitar.", "A man makes music."' if trained.pairs else '"A text to explain."'
    return (
        "```python\nfrom rationalizer import Rationalizer\n\n"
        f"model = Rationalizer.load({name!r})\nprint(model.explain({texts}))\n```"
    )


def _drawn(example: AnyExplanation) -> list[str]:
    return [f"```text\n{to_terminal(example, colour=False)}\n```", f"![The same, drawn]({PICTURE})"]


def _data(trained: TrainedModel, record: RunRecord | None, facts: Facts) -> list[str]:
    if facts.data:
        rows = [(one["name"], one["use"], one["terms"]) for one in facts.data]
        return [_table(("data", "used for", "terms"), rows)]
    source = None if record is None else record["data"]["source"]
    known = "" if source is None else f"Trained on {DataSource.from_json(source).name}. "
    return [f"{known}The terms of the training data are not recorded; the maker of the model has to say."]


def _scores(trained: TrainedModel, record: RunRecord | None, facts: Facts) -> list[str]:
    if facts.scores:
        measured = [(one["data"], one) for one in facts.scores]
    elif record is not None and record["scores"]:
        measured = [(f"{split} split", scores) for split, scores in record["scores"].items()]
    else:
        best, score = trained.history["best"], METRICS[trained.history["score"]]
        if best is None:
            return ["None were measured after the training."]
        return [f"{score.description} {score.format_value(best)} on the dev texts; no others were measured."]
    shown = [metric for metric in headline_metrics() if any(metric.name in scores for _, scores in measured)]
    heads = ("data", *(metric.description for metric in shown))
    rows = [
        (data, *(metric.format_value(scores[metric.name]) if metric.name in scores else "" for metric in shown))
        for data, scores in measured
    ]
    return [_table(heads, rows)]


def _budget(trained: TrainedModel) -> str:
    config = trained.config
    if not trained.model.method.follows_budget:
        return f"What `{config.method}` selects does not follow a budget."
    unit = "pair" if trained.pairs else "word"
    of = " of the shorter text" if trained.pairs else " of a text's words, one at least"
    amount = config.budget.describe(unit) + (of if config.budget.kind == "share" else "")
    return f"At most {amount}. Another budget can be given at any time (`model.budget = ...`), without training."


def _settings(trained: TrainedModel, facts: Facts) -> str:
    config = trained.config
    made = trained.history.get("versions") or {}
    options = {**config.options, **facts.settings}
    told = ", ".join(f"{key} {value}" for key, value in options.items())
    lines = [
        f"Method `{config.method}`{f' ({told})' if told else ''}, encoder `{config.encoder}`, seed {config.seed}.",
        f"{len(trained.history['epochs'])} epochs; made with {', '.join(f'{k} {v}' for k, v in made.items())}.",
    ]
    return " ".join(lines)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _listed(points: Sequence[str]) -> str:
    return "\n".join(f"- {point}" for point in points)
