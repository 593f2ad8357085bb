"""Models of the Hugging Face Hub, through the optional package `huggingface_hub`.

Only safetensors, JSON and the card are ever fetched or sent: a model is read without unpickling anything, and a file
of another kind in somebody's repository stays there.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

FETCHED = ["*.json", "*.safetensors"]
SENT = ["*.json", "*.safetensors", "README.md", "example.svg"]
OFFLINE = "check the connection, or give the folder of a copy"


def fetch(name: str, revision: str | None = None) -> Path:
    """The folder that holds a model of the Hub, as of a branch, a tag or a commit; fetched unless it is there."""
    package = _package(name)
    try:
        return Path(package.snapshot_download(name, revision=revision, allow_patterns=FETCHED))
    except Exception as error:  # the client's own, and of two HTTP libraries
        raise OSError(_in_words(package, error, name, revision)) from error


def push(folder: Path, name: str, *, private: bool, revision: str | None, token: str | None) -> str:
    """Sends a saved model to the Hub, where its repository is made if there is none; the address of what was sent."""
    package = _package(name)
    api = package.HfApi(token=token)
    try:
        api.create_repo(name, private=private, exist_ok=True)
        if revision is not None:
            api.create_branch(name, branch=revision, exist_ok=True)
        paths = sorted(path for pattern in SENT for path in folder.glob(pattern))
        files = [package.CommitOperationAdd(path.name, path) for path in paths]
        sent = api.create_commit(name, files, commit_message="A model of rationalizer", revision=revision)
    except Exception as error:  # the client's own, and of two HTTP libraries
        raise OSError(_in_words(package, error, name, revision)) from error
    return str(sent.commit_url)


def _package(name: str) -> ModuleType:
    try:
        import huggingface_hub
    except ImportError as error:
        raise ImportError(
            f"there is no folder {name}, and asking the Hugging Face Hub for a model of that name needs the package "
            'huggingface_hub: pip install ".[hub]" in a checkout'
        ) from error
    return huggingface_hub


def _in_words(package: Any, error: Exception, name: str, revision: str | None) -> str:
    """One line that says which model, what is wrong and what to do."""
    errors = package.errors
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, errors.RevisionNotFoundError):
        return f"the model {name} of the Hugging Face Hub has no revision {revision!r}; name a branch, tag or commit"
    if isinstance(error, errors.GatedRepoError) or status in (401, 403):
        return f"the Hugging Face Hub does not let you use {name}; log in by `hf auth login`, or set HF_TOKEN"
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            f"there is no folder {name}, and no model of that name on the Hugging Face Hub; check the name, or, if it "
            "is private, log in by `hf auth login`"
        )
    if isinstance(error, errors.HfHubHTTPError) and status is not None:
        return f"the Hugging Face Hub answered {status} about {name} ({_first_line(error)}); try again later"
    if isinstance(error, errors.HFValidationError):
        return f"{name} is no name of a model on the Hugging Face Hub ({_first_line(error)})"
    return f"the Hugging Face Hub could not be asked for {name} ({_first_line(error)}); {OFFLINE}"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
