"""Audits: does a model read only what it shows? For our models, and for any model given as two functions."""

from rationalizer.auditing.audited_model import Adapter, AuditedModel
from rationalizer.auditing.checks import CHECKS, Check, CheckResult
from rationalizer.auditing.run_audit import Audit, audit, audit_examples

__all__ = ["CHECKS", "Adapter", "Audit", "AuditedModel", "Check", "CheckResult", "audit", "audit_examples"]
