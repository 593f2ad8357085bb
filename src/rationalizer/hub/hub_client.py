"""Download and upload models of the Hugging Face Hub, through the optional package `huggingface_hub`.

Only safetensors, JSON and the model card are transferred: loading a model never unpickles anything, and other files in
a repository are not downloaded.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

DOWNLOADED = ["*.json", "*.safetensors"]
UPLOADED = ["*.json", "*.safetensors", "README.md", "example.svg"]


def download(name: str, revision: str | None = None) -> Path:
    """Download a model, at a branch, tag or commit, unless it is cached; return its folder."""
    package = _package(name)
    try:
        return Path(package.snapshot_download(name, revision=revision, allow_patterns=DOWNLOADED))
    except Exception as error:  # raised by the client or by one of two HTTP libraries
        raise OSError(_describe_error(package, error, name, revision)) from error


def push(folder: Path, name: str, *, private: bool, revision: str | None, token: str | None) -> str:
    """Upload a saved model, creating its repository if necessary; return the URL of the commit."""
    package = _package(name)
    api = package.HfApi(token=token)
    try:
        api.create_repo(name, private=private, exist_ok=True)
        if revision is not None:
            api.create_branch(name, branch=revision, exist_ok=True)
        paths = sorted(path for pattern in UPLOADED for path in folder.glob(pattern))
        files = [package.CommitOperationAdd(path.name, path) for path in paths]
        commit = api.create_commit(name, files, commit_message="Upload a rationalizer model", revision=revision)
    except Exception as error:  # raised by the client or by one of two HTTP libraries
        raise OSError(_describe_error(package, error, name, revision)) from error
    return str(commit.commit_url)


def _package(name: str) -> ModuleType:
    try:
        import huggingface_hub
    except ImportError as error:
        raise ImportError(
            f"no folder {name}, and downloading a model of that name from the Hugging Face Hub needs the package "
            'huggingface_hub: pip install ".[hub]" in a checkout'
        ) from error
    return huggingface_hub


def _describe_error(package: Any, error: Exception, name: str, revision: str | None) -> str:
    """Return one line: which model, what is wrong, what to do."""
    errors = package.errors
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, errors.RevisionNotFoundError):
        return f"the model {name} on the Hugging Face Hub has no revision {revision!r}; use a branch, tag or commit"
    if isinstance(error, errors.GatedRepoError) or status in (401, 403):
        return f"no access to {name} on the Hugging Face Hub; log in with `hf auth login`, or set HF_TOKEN"
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            f"no folder {name}, and no model of that name on the Hugging Face Hub; check the name, or log in with "
            "`hf auth login` if it is private"
        )
    if isinstance(error, errors.HfHubHTTPError) and status is not None:
        return f"the Hugging Face Hub answered with status {status} for {name} ({_first_line(error)}); try again later"
    if isinstance(error, errors.HFValidationError):
        return f"{name} is not a valid model name on the Hugging Face Hub ({_first_line(error)})"
    return (
        f"the Hugging Face Hub could not be reached for {name} ({_first_line(error)}); check the connection, or use "
        "the folder of a local copy"
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
