"""Files here and elsewhere: local paths, and what pyarrow's file systems reach by an address such as s3://bucket/folder."""

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

from rationalizer.data.table_files import ENDINGS, ending
from rationalizer.text.errors import DataError

_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Found:
    """A file: where it is, its path below what was asked for, and what changes when it is written anew."""

    address: str
    relative: str
    stamp: str


def is_remote(address: str) -> bool:
    return "://" in address


def is_single_file(address: str) -> bool:
    """Whether it names neither a folder nor a pattern nor something elsewhere."""
    return not (is_remote(address) or Path(address).is_dir() or (_WILD.search(address) and not Path(address).exists()))


def path_of(address: str) -> Path:
    """For messages and endings: without the options that may follow an address."""
    return Path(address.partition("?")[0] if is_remote(address) else address)


def opened(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    if not is_remote(address):
        return fs.LocalFileSystem(), os.path.abspath(address)
    try:
        return fs.FileSystem.from_uri(address)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{address} cannot be reached ({str(error).strip()}); check the address") from None


def below(folder: str, relative: str) -> str:
    """The address of what is in a folder; options after a "?" stay at the end."""
    place, mark, options = folder.partition("?") if is_remote(folder) else (folder, "", "")
    return f"{place.rstrip('/')}/{relative}{mark}{options}"


def find(address: str) -> list[Found]:
    """The files that an address means: one, those of a folder and its folders, or those that a pattern fits."""
    folder, pattern = _split(address)
    if pattern is None:
        system, path = opened(address)
        info = system.get_file_info(path)
        if info.type == fs.FileType.File:
            return [Found(address, info.base_name, _stamp(info))]
        if info.type == fs.FileType.NotFound:
            raise DataError(f"{address}: there is no such file")
    found = [
        Found(below(folder, relative), relative, _stamp(info))
        for relative, info in sorted(tree(folder))
        if (_is_table(relative) if pattern is None else _fits(relative, pattern))
    ]
    if not found:
        wanted = f"file that ends in {', '.join(ENDINGS)}" if pattern is None else "such file"
        raise DataError(f"{address}: there is no {wanted}")
    return found


def tree(folder: str) -> Iterator[tuple[str, Any]]:
    """Every file in a folder and its folders, by its path from there; none where there is no folder."""
    system, path = opened(folder)
    for info in system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True)):
        if info.type == fs.FileType.File:
            yield str(PurePosixPath(info.path).relative_to(PurePosixPath(path))), info


def _split(address: str) -> tuple[str, str | None]:
    """A folder and the pattern below it; None where there is no pattern."""
    place, mark, options = address.partition("?") if is_remote(address) else (address, "", "")
    wild = _WILD.search(place)
    if wild is None or (not is_remote(address) and Path(address).exists()):
        return address, None
    folder, slash, _ = place[: wild.start()].rpartition("/")
    return f"{folder or ('/' if slash else '.')}{mark}{options}", place[len(folder) + len(slash) :]


def _fits(relative: str, pattern: str) -> bool:
    """As a shell does: * within one folder, ** across folders; hidden files by their own names only."""
    if "**" in pattern:
        return _is_shown(relative) and fnmatchcase(relative, pattern.replace("**/", "*").replace("**", "*"))
    parts, wanted = relative.split("/"), pattern.split("/")
    fitting = len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))
    return fitting and (_is_shown(relative) or "/." in f"/{pattern}")


def _is_table(relative: str) -> bool:
    return _is_shown(relative) and ending(Path(relative)) in ENDINGS


def _is_shown(relative: str) -> bool:
    return not any(part.startswith((".", "_")) for part in relative.split("/"))


def _stamp(info: Any) -> str:
    return f"{info.size} bytes of {info.mtime_ns}"
