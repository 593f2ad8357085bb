"""Errors of requests: an HTTP status, the field at fault, the problem and the remedy."""

from __future__ import annotations

from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

MAX_LENGTH = 500  # characters: they may quote the request
HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}


class ErrorDetail(BaseModel):
    field: str = Field(description="The field at fault; `body` for the request as a whole.")
    problem: str
    remedy: str


class ErrorResponse(BaseModel):
    error: ErrorDetail


class RequestError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, field: str, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.status = status
        parts = {"field": field, "problem": problem, "remedy": remedy}
        self.content = {"error": {name: _printable(part) for name, part in parts.items()}}

    def response(self) -> JSONResponse:
        return JSONResponse(self.content, self.status, HEADERS.get(self.status))


def _printable(part: str) -> str:
    """Truncate, and escape what UTF-8 cannot encode (lone surrogates)."""
    truncated = part if len(part) <= MAX_LENGTH else f"{part[:MAX_LENGTH]}…"
    return truncated.encode("utf-8", "backslashreplace").decode()


async def handle_http_exception(_: Request, error: Exception) -> JSONResponse:
    """Answer Starlette's own errors (no such path, no such method) in the same form as all others."""
    assert isinstance(error, HTTPException)
    remedy = "see /docs for the available paths"
    response = RequestError(error.status_code, "path", str(error.detail).lower(), remedy).response()
    response.headers.update(error.headers or {})
    return response
