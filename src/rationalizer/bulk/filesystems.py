"""Local files, and files that pyarrow's file systems reach by a URI such as s3://bucket/folder.

An address is a local path or a URI.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
from pyarrow import fs

from rationalizer.data.file_content import ENDINGS, ending
from rationalizer.text.errors import DataError

_WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class SourceFile:
    """A file: its address, its path relative to the searched folder, and a stamp that changes when it is rewritten."""

    address: str
    relative: str
    stamp: str


def is_remote(address: str) -> bool:
    return "://" in address


def is_single_file(address: str) -> bool:
    """Return False for a folder, a pattern or a URI."""
    return not (is_remote(address) or Path(address).is_dir() or _has_pattern(address))


def _has_pattern(address: str) -> bool:
    return bool(_WILDCARD.search(_split_options(address)[0])) and (is_remote(address) or not Path(address).exists())


def _split_options(address: str) -> tuple[str, str]:
    """Split the options from a URI: "s3://a/b?region=x" into "s3://a/b" and "?region=x"."""
    path, mark, options = address.partition("?") if is_remote(address) else (address, "", "")
    return path, mark + options


def without_options(address: str) -> Path:
    """Return the address as a path, for messages and file endings."""
    return Path(_split_options(address)[0])


def resolve(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in it."""
    if not is_remote(address):
        return fs.LocalFileSystem(), os.path.abspath(address)
    try:
        return fs.FileSystem.from_uri(address)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{address} cannot be reached ({str(error).strip()})", "check the address") from None


def join(folder: str, relative: str) -> str:
    """Return the address of a file in a folder."""
    path, options = _split_options(folder)
    return f"{path.rstrip('/')}/{relative}{options}"


def find_files(address: str) -> list[SourceFile]:
    """Find the files of an address: one file, all tables below a folder, or the matches of a pattern."""
    if _has_pattern(address):
        path, options = _split_options(address)
        wildcard = _WILDCARD.search(path)
        assert wildcard is not None
        parent, slash, _ = path[: wildcard.start()].rpartition("/")
        folder, pattern = f"{parent or slash or '.'}{options}", path[len(parent) + len(slash) :]
        found = [(relative, info) for relative, info in walk(folder) if _matches(relative, pattern)]
        missing = "there is no such file"
    else:
        system, path = resolve(address)
        info = system.get_file_info(path)
        if info.type == fs.FileType.File:
            return [SourceFile(address, info.base_name, _stamp(info))]
        folder, found = address, [(relative, info) for relative, info in walk(address) if _is_table(relative)]
        is_folder = info.type == fs.FileType.Directory
        missing = f"there is no file that ends in {', '.join(ENDINGS)}" if is_folder else "there is no such file"
    if not found:
        raise DataError(missing, path=address)
    return [SourceFile(join(folder, relative), relative, _stamp(info)) for relative, info in sorted(found)]


def walk(folder: str) -> Iterator[tuple[str, Any]]:
    """Yield the files in a folder and its subfolders, with relative paths; nothing if there is no such folder."""
    system, path = resolve(folder)
    for info in system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True)):
        if info.type == fs.FileType.File:
            yield str(PurePosixPath(info.path).relative_to(PurePosixPath(path))), info


def _matches(relative: str, pattern: str) -> bool:
    """Match as a shell does: * within one folder, ** across folders; hidden files only by explicit names."""
    if "**" in pattern:
        return not _is_hidden(relative) and fnmatchcase(relative, pattern.replace("**/", "*").replace("**", "*"))
    parts, patterns = relative.split("/"), pattern.split("/")
    matching = len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))
    return matching and (not _is_hidden(relative) or "/." in f"/{pattern}")


def _is_table(relative: str) -> bool:
    return not _is_hidden(relative) and ending(Path(relative)) in ENDINGS


def _is_hidden(relative: str) -> bool:
    return any(part.startswith((".", "_")) for part in relative.split("/"))


def _stamp(info: Any) -> str:
    return f"{info.size} bytes of {info.mtime_ns}"
