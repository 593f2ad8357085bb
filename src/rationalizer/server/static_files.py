"""The files of the pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files

from fastapi.responses import FileResponse

STATIC = files("rationalizer.server") / "static"
MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "html": "text/html", "svg": "image/svg+xml"}


def static_file(name: str) -> Callable[[], Awaitable[FileResponse]]:
    async def send_file() -> FileResponse:
        media_type = MEDIA_TYPES[name.rpartition(".")[2]]
        # Revalidated on each use: a page must not run a script of another version.
        return FileResponse(str(STATIC / name), media_type=media_type, headers={"Cache-Control": "no-cache"})

    return send_file
