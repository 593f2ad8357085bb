"""Colours of the drawings and the style of pages.

Hues are of Okabe and Ito's palette, which colour-blind readers can tell apart, and never stand alone: what the
model read has a ground and an outline, what people named has a line under it, dashed where the model missed it.
Grounds are translucent, so that they fit light and dark pages alike, also where only the host knows which it is.
"""

from __future__ import annotations

from rationalizer.drawing.text_pieces import Look

BLUE, BRIGHT_BLUE = "#0072b2", "#56b4e9"  # the latter for dark pages
HUES: dict[Look, str] = {"selected": BLUE, "both": BLUE, "extra": "#e69f00", "missed": "#d55e00"}
UNKNOWN = "#808080"
FAINTEST, STRONGEST = 0.13, 0.42  # opacity of the ground at shades 0 and 1
HEAT = 0.5  # opacity of the hottest cell; figures in it must stay legible

INK, PAPER = "#1f2328", "#ffffff"
DARK_INK, DARK_PAPER = "#e6e8ea", "#15181b"


def opacity(shade: float) -> float:
    return FAINTEST + (STRONGEST - FAINTEST) * shade


def _rgb(colour: str) -> str:
    return " ".join(str(int(colour[k : k + 2], 16)) for k in (1, 3, 5))


def _ground(kind: Look) -> str:
    rgb = "var(--rz-blue)" if HUES[kind] == BLUE else _rgb(HUES[kind])
    alpha = f"calc({FAINTEST} + {STRONGEST - FAINTEST:.2f} * var(--w, 1))"
    return (
        f".rationalizer .rz-{kind} {{ border-color: rgb({rgb} / .75) }}\n"
        f".rationalizer .rz-{kind} > span {{ background: rgb({rgb} / {alpha}) }}"
    )


def brighter(picture: str) -> str:
    """Rules for the pictures inside `picture` on a dark page."""
    return (
        f"{picture} [fill='{BLUE}'] {{ fill: {BRIGHT_BLUE} }} {picture} [stroke='{BLUE}'] {{ stroke: {BRIGHT_BLUE} }}"
    )


STYLE = f"""
.rationalizer {{ --rz-blue: {_rgb(BLUE)}; margin: 0; font: 16px/1.75 system-ui, sans-serif; color: inherit;
  overflow-wrap: anywhere }}
.rationalizer .rz-head {{ display: flex; flex-wrap: wrap; gap: .3em 2em; align-items: flex-start; margin: 0 0 1em;
  font-size: 14px; line-height: 1.5 }}
.rationalizer .rz-verdict {{ flex: 0 1 auto; min-width: 8em; max-width: 100% }}
.rationalizer .rz-label {{ font-size: 18px; font-weight: 650; line-height: 1.3 }}
.rationalizer .rz-remark {{ display: block }}
.rationalizer .rz-wrong {{ font-weight: 600; text-decoration: underline wavy {HUES["missed"]} 1px;
  text-underline-offset: 3px }}
.rationalizer .rz-bars {{ display: grid; flex: 1 1 16em; max-width: 30em; align-items: center; gap: 2px .7em;
  grid-template-columns: fit-content(45%) 1fr 3.6em; font-variant-numeric: tabular-nums; font-size: 13px }}
.rationalizer .rz-track {{ height: 8px; border-radius: 4px; background: rgb(128 128 128 / .18); overflow: hidden }}
.rationalizer .rz-track > span {{ display: block; height: 100%; border-radius: 4px; background: rgb(var(--rz-blue)) }}
.rationalizer .rz-percent {{ text-align: right; white-space: nowrap }}
.rationalizer .rz-text {{ margin: 0; max-width: 46em; white-space: pre-wrap; unicode-bidi: plaintext;
  text-align: start }}
.rationalizer mark {{ background: none; color: inherit; border: 1px solid; border-radius: 4px; padding: 1px 0 2px;
  white-space: normal; box-decoration-break: clone; -webkit-box-decoration-break: clone }}
.rationalizer mark > span {{ padding: 1px 1px 2px; box-decoration-break: clone;
  -webkit-box-decoration-break: clone }}
.rationalizer :is({", ".join(f".rz-{kind}" for kind in ("selected", "both", "extra"))}) > span:first-child {{
  border-start-start-radius: 3px; border-end-start-radius: 3px }}
{_ground("selected")}
{_ground("both")}
{_ground("extra")}
.rationalizer .rz-both, .rationalizer .rz-missed {{ text-decoration: underline 2px; text-underline-offset: 4px;
  text-decoration-skip-ink: none }}
.rationalizer .rz-missed {{ text-decoration-style: dashed; text-decoration-color: {HUES["missed"]} }}
.rationalizer .rz-unknown {{ font-style: normal; border-bottom: 2px dotted rgb(128 128 128) }}
.rationalizer .rz-key {{ display: flex; flex-wrap: wrap; gap: .2em 1.6em; margin: 1.1em 0 0; padding: 0;
  list-style: none; font-size: 12.5px; line-height: 1.7; opacity: .85 }}
.rationalizer .rz-key li {{ margin: 0 }}
.rationalizer .rz-key :is(mark, u, i) {{ margin-inline-end: .5em }}
.rationalizer .rz-drawing {{ overflow-x: auto }}
.rationalizer svg {{ display: block; max-width: 100%; height: auto }}
.rationalizer .rz-fitted {{ container-type: inline-size }}
.rationalizer .rz-narrow {{ display: none }}
@container (max-width: 29.9rem) {{
  .rationalizer .rz-wide {{ display: none }} .rationalizer .rz-narrow {{ display: block }} }}
.rationalizer .rz-text + .rz-text {{ margin-top: .5em }}
.rationalizer .rz-text + :is(.rz-drawing, .rz-fitted) {{ margin-top: 1.2em }}
.rationalizer, .rationalizer * {{ -webkit-print-color-adjust: exact; print-color-adjust: exact }}
@media screen and (prefers-color-scheme: dark) {{
  .rationalizer {{ --rz-blue: {_rgb(BRIGHT_BLUE)} }} {brighter(".rationalizer svg")} }}
@media print {{ .rationalizer {{ break-inside: avoid }} }}
@media (forced-colors: active) {{
  .rationalizer mark {{ border-color: Highlight }}
  .rationalizer .rz-track > span {{ background: Highlight; forced-color-adjust: none }} }}
"""

