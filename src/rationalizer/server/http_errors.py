"""A request that is not answered: what HTTP says, and what the encoder of the error needs to know."""

from __future__ import annotations

from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

LONGEST = 500  # characters of a request that an error repeats
HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}


class Problem(BaseModel):
    field: str = Field(description="The field at fault; `body` for the request as a whole.")
    problem: str
    remedy: str


class Refusal(BaseModel):
    error: Problem


class Refused(Exception):
    """A request that is not answered, as HTTP tells it."""

    def __init__(self, status: int, field: str, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.status = status
        self.content = {"error": {"field": _shown(field), "problem": _shown(problem), "remedy": remedy}}

    def response(self) -> JSONResponse:
        return JSONResponse(self.content, self.status, HEADERS.get(self.status))


def _shown(part: str) -> str:
    """What may hold a piece of the request: in bounds, and as UTF-8 whatever it is."""
    kept = part if len(part) <= LONGEST else f"{part[:LONGEST]}…"
    return kept.encode("utf-8", "backslashreplace").decode()


async def refuse_unread(_: Request, error: Exception) -> JSONResponse:
    """No such page, no such method: in the form of all others."""
    assert isinstance(error, HTTPException)
    remedy = "see what there is to ask at /docs"
    found = Refused(error.status_code, "path", str(error.detail).lower(), remedy).response()
    found.headers.update(error.headers or {})
    return found
