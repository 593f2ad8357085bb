"""Explain more texts than one process can: files into resumable shards, Ray datasets, Spark tables."""

from rationalizer.bulk.batch_explainer import Explainer, shared_explainer
from rationalizer.bulk.explain_files import BulkResult, explain_file, explain_files
from rationalizer.bulk.ray_workers import explain

__all__ = ["BulkResult", "Explainer", "explain", "explain_file", "explain_files", "shared_explainer"]
