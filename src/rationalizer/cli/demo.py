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

if TYPE_CHECKING:
    from rationalizer.drawing import AnyExplanation, Label, Section
    from rationalizer.metrics import Scores
    from rationalizer.text import AnyExample

SHOWN = 3  # trained model's examples in the terminal
REPORTED = 8  # and in the report
SETTINGS: dict[str, Any] = {"epochs": 8, "patience": 3}  # fewer seconds than the defaults, which wait for improvements
STARTED = (
    (
        "sentiment",
        "Texts",
        "A model that comes with the package says whether a text is for or against what it speaks of. It reads at most "
        "20% of the words: those in brackets, or coloured. The others it never sees.",
    ),
    (
        "nli",
        "Pairs of sentences",
        "Another one says whether the second sentence follows from the first. It sees the first one only through the "
        "words that it aligns with the second's.",
    ),
)


@command(
    "rationalizer demo",
    "rationalizer demo --out /tmp/demo",
    stopped="Stopped. The same command goes on from here.",
)
def demo(
    out_dir: Annotated[Path, typer.Option("--out", help="Where to keep the model and the report.")] = Path("runs/demo"),
) -> None:
    """See the reasons of the models that come with the package, then train a small one, offline, in a minute.

    The one that is trained labels reviews of hotel stays. They are generated, so that the words which decide are known.
    A second call shows the same again.
    """
    import torch

    from rationalizer.drawing import to_html_page
    from rationalizer.models.atomic_files import write_bytes

    torch.set_num_threads(1)  # models this small gain nothing from more, and on a busy machine they lose much
    started = time.perf_counter()
    sections = [_started(*part) for part in STARTED]
    sections.append(_trained(out_dir))
    page = out_dir / "report.html"
    lead = "Two models that come with the package and one trained just now, and what they based their answers on."
    write_bytes(page, to_html_page(title="rationalizer demo", lead=lead, sections=sections).encode())
    out.print(f"\nDone in {time.perf_counter() - started:.0f} s. The same as a page: {page}\n", style="bold")
    out.print("Next:")
    for line in _next(_bin(), out_dir):
        out.print(f"  {line}", markup=False)


def _next(folder: str, out_dir: Path) -> list[str]:
    """Calls to try, of the programs in this folder."""
    program = f"{folder}rationalizer"
    web = [f'{folder}pip install ".[web]"   # in the checkout, once'] if find_spec("fastapi") is None else []
    return [
        f'{program} explain sentiment "The rooms were filthy but the staff was lovely."',
        *web,
        f"{program} serve   # a web page of both models",
        f"{program} evaluate {out_dir / 'stays'} --report report.html",
        f"{program} train your.csv --budget 20%   # columns: text,label",
    ]


def _bin() -> str:
    """What stands before a program of this environment for the shell to find it: nothing in an active one."""
    folder = Path(sys.executable).parent
    if str(folder) in os.environ.get("PATH", "").split(os.pathsep):
        return ""
    return f"{folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder}{os.sep}"


def _started(name: str, title: str, about: str) -> Section:
    """What a model of the package says of its own examples."""
    from rationalizer.drawing import Section
    from rationalizer.hub import starter
    from rationalizer.model import Rationalizer

    out.rule(title, align="left")
    out.print(f"{about}\n")
    model = Rationalizer.load(starter(name).folder)
    explained = model.explain(starter(name).examples)
    _show(explained[: SHOWN if model.pairs else None], [None] * len(explained))
    return Section(title, text=about, explanations=explained)


def _trained(out_dir: Path) -> Section:
    """A model that is trained on the embedded reviews of stays."""
    from rationalizer.compare import describe_method
    from rationalizer.data import DataSource
    from rationalizer.drawing import HtmlTable, Section
    from rationalizer.metrics import headline_metrics, score_rows
    from rationalizer.model import Rationalizer
    from rationalizer.models import configure
    from rationalizer.training import run

    title = "A model of your own"
    about = (
        "Trained just now on generated reviews of hotel stays: SPECTRA's H:SeqBudget, at most 20% of each review's "
        "words. Those that decide the label are known from the making and underlined."
    )
    where = DataSource.resolve("stays")
    corpus = where.load()
    config = configure(None, {"budget": where.budget, **SETTINGS}, pairs=where.pairs)
    out.rule(title, align="left")
    out.print(f"{about}\n\nTraining on {len(corpus.train)} reviews ({describe_method(config)}) ...")
    done = run(corpus, config, out_dir / "stays", source=where, resume=True, accelerator="cpu")
    trained, scores = done.trained, done.scores["test"]
    lines = score_rows({"test": scores}, headline_metrics())
    out.print(f"{len(trained.history['epochs'])} epochs, {trained.seconds:.0f} s. Against the known truth:")
    show_table(["score", f"{scores.documents} held out"], lines)
    model = Rationalizer.from_trained(trained)
    examples = _mixed(corpus.test, REPORTED)
    explained, truths = model.explain_examples(examples), [model.label_of(example) for example in examples]
    _show(explained[:SHOWN], truths[:SHOWN])
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
    """One of each class in turn, the shorter ones, which are read at a glance."""
    by_label: dict[Any, list[AnyExample]] = {}
    for example in sorted(examples, key=lambda one: max(one.shape)):
        by_label.setdefault(example.label, []).append(example)
    longest = [group[len(group) // 3 :] for _, group in sorted(by_label.items())]
    return [group[k] for k in range(count) for group in longest if k < len(group)][:count]


def _show(explained: Sequence[AnyExplanation], truths: Sequence[Label | None]) -> None:
    from rich.text import Text

    from rationalizer.drawing import to_terminal

    colour = out.is_terminal and not out.no_color
    for k, (explanation, truth) in enumerate(zip(explained, truths, strict=False)):
        drawn = to_terminal(
            explanation,
            truth=truth,
            colour=colour,
            width=min(out.width, 100) if out.is_terminal else None,
            legend=k == len(explained) - 1,
        )
        out.print(Text.from_ansi(drawn) if colour else Text(drawn), end="\n\n")
