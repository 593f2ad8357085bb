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
    from rationalizer.app.limits import Limits
    from rationalizer.app.listen import run
    from rationalizer.app.metrics import Metrics
    from rationalizer.app.served import Served, load_models
    from rationalizer.app.server import create_app

__all__ = ["Limits", "Metrics", "Served", "create_app", "load_models", "run"]

_MODULES = {
    "Limits": "limits",
    "Metrics": "metrics",
    "Served": "served",
    "create_app": "server",
    "load_models": "served",
    "run": "listen",
}


def __getattr__(name: str) -> object:
    # Only processes that answer need the models, and PyTorch with them; the one that watches over them does not.
    if name in _MODULES:
        return getattr(importlib.import_module(f"rationalizer.app.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
