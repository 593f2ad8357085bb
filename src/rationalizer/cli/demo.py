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
    from rationalizer.metrics import Scores
    from rationalizer.rationalizer import Rationalizer
    from rationalizer.render import Section
    from rationalizer.text import AnyExample

SHOWN = 3  # examples of each kind in the terminal
REPORTED = 8  # and in the report
# Enough for either corpus; fewer seconds than the defaults, which wait for improvements.
SETTINGS: dict[str, dict[str, Any]] = {
    "reviews": {"epochs": 9, "patience": 3},
    "pairs": {"epochs": 8, "patience": 3},
}


@command(
    "rationalizer demo",
    "rationalizer demo --out /tmp/demo",
    stopped="Stopped. The same command goes on from here.",
)
def demo(
    out_dir: Annotated[Path, typer.Option("--out", help="Where to keep the models and the report.")] = Path(
        "runs/demo"
    ),
) -> None:
    """Train two small models on embedded data, offline, in a minute or two, and see their reasons.

    One labels reviews from at most 22% of their words, the other tells from an alignment of words whether one
    sentence follows from another. In both corpora the true reasons are known. A second call shows the same again.
    """
    import torch

    from rationalizer.learn.storage import write_bytes
    from rationalizer.render import to_html_page

    torch.set_num_threads(1)  # models this small gain nothing from more, and on a busy machine they lose much
    started = time.perf_counter()
    sections = [
        _part(
            "reviews",
            out_dir,
            "Reviews",
            "A classifier that reads only the words it shows: SPECTRA's H:SeqBudget, at most 22% of each review's "
            "words. Those that decide the label are known in this corpus and underlined.",
        ),
        _part(
            "pairs",
            out_dir,
            "Pairs of sentences",
            "Does the second sentence follow from the first? The model sees the first one only through the alignment "
            "of its words with the second's (M:AtMostOne2).",
        ),
    ]
    page = out_dir / "report.html"
    lead = "Two models trained on embedded data, and what they based their answers on."
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
        f'{program} explain {out_dir / "reviews"} "The rooms were filthy but the staff was lovely."',
        *web,
        f"{program} serve {out_dir / 'reviews'}   # a web page",
        f"{program} train your.csv --budget 20%   # columns: text,label",
    ]


def _bin() -> str:
    """What stands before a program of this environment for the shell to find it: nothing in an active one."""
    folder = Path(sys.executable).parent
    if str(folder) in os.environ.get("PATH", "").split(os.pathsep):
        return ""
    return f"{folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder}{os.sep}"


def _part(name: str, out_dir: Path, title: str, about: str) -> Section:
    from rationalizer.data import Source
    from rationalizer.learn import configure, run
    from rationalizer.metrics import headlines, score_lines
    from rationalizer.rationalizer import Rationalizer
    from rationalizer.render import Listing, Section
    from rationalizer.study import method_text

    where = Source.of(name)
    corpus = where.load()
    config = configure(None, {"budget": where.budget, **SETTINGS[name]}, pairs=where.pairs)
    out.rule(title, align="left")
    out.print(f"{about}\n\nTraining on {len(corpus.train)} examples ({method_text(config)}) ...")
    done = run(corpus, config, out_dir / name, source=where, resume=True, accelerator="cpu")
    trained, scores = done.trained, done.scores["test"]
    lines = score_lines({"test": scores}, headlines())
    out.print(f"{len(trained.metrics['epochs'])} epochs, {trained.seconds:.0f} s. Against the known truth:")
    show_table(["score", f"{scores.documents} held out"], lines)
    model = Rationalizer.of(trained)
    examples = _mixed(corpus.test, REPORTED)
    _show(model, examples[:SHOWN])
    return Section(
        title,
        text=about,
        figures=_figures(scores),
        tables=[Listing(["score", "held out"], lines)],
        explanations=model.explain_examples(examples),
        truths=[model.label_of(example) for example in examples],
    )


def _figures(scores: Scores) -> list[tuple[str, str]]:
    from rationalizer.metrics import METRICS

    names = ("macro_f1", "token_f1", "alignment_f1")
    found = scores.as_dict()
    return [(METRICS[name].short, METRICS[name].text(found[name])) for name in names if name in found]


def _mixed(examples: Sequence[AnyExample], count: int) -> list[AnyExample]:
    """One of each class in turn, the shorter ones, which are read at a glance."""
    by_label: dict[Any, list[AnyExample]] = {}
    for example in sorted(examples, key=lambda one: max(one.shape)):
        by_label.setdefault(example.label, []).append(example)
    longest = [group[len(group) // 3 :] for _, group in sorted(by_label.items())]
    return [group[k] for k in range(count) for group in longest if k < len(group)][:count]


def _show(model: Rationalizer, examples: Sequence[AnyExample]) -> None:
    from rich.text import Text

    from rationalizer.render import to_terminal

    colour = out.is_terminal and not out.no_color
    for k, (example, explanation) in enumerate(zip(examples, model.explain_examples(examples), strict=True)):
        drawn = to_terminal(
            explanation,
            truth=model.label_of(example),
            colour=colour,
            width=min(out.width, 100) if out.is_terminal else None,
            legend=k == len(examples) - 1,
        )
        out.print(Text.from_ansi(drawn) if colour else Text(drawn), end="\n\n")
