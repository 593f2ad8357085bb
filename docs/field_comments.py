"""For the reference: a field without a docstring is described by the comment at the end of its line."""

import io
import tokenize
from typing import Any

import griffe


class FieldComments(griffe.Extension):
    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        if attr.docstring is None and (comment := _trailing_comment("\n".join(attr.lines))):
            attr.docstring = griffe.Docstring(comment, parent=attr)


def _trailing_comment(source: str) -> str | None:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source.strip()).readline))
    except (tokenize.TokenError, IndentationError):
        return None
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return comments[-1].lstrip("# ").strip() if comments else None
