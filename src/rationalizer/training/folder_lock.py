"""A lock on a folder: two writers would overwrite each other's files."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

LOCK = ".lock"
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)  # file systems without locks

_locked_paths: set[Path] = set()  # folders locked by this process, because system locks do not exclude the same process


@contextmanager
def lock_folder(directory: str | Path) -> Iterator[None]:
    """Lock the folder for this process, and create it if necessary. The system releases the lock when the process ends,
    in whatever way; a lock file that is left behind has no meaning."""
    directory = Path(directory).absolute()
    created = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    path = directory.resolve() / LOCK
    if path in _locked_paths:
        raise _in_use(directory, str(os.getpid()))
    file = _locked(path, directory)
    _locked_paths.add(path)
    try:
        yield
    finally:
        if sys.platform == "win32":  # Windows cannot remove an open file
            file.close()
        with suppress(OSError):
            path.unlink()
        file.close()
        _locked_paths.discard(path)
        with suppress(OSError):  # remove folders that are still empty
            for folder in created:
                folder.rmdir()


def _locked(path: Path, directory: Path) -> IO[str]:
    while True:
        file = path.open("a+")
        try:
            _lock(file)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                file.seek(0)
                holder = file.read().strip() if sys.platform != "win32" else ""
                file.close()
                raise _in_use(directory, holder) from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                break
        file.close()  # its last holder has removed it: nobody else would see this lock
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def _lock(file: IO[str]) -> None:
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        # Not flock: worker processes would inherit the lock, and hold it for a while after their parent was killed.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _in_use(directory: Path, holder: str) -> OSError:
    process = f"process {holder}" if holder else "another process"
    return BlockingIOError(f"{directory} is in use by {process}; wait until it ends, stop it, or use another folder")
