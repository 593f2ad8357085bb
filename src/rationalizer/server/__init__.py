"""The web page and its JSON endpoint; needs the extra `web`."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING

if any(find_spec(name) is None for name in ("fastapi", "httptools", "uvicorn")):
    raise ImportError(
        'the web page needs FastAPI, httptools and uvicorn; install them in a checkout by: pip install ".[web]"'
    )

if TYPE_CHECKING:
    from rationalizer.server.application import create_app
    from rationalizer.server.listener import run
    from rationalizer.server.monitoring import Metrics
    from rationalizer.server.quotas import Quotas
    from rationalizer.server.served_models import ServedModel, load_models

__all__ = ["Metrics", "Quotas", "ServedModel", "create_app", "load_models", "run"]

_MODULES = {
    "Quotas": "quotas",
    "Metrics": "monitoring",
    "ServedModel": "served_models",
    "create_app": "application",
    "load_models": "served_models",
    "run": "listener",
}


def __getattr__(name: str) -> object:
    # Only processes that answer need the models, and PyTorch with them; the one that watches over them does not.
    if name in _MODULES:
        return getattr(importlib.import_module(f"rationalizer.server.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
