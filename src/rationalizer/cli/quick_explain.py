"""`rationalizer explain MODEL TEXT...` without any option, before the command line is built.

Building it takes several times as long as explaining a text with a starter or an exported model. Special cases,
such as errors and warnings, are left to the command.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

COLOUR_VARIABLES = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")  # that rich reads


def explain_quickly(arguments: Sequence[str]) -> str | None:
    """Return the output of the command; None if the command must run."""
    if len(arguments) < 3 or arguments[0] != "explain" or any(each.startswith("-") for each in arguments):
        return None
    from rationalizer.hub import STARTERS

    name, texts = arguments[1], arguments[2:]
    if Path(name).exists() if name in STARTERS else not (Path(name) / "manifest.json").is_file():
        return None
    from rationalizer.cli.output_formats import ExplainedRow, encodable, make_format
    from rationalizer.export import ExportedModel

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = ExportedModel.load(name)
            if model.pairs and len(texts) != 2:
                return None
            examples = model.examples([tuple(texts)] if model.pairs else texts)
            explanations = model.explain_examples(examples, reasons=None)
    except Exception:
        return None
    if any(explanation.warnings for explanation in explanations):
        return None
    colour, width = False, None
    if sys.stdout.isatty() or any(map(os.environ.get, COLOUR_VARIABLES)):
        from rich.console import Console

        out = Console(soft_wrap=True, highlight=False)
        colour, width = out.is_terminal and not out.no_color, out.width if out.is_terminal else None
    form = make_format(
        "terminal", results=model.result_form, columns=(), table=False, title="", colour=colour, width=width
    )
    drawn = [str(form.record(k, ExplainedRow({}, explanation))) for k, explanation in enumerate(explanations)]
    return encodable("".join(drawn))
