"""`rationalizer demo`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rationalizer.cli.base import command, out, show_table
from rationalizer.cli.evaluation_views import print_explanations
from rationalizer.plurals import count_of

if TYPE_CHECKING:
    from rationalizer.drawing import Section
    from rationalizer.metrics import Scores
    from rationalizer.text import AnyExample

PRINTED = 3  # examples of the trained model in the terminal
REPORTED = 8  # and in the report
SETTINGS: dict[str, Any] = {"epochs": 8, "patience": 3}  # faster than the defaults, which wait longer for improvements
STARTER_SECTIONS = (
    (
        "sentiment",
        "Texts",
        "A model that comes with the package predicts whether a text is positive or negative. It reads at most 20% of "
        "the words, those in brackets or coloured, and never sees the others.",
    ),
    (
        "nli",
        "Pairs of sentences",
        "Another model predicts whether the second sentence follows from the first. It sees the first sentence only "
        "through the words that it aligns with words of the second.",
    ),
)


@command(
    "rationalizer demo",
    "rationalizer demo --out /tmp/demo",
    stopped="Stopped. The same command continues.",
)
def demo(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder of the model and the report.")] = Path("runs/demo"),
) -> None:
    """Explain texts with the starter models, then train a small model, offline, in a minute.

    The small model classifies generated reviews of hotel stays, for which the decisive words are known. A second call
    reuses the trained model.
    """
    import torch

    from rationalizer.drawing import to_html_page
    from rationalizer.models.atomic_files import write_bytes

    torch.set_num_threads(1)  # more threads slow down models this small on a busy machine
    started = time.perf_counter()
    sections = [_starter_section(*part) for part in STARTER_SECTIONS]
    sections.append(_training_section(out_dir))
    page = out_dir / "report.html"
    lead = "Two models that come with the package and one trained just now, with the rationales of their predictions."
    write_bytes(page, to_html_page(title="rationalizer demo", lead=lead, sections=sections).encode())
    out.print(f"\nDone in {time.perf_counter() - started:.0f} s. The same as a web page: {page}\n", style="bold")
    out.print("Next:")
    for line in _next_commands(_program_folder(), out_dir):
        out.print(f"  {line}", markup=False)


def _next_commands(folder: str, out_dir: Path) -> list[str]:
    """Commands to try next; `folder` is the prefix of the programs."""
    program = f"{folder}rationalizer"
    web = [f'{folder}pip install ".[web]"   # once, in the checkout'] if find_spec("fastapi") is None else []
    return [
        f'{program} explain sentiment "The rooms were filthy but the staff was lovely."',
        *web,
        f"{program} serve   # a web page with two starter models",
        f"{program} evaluate {out_dir / 'stays'} --report report.html",
        f"{program} train your.csv --budget 20%   # columns: text,label",
    ]


def _program_folder() -> str:
    """The prefix with which a shell finds programs of this environment: empty if the environment is active."""
    folder = Path(sys.executable).parent
    if str(folder) in os.environ.get("PATH", "").split(os.pathsep):
        return ""
    return f"{folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder}{os.sep}"


def _starter_section(name: str, title: str, about: str) -> Section:
    """Explain a starter model's own examples."""
    from rationalizer.drawing import Section
    from rationalizer.hub import starter
    from rationalizer.model import Rationalizer

    out.rule(title, align="left")
    out.print(f"{about}\n")
    model = Rationalizer.load(starter(name).folder)
    explained = model.explain(starter(name).examples)
    print_explanations(explained[: PRINTED if model.pairs else None], legend=True)
    return Section(title, text=about, explanations=explained)


def _training_section(out_dir: Path) -> Section:
    """Train a model on the embedded reviews of hotel stays."""
    from rationalizer.compare import describe_method
    from rationalizer.data import DataSource
    from rationalizer.drawing import HtmlTable, Section
    from rationalizer.metrics import headline_metrics, score_rows
    from rationalizer.model import Rationalizer
    from rationalizer.models import configure
    from rationalizer.training import run

    title = "A model of your own"
    about = (
        "Trained just now on generated reviews of hotel stays, with SPECTRA's H:SeqBudget, at most 20% of the words of "
        "each review. The words that decide the label are known, because the reviews are generated, and underlined."
    )
    data = DataSource.resolve("stays")
    corpus = data.load()
    config = configure(None, {"budget": data.budget, **SETTINGS}, pairs=data.pairs)
    out.rule(title, align="left")
    out.print(f"{about}\n\nTraining on {len(corpus.train)} reviews ({describe_method(config)}) ...")
    result = run(corpus, config, out_dir / "stays", source=data, resume=True, device="cpu")
    trained, scores = result.trained, result.scores["test"]
    lines = score_rows({"test": scores}, headline_metrics())
    out.print(
        f"{count_of(len(trained.history['epochs']), 'epoch')}, {trained.seconds:.0f} s. Scores against the known truth:"
    )
    show_table(["score", f"{scores.documents} test reviews"], lines)
    model = Rationalizer.from_trained(trained)
    examples = _mixed(corpus.test, REPORTED)
    explained = model.explain_examples(examples, reasons=None)
    truths = [model.label_of(example) for example in examples]
    print_explanations(explained[:PRINTED], truths[:PRINTED], legend=True)
    return Section(
        title,
        text=about,
        figures=_figures(scores),
        tables=[HtmlTable(["score", "held out"], lines)],
        explanations=explained,
        truths=truths,
    )


def _figures(scores: Scores) -> list[tuple[str, str]]:
    from rationalizer.metrics import METRICS

    names = ("macro_f1", "token_f1")
    found = scores.as_dict()
    return [(METRICS[name].short_name, METRICS[name].format_value(found[name])) for name in names if name in found]


def _mixed(examples: Sequence[AnyExample], count: int) -> list[AnyExample]:
    """Examples of each class in turn, rather short ones, which are quick to read."""
    by_label: dict[Any, list[AnyExample]] = {}
    for example in sorted(examples, key=lambda one: max(one.shape)):
        by_label.setdefault(example.label, []).append(example)
    short = [group[len(group) // 3 :] for _, group in sorted(by_label.items())]
    return [group[k] for k in range(count) for group in short if k < len(group)][:count]
