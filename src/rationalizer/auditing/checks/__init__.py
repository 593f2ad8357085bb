"""The checks of an audit, one file per subject; each module registers its own."""

from rationalizer.auditing.checks.base import CHECKS, Check, CheckResult, Verdict, check_names
from rationalizer.discovery import import_modules

import_modules(__name__)

__all__ = ["CHECKS", "Check", "CheckResult", "Verdict", "check_names"]
