"""The web page and its JSON endpoint; needs the extra `web`."""

from __future__ import annotations

from importlib.util import find_spec

if any(find_spec(name) is None for name in ("fastapi", "httptools", "uvicorn")):
    raise ImportError(
        'the web page needs FastAPI, uvicorn and httptools; install them in a checkout by: pip install ".[web]"'
    )

from rationalizer.app.listen import run
from rationalizer.app.metrics import Metrics
from rationalizer.app.requests import Limits
from rationalizer.app.served import Served, load_models
from rationalizer.app.server import create_app

__all__ = ["Limits", "Metrics", "Served", "create_app", "load_models", "run"]
