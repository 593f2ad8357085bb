"""Routes that FastAPI documents and that are answered without it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.types import Receive, Scope, Send

from rationalizer.server.http_errors import Refused

Body = TypeVar("Body", bound=BaseModel)


class JSONRoute(APIRoute):
    """A route whose endpoint takes a JSON body, `request`, and who asked, `asked`.

    FastAPI reads their types for its description of the server. To answer, it would take as long as all else that is
    done for a request but by the model, so the body is read and checked here instead.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self._body = get_type_hints(endpoint)["request"]
        self.app = self._answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = Request(scope, receive)
        request = read(self._body, asked.headers.get("content-type", ""), await asked.body())
        response = await self.endpoint(request=request, asked=asked, **scope["path_params"])
        await response(scope, receive, send)


def read(kind: type[Body], content_type: str, body: bytes) -> Body:
    """The body of a request; Refused where it is none."""
    # Other pages may make browsers send anything but JSON here without asking first.
    media = content_type.partition(";")[0].strip().lower()
    if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
        raise _no_object()
    try:
        given = json.loads(body)
    except json.JSONDecodeError as error:
        raise Refused(400, "body", f"the request is not JSON: {error.msg}", "send one JSON object") from None
    except (ValueError, RecursionError):  # no UTF-8; numbers of thousands of digits; too deep
        raise Refused(400, "body", "the request cannot be read as JSON", "send one JSON object in UTF-8") from None
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise _malformed(error) from None


def _no_object() -> Refused:
    remedy = "send one JSON object, with the header Content-Type: application/json"
    return Refused(422, "body", "the request is not a JSON object", remedy)


def _malformed(error: ValidationError) -> Refused:
    first = error.errors(include_url=False, include_input=False)[0]
    place = [str(part) for part in first["loc"] if part not in ("int", "float", "str")]
    if not place:
        return _no_object()
    field = place[0] + "".join(f"[{part}]" for part in place[1:] if part.isdigit())
    problem = first["msg"].replace("Input should be", "the value should be")
    return Refused(422, field, problem, "see the types of the fields at /docs")
