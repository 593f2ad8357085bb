"""Explanations as HTML: a fragment for notebooks and pages, or a self-contained document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import groupby
from urllib.parse import urlencode

from rationalizer.drawing.alignment_drawing import lines_width
from rationalizer.drawing.captions import (
    HIGHLIGHT_TEXTS,
    PAIR_HIGHLIGHT_TEXTS,
    Bar,
    describe_prediction,
    legend_entries,
    percent,
    probabilities,
    rest_text,
)
from rationalizer.drawing.colours import PAGE_STYLE, SIGN_NAMES, STYLE
from rationalizer.drawing.explanation import AnyExplanation, PairExplanation, Picture
from rationalizer.drawing.highlight_kinds import SELECTED, Look, TextRun, pair_text_runs, text_runs
from rationalizer.drawing.label_rows import LabelRows, label_rows
from rationalizer.drawing.selected_words import Label
from rationalizer.drawing.svg import draw_alignment
from rationalizer.drawing.text_width import escape

WIDE, NARROW = 620.0, 280.0  # widths of drawings in pages; NARROW is for phones


def to_html(
    explanation: AnyExplanation,
    *,
    truth: Label | None = None,
    style: Picture = "lines",
    styled: bool = True,
    legend: bool = True,
) -> str:
    """Draw a fragment: the prediction, its probabilities, and the text with its rationale.

    Args:
        explanation: of a text or a pair.
        truth: the true label, if known.
        style: how alignments are drawn: "lines" or "heatmap".
        styled: include the style sheet; a page needs it only once (`html_opening` includes it).
        legend: include the legend; several explanations need it only once.
    """
    legend_html = f"{_legend([explanation])}\n" if legend else ""
    sheet = f"<style>{STYLE}</style>" if styled else ""
    rows = label_rows(explanation)
    head = _head(explanation, truth, bars=rows is None)
    body = _body(explanation, style) if rows is None else _paragraph(rows.runs) + _rows(rows)
    notes = "".join(f'<p class="rz-note">{escape(warning)}</p>\n' for warning in explanation.warnings)
    return f'<figure class="rationalizer">{sheet}\n{head}\n{notes}{body}\n{legend_html}</figure>\n'


def to_html_list(explanations: Sequence[AnyExplanation], *, left_out: int = 0) -> str:
    """Draw a list of explanations below one legend; `left_out` is the number of explanations not drawn."""
    line = "border-top: 1px solid rgb(128 128 128 / .3); padding: .9em 0"
    drawn = "".join(f'<div style="{line}">{to_html(one, styled=False, legend=False)}</div>\n' for one in explanations)
    rest = f'<p style="{line}">and {left_out} more</p>\n' if left_out else ""
    legend_html = (
        f'<div style="margin-bottom: .8em">{_legend(explanations)}</div>' if explanations else "<p>no explanations</p>"
    )
    return f'<div class="rationalizer"><style>{STYLE}</style>\n{legend_html}\n{drawn}{rest}</div>\n'


def _body(explanation: AnyExplanation, style: Picture = "lines") -> str:
    """The text with its highlights, or the alignment of a pair."""
    if not isinstance(explanation, PairExplanation):
        return _texts(explanation)
    if style == "lines" and lines_width(explanation, NARROW) is not None:
        return _drawing(explanation, style, NARROW, narrow=True)
    wide = _drawing(explanation, style, WIDE)
    # Add the texts themselves if they are not readable in the drawing.
    if style == "heatmap":
        return _texts(explanation) + wide
    # The style sheet shows the one of two drawings that fits.
    narrow = _drawing(explanation, style, NARROW, narrow=True)
    if lines_width(explanation, WIDE) is None:
        return _texts(explanation) + _fitted(wide, narrow)
    return _fitted(wide, _texts(explanation) + narrow)


def _drawing(explanation: PairExplanation, style: Picture, room: float, *, narrow: bool = False) -> str:
    return f'<div class="rz-drawing">{draw_alignment(explanation, style=style, room=room, narrow=narrow)}</div>'


def _fitted(wide: str, narrow: str) -> str:
    return f'<div class="rz-fitted"><div class="rz-wide">{wide}</div><div class="rz-narrow">{narrow}</div></div>'


def _rows(drawn: LabelRows) -> str:
    """The labels, each of which opens the text with its words."""
    rows = []
    for row in drawn.rows:
        bar = "" if row.p is None else f'<span style="width:{100 * row.p:.1f}%"></span>'
        track = f'<span class="rz-track">{bar}</span>' if bar else "<span></span>"
        share = "" if row.p is None else percent(row.p)
        has = " rz-has" if row.label.value is True else ""
        rows.append(
            f'<details class="rz-row{has}" style="--rz-l: var(--rz-l{row.colour})"><summary>'
            f'<bdi class="rz-name">{escape(row.name)}</bdi>{track}<span class="rz-percent">{share}</span></summary>'
            f"{_paragraph(row.runs)}</details>"
        )
    rest = f'<div class="rz-rest">{escape(rest_text(drawn))}</div>' if drawn.others else ""
    return f'<div class="rz-rows">{"".join(rows)}{rest}</div>'


def _texts(explanation: AnyExplanation) -> str:
    if not isinstance(explanation, PairExplanation):
        return _paragraph(text_runs(explanation))
    premise, hypothesis = pair_text_runs(explanation)
    return _paragraph(premise, "premise") + _paragraph(hypothesis, "hypothesis")


def _paragraph(runs: Sequence[TextRun], name: str = "") -> str:
    named = f' aria-label="{name}"' if name else ""
    texts = PAIR_HIGHLIGHT_TEXTS if name else HIGHLIGHT_TEXTS
    drawn = []
    for (kind, *_), group in groupby(runs, key=lambda run: run.look.group):
        members, meaning = list(group), texts.get(kind, "")
        if not kind:
            drawn.append("".join(map(_plain_text, members)))
        elif kind in SELECTED:
            inner = "".join(_marked(run, meaning) for run in members)
            drawn.append(f"<mark {_attributes(members[0].look)}>{inner}</mark>")
        else:
            drawn.append(f'<u class="rz-missed" title="{meaning}">{"".join(map(_plain_text, members))}</u>')
    return f'<p class="rz-text" dir="auto"{named}>{"".join(drawn)}</p>'


def _marked(run: TextRun, meaning: str) -> str:
    style = f"--w:{run.look.shade:.2f}{_stripes(run.look)}"
    return f'<span style="{style}" title="{_hint(run, meaning)}">{_plain_text(run)}</span>'


def _hint(run: TextRun, meaning: str) -> str:
    return escape(f"{run.look.hint}, {meaning}" if run.look.hint else meaning)


def _attributes(look: Look) -> str:
    if look.labels:
        return f'class="rz-{look.kind} rz-own" style="--rz-l: var(--rz-l{look.labels[0]})"'
    return f'class="rz-{look.kind} rz-{SIGN_NAMES[look.sign]}"' if look.sign else f'class="rz-{look.kind}"'


def _stripes(look: Look) -> str:
    """A stripe for each label of a word with several."""
    if len(look.labels) < 2:
        return ""
    height = 100 / len(look.labels)
    stops = (
        f"rgb(var(--rz-l{colour}) / .4) {k * height:.0f}% {(k + 1) * height:.0f}%"
        for k, colour in enumerate(look.labels)
    )
    return f"; background: linear-gradient({', '.join(stops)})"


def _plain_text(run: TextRun) -> str:
    """The text without highlight; dotted below if the model does not know the word."""
    text = escape(run.text)
    return f'<i class="rz-unknown" title="{HIGHLIGHT_TEXTS["unknown"]}">{text}</i>' if run.unknown else text


def _head(explanation: AnyExplanation, truth: Label | None, *, bars: bool = True) -> str:
    prediction = describe_prediction(explanation, truth)
    wrong = " rz-wrong" if prediction.correct is False else ""
    remark = f'<span class="rz-remark{wrong}">{escape(prediction.remark)}</span>'
    drawn = "".join(
        f'<bdi>{escape(bar.name)}</bdi><span class="rz-track"><span{_bar_class(bar)} style="width:{100 * bar.p:.1f}%">'
        f'</span></span><span class="rz-percent">{percent(bar.p)}</span>'
        for bar in (probabilities(explanation) if bars else ())
    )
    drawn = f'<span class="rz-bars">{drawn}</span>' if drawn else ""
    return (
        f'<figcaption class="rz-head"><span class="rz-verdict"><bdi class="rz-label">{escape(prediction.label)}</bdi>'
        f"{remark if prediction.remark else ''}</span>{drawn}</figcaption>"
    )


def _bar_class(bar: Bar) -> str:
    return f' class="rz-bar-{SIGN_NAMES[bar.sign]}"' if bar.sign == "-" else ""


def _legend(explanations: Sequence[AnyExplanation]) -> str:
    """One legend for all explanations."""
    entries = []
    distinct = dict.fromkeys(entry for explanation in explanations for entry in legend_entries(explanation))
    for entry in sorted(distinct, key=lambda entry: not entry.look.kind):  # notes last
        kind = entry.look.kind
        sample = f"<mark {_attributes(entry.look)}><span>abc</span></mark>" if kind in SELECTED else ""
        sample = '<u class="rz-missed">abc</u>' if kind == "missed" else sample
        sample = '<i class="rz-unknown">abc</i>' if kind == "unknown" else sample
        entries.append(f"<li>{sample}{escape(entry.text)}</li>")
    return f'<ul class="rz-key">{"".join(entries)}</ul>'


@dataclass(frozen=True)
class Section:
    """A part of a page; its contents are drawn in the order of the fields."""

    title: str = ""
    _: KW_ONLY
    text: str = ""  # paragraphs, separated by empty lines
    notices: Sequence[str] = ()  # warnings
    figures: Sequence[tuple[str, str]] = ()  # (name, value), in large print
    tables: Sequence[HtmlTable] = ()
    pictures: Sequence[str] = ()  # SVG, as of `rationalizer.drawing.charts`
    columns: Sequence[WordColumn] = ()
    explanations: Sequence[AnyExplanation] = ()
    truths: Sequence[Label | None] | None = None  # true labels of the explanations
    captions: Sequence[str] = ()  # captions of the explanations; with captions they are drawn side by side
    correct: str = ""  # the address of an annotation page, to which each explanation then has a link with its text


@dataclass(frozen=True)
class WordColumn:
    """Words with example texts, which open on a click."""

    title: str
    entries: Sequence[WordEntry]


@dataclass(frozen=True)
class WordEntry:
    """A word, in how many texts it is selected, and example texts."""

    name: str
    count: int
    total: int  # texts that contain the word
    texts: Sequence[AnyExplanation]


@dataclass(frozen=True)
class HtmlTable:
    """A table of plain text."""

    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    numbers: bool = True  # whether all columns but the first are right-aligned

    def first(self, most: int | None) -> HtmlTable:
        """The first lines of a longer table, and how many there are more; None: all."""
        more = 0 if most is None else len(self.lines) - most
        if more <= 0:
            return self
        rest = [f"and {more} more", *("" for _ in self.heads[1:])]
        return replace(self, lines=[*self.lines[:most], rest])


def to_html_page(
    explanations: Sequence[AnyExplanation] = (),
    *,
    title: str,
    lead: str = "",
    truths: Sequence[Label | None] | None = None,
    sections: Iterable[Section] = (),
    contents: bool = False,
) -> str:
    """Draw a self-contained document.

    Args:
        explanations: drawn one below the other.
        title: of the page.
        lead: first paragraph.
        truths: the true labels of the explanations.
        sections: follow the explanations.
        contents: whether a table of contents follows the first section.
    """
    first = [Section(explanations=explanations, truths=truths)] if explanations else []
    drawn = [*first, *sections]
    parts = [section_html(section, f"part-{number}") for number, section in enumerate(drawn)]
    if contents:
        links = [
            f'<li><a href="#part-{number}">{escape(section.title)}</a></li>'
            for number, section in enumerate(drawn)
            if section.title
        ]
        parts.insert(1, f'<nav aria-label="Contents"><ul>{"".join(links)}</ul></nav>\n')
    return html_opening(title, lead) + "".join(parts) + html_closing()


def html_opening(title: str, lead: str = "") -> str:
    """The beginning of a document, to be followed by `to_html(..., styled=False)` fragments and `html_closing`."""
    # Whatever a text contains: no scripts, no requests.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n"
        f'<h1 dir="auto">{escape(title)}</h1>\n' + (f'<p class="lead">{escape(lead)}</p>\n' if lead else "")
    )


def to_html_fragment(sections: Iterable[Section]) -> str:
    """Draw sections with their style, for the shadow tree of another page."""
    return f"<style>{PAGE_STYLE}{STYLE}</style>\n" + "".join(map(section_html, sections))


def html_closing() -> str:
    return "</body>\n</html>\n"


def section_html(section: Section, anchor: str = "") -> str:
    truths = section.truths if section.truths is not None else [None] * len(section.explanations)
    if len(truths) != len(section.explanations):
        raise ValueError(f"{len(section.explanations)} explanations, but {len(truths)} true labels")
    parts = [f"<h2>{escape(section.title)}</h2>"] if section.title else []
    parts += [f"<p>{escape(paragraph)}</p>" for paragraph in section.text.split("\n\n") if paragraph.strip()]
    parts += [f'<p class="notice">{escape(notice)}</p>' for notice in section.notices]
    if section.figures:
        tiles = (f"<div><dd>{escape(value)}</dd><dt>{escape(name)}</dt></div>" for name, value in section.figures)
        parts.append(f'<dl class="figures">{"".join(tiles)}</dl>')
    if section.tables:
        narrow = all(len(table.heads) <= 3 for table in section.tables)  # fit side by side
        several = " several" if len(section.tables) > 1 and narrow else ""
        parts.append(f'<div class="tables{several}">{"".join(_table(table) for table in section.tables)}</div>')
    parts += [f'<div class="picture">{picture}</div>' for picture in section.pictures]
    if section.columns:
        parts.append(f'<div class="columns">{"".join(map(_column, section.columns))}</div>')
    if section.explanations and not section.captions:
        parts.append(f'<div class="rationalizer">{_legend(section.explanations)}</div>')
    drawn = zip(section.explanations, truths, strict=True)
    articles = [article(*pair, legend=False, correct=section.correct) for pair in drawn]
    if section.captions:
        pairs = zip(section.captions, articles, strict=True)
        captioned = (f"<div><h3>{escape(caption)}</h3>{one}</div>" for caption, one in pairs)
        articles = [f'<div class="columns">{"".join(captioned)}</div>']
    parts += articles
    opening = f'<section id="{anchor}">' if anchor else "<section>"
    return f"{opening}\n" + "\n".join(parts) + "\n</section>\n"


def article(explanation: AnyExplanation, truth: Label | None = None, *, legend: bool = True, correct: str = "") -> str:
    """Draw an explanation as an article of a document, with a link to the annotation page at the address `correct`."""
    link = f'<a href="{escape(_page_with_text(correct, explanation))}">Correct this</a>' if correct else ""
    return f"<article>{to_html(explanation, truth=truth, styled=False, legend=legend)}{link}</article>\n"


def _page_with_text(address: str, explanation: AnyExplanation) -> str:
    """The address of the annotation page with this text. Browsers do not send the part after the #."""
    pair = isinstance(explanation, PairExplanation)
    texts = {name: getattr(explanation, name) for name in (("premise", "hypothesis") if pair else ("text",))}
    return f"{address}#{urlencode(texts, errors='replace')}"


def _column(column: WordColumn) -> str:
    entries = []
    for entry in column.entries:
        share = 100 * entry.count / max(entry.total, 1)
        texts = "".join(f"<div>{_texts(text)}</div>" for text in entry.texts)
        entries.append(
            f"<details><summary><bdi>{escape(entry.name)}</bdi>"
            f'<span class="share"><span style="width:{share:.0f}%"></span></span>'
            f'<span>{entry.count} of {entry.total}</span></summary><div class="rationalizer">{texts}</div></details>'
        )
    return f"<div><h3><bdi>{escape(column.title)}</bdi></h3>{''.join(entries)}</div>"


def _table(table: HtmlTable) -> str:
    kind = ' class="number"' if table.numbers else ""

    def line(cells: Sequence[str], tag: str) -> str:
        first, *rest = cells
        others = "".join(f"<{tag}{kind}><bdi>{escape(cell)}</bdi></{tag}>" for cell in rest)
        return f"<tr><{tag}><bdi>{escape(first)}</bdi></{tag}>{others}</tr>"

    head = f"<thead>{line(table.heads, 'th')}</thead>" if any(table.heads) else ""
    body = "".join(line(cells, "td") for cells in table.lines)
    return f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>'
