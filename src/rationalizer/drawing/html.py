"""Explanations as HTML: a fragment for notebooks and pages, or a whole document that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import groupby

from rationalizer.drawing.alignment_drawing import width_of_lines
from rationalizer.drawing.captions import PAIR_WORDS, SHADES, WORDS, is_shaded, key, percent, probabilities, verdict
from rationalizer.drawing.colours import PAGE_STYLE, STYLE
from rationalizer.drawing.explanation import AnyExplanation, Label, PairExplanation, Picture
from rationalizer.drawing.svg import drawing
from rationalizer.drawing.text_pieces import CHOSEN, Piece, pieces, sides
from rationalizer.drawing.text_width import escape

ROOM = 700.0  # of drawings in pages, which scale them down a little if need be, and scroll them then
NARROW_ROOM = 320.0  # on phones


def to_html(
    explanation: AnyExplanation,
    *,
    truth: Label | None = None,
    style: Picture = "lines",
    styled: bool = True,
    legend: bool = True,
) -> str:
    """A fragment: the prediction, its probabilities, and the text with the words it was made from.

    Args:
        explanation: of a text or of a pair.
        truth: the true label, if known.
        style: how alignments are drawn: "lines" or "heatmap".
        styled: with the style sheet; a page needs it once only (`html_opening` has it).
        legend: with the key to the looks, which several explanations need once only.
    """
    key_html = f"{_key([explanation])}\n" if legend else ""
    sheet = f"<style>{STYLE}</style>" if styled else ""
    head, body = _head(explanation, truth), _body(explanation, style)
    return f'<figure class="rationalizer">{sheet}\n{head}\n{body}\n{key_html}</figure>\n'


def to_html_list(explanations: Sequence[AnyExplanation], *, left_out: int = 0) -> str:
    """A fragment: explanations one below the other, under one key; `left_out` tells of those that are not drawn."""
    line = "border-top: 1px solid rgb(128 128 128 / .3); padding: .9em 0"
    drawn = "".join(f'<div style="{line}">{to_html(one, styled=False, legend=False)}</div>\n' for one in explanations)
    rest = f'<p style="{line}">and {left_out} more</p>\n' if left_out else ""
    key_html = (
        f'<div style="margin-bottom: .8em">{_key(explanations)}</div>' if explanations else "<p>no explanations</p>"
    )
    return f'<div class="rationalizer"><style>{STYLE}</style>\n{key_html}\n{drawn}{rest}</div>\n'


def _body(explanation: AnyExplanation, style: Picture = "lines") -> str:
    """The text with its highlights, or the alignment of a pair."""
    if not isinstance(explanation, PairExplanation):
        return _texts(explanation)
    wide = _drawing(explanation, style, ROOM)
    # The texts themselves where they cannot be read in the drawing.
    if style == "heatmap" or width_of_lines(explanation, NARROW_ROOM) is not None:
        return _texts(explanation) + wide if style == "heatmap" else wide
    # Two drawings, of which the style shows the one that fits.
    narrow = _drawing(explanation, style, NARROW_ROOM, narrow=True)
    if width_of_lines(explanation, ROOM) is None:
        return _texts(explanation) + _fitted(wide, narrow)
    return _fitted(wide, _texts(explanation) + narrow)


def _drawing(explanation: PairExplanation, style: Picture, room: float, *, narrow: bool = False) -> str:
    return f'<div class="rz-drawing">{drawing(explanation, style=style, room=room, narrow=narrow)}</div>'


def _fitted(wide: str, narrow: str) -> str:
    return f'<div class="rz-fitted"><div class="rz-wide">{wide}</div><div class="rz-narrow">{narrow}</div></div>'


def _texts(explanation: AnyExplanation) -> str:
    if not isinstance(explanation, PairExplanation):
        return _paragraph(pieces(explanation))
    premise, hypothesis = sides(explanation)
    return _paragraph(premise, "premise") + _paragraph(hypothesis, "hypothesis")


def _paragraph(cut: Sequence[Piece], name: str = "") -> str:
    named = f' aria-label="{name}"' if name else ""
    words = PAIR_WORDS if name else WORDS
    drawn = []
    for kind, group in groupby(cut, key=lambda piece: piece.kind):
        members = list(group)
        if not kind:
            drawn.append("".join(map(_unmarked, members)))
        elif kind in CHOSEN:
            inner = "".join(
                f'<span style="--w:{piece.shade:.2f}" title="weight {piece.weight:.3g}, {words[kind]}">'
                f"{_unmarked(piece)}</span>"
                for piece in members
            )
            drawn.append(f'<mark class="rz-{kind}">{inner}</mark>')
        else:
            drawn.append(f'<u class="rz-missed" title="{words[kind]}">{"".join(map(_unmarked, members))}</u>')
    return f'<p class="rz-text" dir="auto"{named}>{"".join(drawn)}</p>'


def _unmarked(piece: Piece) -> str:
    """The text itself, in the look of words that the model does not know if it is one."""
    text = escape(piece.text)
    return f'<i class="rz-unknown" title="{WORDS["unknown"]}">{text}</i>' if piece.unknown else text


def _head(explanation: AnyExplanation, truth: Label | None) -> str:
    said = verdict(explanation, truth)
    remark = f'<span class="rz-remark{" rz-wrong" if said.right is False else ""}">{escape(said.remark)}</span>'
    bars = "".join(
        f'<bdi>{escape(name)}</bdi><span class="rz-track"><span style="width:{100 * p:.1f}%"></span></span>'
        f'<span class="rz-percent">{percent(p)}</span>'
        for name, p in probabilities(explanation)
    )
    bars = f'<span class="rz-bars">{bars}</span>' if bars else ""
    return (
        f'<figcaption class="rz-head"><span class="rz-verdict"><bdi class="rz-label">{escape(said.label)}</bdi>'
        f"{remark if said.remark else ''}</span>{bars}</figcaption>"
    )


def _key(explanations: Sequence[AnyExplanation]) -> str:
    """The looks of all of them."""
    entries = []
    for kind, words in dict.fromkeys(entry for explanation in explanations for entry in key(explanation)):
        sample = f'<mark class="rz-{kind}"><span>abc</span></mark>' if kind in CHOSEN else ""
        sample = '<u class="rz-missed">abc</u>' if kind == "missed" else sample
        sample = '<i class="rz-unknown">abc</i>' if kind == "unknown" else sample
        entries.append(f"<li>{sample}{words}</li>")
    if any(is_shaded(explanation) for explanation in explanations):
        entries.append(f"<li>{SHADES}</li>")
    return f'<ul class="rz-key">{"".join(entries)}</ul>'


@dataclass(frozen=True)
class Section:
    """A part of a page: what stands in it is drawn in the order of the fields."""

    title: str = ""
    _: KW_ONLY
    text: str = ""  # paragraphs are separated by empty lines
    notices: Sequence[str] = ()  # warnings
    figures: Sequence[tuple[str, str]] = ()  # (what, how much), in large print
    tables: Sequence[HtmlTable] = ()
    pictures: Sequence[str] = ()  # SVG, as of `rationalizer.drawing.charts`
    columns: Sequence[Column] = ()
    explanations: Sequence[AnyExplanation] = ()
    truths: Sequence[Label | None] | None = None  # of the explanations
    captions: Sequence[str] = ()  # of the explanations, which then stand side by side


@dataclass(frozen=True)
class Column:
    """Words with the texts that they stand in, which a click opens."""

    title: str
    entries: Sequence[Entry]


@dataclass(frozen=True)
class Entry:
    """A word, how often something is so, and texts to look at."""

    name: str
    count: int
    of: int
    texts: Sequence[AnyExplanation]


@dataclass(frozen=True)
class HtmlTable:
    """Headings and lines of plain text."""

    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    numbers: bool = True  # whether all columns but the first are set as numbers


def to_html_page(
    explanations: Sequence[AnyExplanation] = (),
    *,
    title: str,
    lead: str = "",
    truths: Sequence[Label | None] | None = None,
    sections: Iterable[Section] = (),
) -> str:
    """One document that needs nothing beside it.

    Args:
        explanations: drawn one below the other.
        title: of the page.
        lead: what to say before everything else.
        truths: the true labels of the explanations.
        sections: what follows them.
    """
    first = [Section(explanations=explanations, truths=truths)] if explanations else []
    body = "".join(section_html(section) for section in [*first, *sections])
    return html_opening(title, lead) + body + html_closing()


def html_opening(title: str, lead: str = "") -> str:
    """The beginning of a document; fragments of `to_html(..., styled=False)` and `html_closing` may follow."""
    # The policy holds whatever a text says: no scripts, nothing fetched.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n"
        f'<h1 dir="auto">{escape(title)}</h1>\n' + (f'<p class="lead">{escape(lead)}</p>\n' if lead else "")
    )


def to_html_fragment(sections: Iterable[Section]) -> str:
    """Sections with their style, for a shadow tree of another page, which neither styles it nor is styled by it."""
    return f"<style>{PAGE_STYLE}{STYLE}</style>\n" + "".join(map(section_html, sections))


def html_closing() -> str:
    return "</body>\n</html>\n"


def section_html(section: Section) -> str:
    truths = section.truths if section.truths is not None else [None] * len(section.explanations)
    if len(truths) != len(section.explanations):
        raise ValueError(f"{len(section.explanations)} explanations have {len(truths)} true labels; give one for each")
    parts = [f"<h2>{escape(section.title)}</h2>"] if section.title else []
    parts += [f"<p>{escape(paragraph)}</p>" for paragraph in section.text.split("\n\n") if paragraph.strip()]
    parts += [f'<p class="notice">{escape(notice)}</p>' for notice in section.notices]
    if section.figures:
        tiles = (f"<div><dd>{escape(value)}</dd><dt>{escape(name)}</dt></div>" for name, value in section.figures)
        parts.append(f'<dl class="figures">{"".join(tiles)}</dl>')
    if section.tables:
        several = " several" if len(section.tables) > 1 else ""
        parts.append(f'<div class="tables{several}">{"".join(_table(table) for table in section.tables)}</div>')
    parts += [f'<div class="picture">{picture}</div>' for picture in section.pictures]
    if section.columns:
        parts.append(f'<div class="columns">{"".join(map(_column, section.columns))}</div>')
    if section.explanations and not section.captions:
        parts.append(f'<div class="rationalizer">{_key(section.explanations)}</div>')
    captions = section.captions or [""] * len(section.explanations)
    drawn = [
        (f"<div><h3>{escape(caption)}</h3>{shown}</div>" if caption else shown)
        for caption, shown in zip(
            captions,
            (article(*pair, legend=False) for pair in zip(section.explanations, truths, strict=True)),
            strict=True,
        )
    ]
    parts += [f'<div class="columns">{"".join(drawn)}</div>'] if section.captions else drawn
    return "<section>\n" + "\n".join(parts) + "\n</section>\n"


def article(explanation: AnyExplanation, truth: Label | None = None, *, legend: bool = True) -> str:
    """An explanation as it stands in a document."""
    return f"<article>{to_html(explanation, truth=truth, styled=False, legend=legend)}</article>\n"


def _column(column: Column) -> str:
    entries = []
    for entry in column.entries:
        share = 100 * entry.count / max(entry.of, 1)
        texts = "".join(f"<div>{_texts(text)}</div>" for text in entry.texts)
        entries.append(
            f"<details><summary><bdi>{escape(entry.name)}</bdi>"
            f'<span class="share"><span style="width:{share:.0f}%"></span></span>'
            f'<span>{entry.count} of {entry.of}</span></summary><div class="rationalizer">{texts}</div></details>'
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
