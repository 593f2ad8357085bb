"""The results of an audit as a page, and in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rationalizer.auditing.checks import CHECKS
from rationalizer.drawing.html import HtmlTable, Section, to_html_fragment, to_html_page
from rationalizer.plurals import count_of

if TYPE_CHECKING:
    from rationalizer.auditing.run_audit import Audit

SYMBOLS = {"pass": "✓", "leak": "✗", "not applicable": "–"}
LEAD = (
    "A leak is a way by which something other than the shown words determines the prediction, or a reason not to "
    "believe scores. An audit finds what it looks for: a pass is evidence, not a proof of all that could be hidden."
)


def summary(audit: Audit) -> str:
    """One sentence: how many checks passed, and which ones found a leak."""
    counts = f"{count_of(audit.count('pass'), 'check')} passed, {audit.count('not applicable')} not applicable"
    if audit.passed:
        return f"No leak found: {counts}."
    found = audit.leaks
    return f"{count_of(len(found), 'leak')} found: {', '.join(found)}; {counts}."


def audit_sections(audit: Audit) -> list[Section]:
    facts = HtmlTable(("", ""), list(audit.facts.items()), numbers=False)
    notices = [] if audit.passed else [summary(audit)]
    large = [(verdict, str(audit.count(verdict))) for verdict in ("pass", "leak", "not applicable")]
    sections = [Section(text=summary(audit) if audit.passed else "", notices=notices, figures=large, tables=[facts])]
    parts = dict.fromkeys(CHECKS[name].part for name in audit.results)
    for part in parts:
        lines = [
            (name, f"{SYMBOLS[result.verdict]} {result.verdict}", f"{CHECKS[name].question} {result.sentence}")
            for name, result in audit.results.items()
            if CHECKS[name].part == part
        ]
        sections.append(Section(part, tables=[HtmlTable(("check", "verdict", "finding"), lines, numbers=False)]))
    return sections


def audit_page(audit: Audit) -> str:
    return to_html_page(title=f"Audit of {audit.model}", lead=LEAD, sections=audit_sections(audit))


def audit_fragment(audit: Audit) -> str:
    return to_html_fragment(audit_sections(audit))
