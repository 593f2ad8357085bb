"""Griffe extension for the reference pages: describe fields by their trailing comments, and fence examples."""

import io
import re
import tokenize
from typing import Any

import griffe

EXAMPLES = re.compile(r"^>>> .*\n(?:.+\n)*", re.MULTILINE)  # up to the next blank line


class Docstrings(griffe.Extension):
    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Use the comment at the end of a field's line as its docstring, if it has none."""
        if attr.docstring is None and (comment := _trailing_comment("\n".join(attr.lines))):
            attr.docstring = griffe.Docstring(comment, parent=attr)

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence examples: Markdown would render >>> as nested quotations."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLES.sub(r"```pycon\n\g<0>```\n", obj.docstring.value + "\n").rstrip()


def _trailing_comment(source: str) -> str | None:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source.strip()).readline))
    except (tokenize.TokenError, IndentationError):
        return None
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return comments[-1].lstrip("# ").strip() if comments else None
