"""A request that is not answered: what HTTP says, and what the reader of the error needs to know."""

from __future__ import annotations

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

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


async def refuse_malformed(_: Request, error: Exception) -> JSONResponse:
    """FastAPI's own findings (not JSON, wrong types) in the form of all others."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = [str(part) for part in first["loc"] if part not in ("body", "int", "float", "str")]
    if first["type"] == "json_invalid":
        message = first.get("ctx", {}).get("error", first["msg"])
        return Refused(400, "body", f"the request is not JSON: {message}", "send one JSON object").response()
    if not place:
        remedy = "send one JSON object, with the header Content-Type: application/json"
        return Refused(422, "body", "the request is not a JSON object", remedy).response()
    field = place[0] + "".join(f"[{part}]" for part in place[1:] if part.isdigit())
    problem = first["msg"].replace("Input should be", "the value should be")
    return Refused(422, field, problem, "see the types of the fields at /docs").response()


async def refuse_unread(_: Request, error: Exception) -> JSONResponse:
    """What is refused before anybody looks at its fields: no such page, no such method, bytes that are no JSON."""
    assert isinstance(error, HTTPException)
    if error.status_code == 400:
        return Refused(400, "body", "the request cannot be read as JSON", "send one JSON object in UTF-8").response()
    remedy = "see what there is to ask at /docs"
    found = Refused(error.status_code, "path", str(error.detail).lower(), remedy).response()
    found.headers.update(error.headers or {})
    return found


async def refuse(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return error.response()
