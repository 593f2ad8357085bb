"""`rationalizer settings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rationalizer.cli.base import command, out, show_table
from rationalizer.cli.options import Encoder

if TYPE_CHECKING:
    from rationalizer.models.setting_docs import SettingDoc


@command(
    "rationalizer settings",
    "rationalizer settings spectra",
    "rationalizer settings gumbel --pairs",
    "rationalizer settings spectra --objective mgr",
    "rationalizer settings spectra --encoder sentence-transformers/all-MiniLM-L6-v2",
)
def settings(
    method: Annotated[
        str | None, typer.Argument(metavar="[METHOD]", help="A method; without it, all methods are listed.")
    ] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="The method for pairs of texts, if two methods share the name.")
    ] = False,
    encoder: Encoder = None,
    objective: Annotated[str, typer.Option(help="An objective.")] = "full-text",
) -> None:
    """List the methods and objectives, or the settings of one method: names, defaults, values, meanings."""
    from rationalizer.models.setting_docs import describe_settings

    if method is None:
        _list_methods()
        return
    found = describe_settings(method, pairs=True if pairs else None, encoder=encoder or "bilstm", objective=objective)
    out.print(f"{found.method}: {found.about}\n", markup=False)
    _show(f"Settings of {found.method}", found.own)
    _show(f"Settings of the encoder {encoder or 'bilstm'}", found.encoder)
    _show(f"Settings of the objective {objective}", found.objective)
    _show("Settings of every training", found.common)
    out.print("Use --set KEY=VALUE, or in Python Rationalizer(KEY=VALUE).", markup=False)


def _list_methods() -> None:
    from rationalizer.nn import ALIGNERS, EXTRACTORS, OBJECTIVES, Method

    kinds: dict[str, Mapping[str, type[Method]]]
    kinds = {"texts": EXTRACTORS, "pairs of texts": ALIGNERS}
    lines = [
        [name, kind, (cls.__doc__ or "").strip().splitlines()[0], ", ".join(cls.options()) or "-"]
        for kind, methods in kinds.items()
        for name, cls in methods.items()
    ]
    show_table(["method", "for", "what it does", "its own settings"], lines)
    objectives = [
        [name, (cls.__doc__ or "").strip().splitlines()[0], ", ".join(cls.options()) or "-"]
        for name, cls in OBJECTIVES.items()
    ]
    show_table(["objective", "what training minimises", "its own settings"], objectives)
    out.print("`rationalizer settings METHOD` shows the settings of a method.")


def _show(title: str, described: Sequence[SettingDoc]) -> None:
    if described:
        heads = ["setting", "default", "values", *(["meaning"] if any(one.meaning for one in described) else [])]
        lines = [[one.name, one.default, one.values, one.meaning][: len(heads)] for one in described]
        show_table(heads, lines, title=title)
