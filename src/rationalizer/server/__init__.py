"""The web page and its JSON endpoint; needs the extra `web`."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING

if any(find_spec(name) is None for name in ("fastapi", "httptools", "prometheus_client", "uvicorn")):
    raise ImportError(
        "the server needs FastAPI, httptools, prometheus_client and uvicorn. "
        'Install them from a checkout with: pip install ".[web]"'
    )

if TYPE_CHECKING:
    from rationalizer.server.annotation_routes import create_annotation_app
    from rationalizer.server.application import create_app
    from rationalizer.server.listener import run
    from rationalizer.server.quotas import Quotas
    from rationalizer.server.served_models import ServedModel, load_models

__all__ = ["Quotas", "ServedModel", "create_annotation_app", "create_app", "load_models", "run"]

_MODULES = {
    "Quotas": "quotas",
    "ServedModel": "served_models",
    "create_annotation_app": "annotation_routes",
    "create_app": "application",
    "load_models": "served_models",
    "run": "listener",
}


def __getattr__(name: str) -> object:
    # Lazy: the parent process of several workers needs neither the models nor PyTorch.
    if name in _MODULES:
        return getattr(importlib.import_module(f"rationalizer.server.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