PAGE_STYLE = f"""
:root {{ color-scheme: light dark; --ink: {INK}; --paper: {PAPER} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ --ink: {DARK_INK}; --paper: {DARK_PAPER} }} }}
@media print {{ :root {{ color-scheme: light; --ink: #000; --paper: #fff }} }}
body {{ margin: 0 auto; max-width: 50rem; padding: 2.5rem 1.25rem 4rem; font: 16px/1.6 system-ui, sans-serif;
  color: var(--ink); background: var(--paper) }}
h1 {{ font-size: 1.7rem; line-height: 1.25; margin: 0 0 .4rem; overflow-wrap: anywhere }}
h2 {{ font-size: 1.2rem; line-height: 1.3; margin: 3rem 0 .8rem; padding-top: 1rem;
  border-top: 1px solid rgb(128 128 128 / .3) }}
.lead {{ margin: 0 0 1rem; opacity: .85 }}
article {{ margin: 1rem 0; padding: 1.1rem 1.25rem; border: 1px solid rgb(128 128 128 / .3); border-radius: 8px }}
.figures {{ display: flex; flex-wrap: wrap; gap: 1rem 3rem; margin: 1.4rem 0 1.8rem }}
.figures div {{ display: flex; flex-direction: column }}
.figures dd {{ margin: 0; font-size: 1.9rem; line-height: 1.2; font-weight: 600; font-variant-numeric: tabular-nums }}
.figures dt {{ font-size: .9rem; opacity: .85 }}
.tables.several {{ columns: 2 17rem; column-gap: 3rem }}
.tables.several .scroll {{ break-inside: avoid }}
.tables.several table {{ width: 100% }}
.scroll {{ overflow-x: auto }}
table {{ border-collapse: collapse; margin: .5rem 0 1.2rem; font-variant-numeric: tabular-nums; font-size: .95rem }}
th, td {{ padding: .28rem 1.6rem .28rem 0; text-align: left; border-bottom: 1px solid rgb(128 128 128 / .22);
  vertical-align: top }}
th {{ font-weight: 600 }}
td.number, th.number {{ text-align: right }}
:is(td, th).number:last-child {{ padding-right: .2rem }}
.columns {{ display: grid; gap: 1.5rem 2.5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)) }}
.columns > div {{ min-width: 0 }}
h3 {{ font-size: 1rem; margin: .4rem 0; overflow-wrap: anywhere }}
summary {{ display: grid; grid-template-columns: 1fr 5rem 5.5rem; gap: .8rem; align-items: center; cursor: pointer;
  padding: .22rem 0; border-bottom: 1px solid rgb(128 128 128 / .22); font-variant-numeric: tabular-nums }}
summary > bdi {{ overflow-wrap: anywhere }} summary > bdi::before {{ content: "▸ "; opacity: .6 }}
[open] > summary > bdi::before {{ content: "▾ " }} summary::-webkit-details-marker {{ display: none }}
summary > :last-child {{ text-align: right; font-size: .9rem }}
.share {{ height: 8px; border-radius: 4px; background: rgb(128 128 128 / .18); overflow: hidden }}
.share > span {{ display: block; height: 100%; background: rgb({_rgb(BLUE)}) }}
details > .rationalizer {{ padding: .4rem 0 .6rem; font-size: 15px }}
details > .rationalizer > div {{ margin-bottom: .6rem; padding-inline-start: .8rem;
  border-inline-start: 2px solid rgb(128 128 128 / .3) }}
.notice {{ margin: .8rem 0; padding: .7rem 1rem; border-left: 4px solid {HUES["missed"]};
  background: rgb({_rgb(HUES["missed"])} / .1); border-radius: 0 6px 6px 0 }}
.picture {{ overflow-x: auto }}
.picture svg {{ display: block; max-width: 100%; min-width: 30rem; height: auto }}
@media print {{
  body {{ max-width: none; padding: 0 }} :is(article, .scroll) {{ break-inside: avoid }} h2 {{ break-after: avoid }} }}
"""
