"""Routes with a JSON body that bypass FastAPI's own parsing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.types import Receive, Scope, Send

from rationalizer.server.http_errors import RequestError

Body = TypeVar("Body", bound=BaseModel)


class JSONRoute(APIRoute):
    """A route whose endpoint takes the parsed JSON body, `body`, and the `request`.

    FastAPI reads the endpoint's types for its OpenAPI description. Its own parsing would take as long as everything
    else the server does for a request outside the model, so the body is parsed and validated here.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self._body_type = get_type_hints(endpoint)["body"]
        self.app = self._answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = parse_body(self._body_type, request.headers.get("content-type", ""), await request.body())
        response = await self.endpoint(body=body, request=request, **scope["path_params"])
        await response(scope, receive, send)


def parse_body(kind: type[Body], content_type: str, content: bytes) -> Body:
    """Parse and validate a JSON body; raise `RequestError` if it is invalid."""
    # Foreign pages can make a browser send any other content type without a preflight request.
    media = content_type.partition(";")[0].strip().lower()
    if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
        raise _not_an_object()
    try:
        value = json.loads(content)
    except json.JSONDecodeError as error:
        raise RequestError(400, "body", f"the request is not JSON: {error.msg}", "send one JSON object") from None
    except (ValueError, RecursionError):  # not UTF-8, a number of thousands of digits, nested too deeply
        raise RequestError(400, "body", "the request cannot be read as JSON", "send one JSON object in UTF-8") from None
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise _invalid(error) from None


def _not_an_object() -> RequestError:
    remedy = "send one JSON object, with the header Content-Type: application/json"
    return RequestError(422, "body", "the request is not a JSON object", remedy)


def _invalid(error: ValidationError) -> RequestError:
    first = error.errors(include_url=False, include_input=False)[0]
    location = [str(part) for part in first["loc"] if part not in ("int", "float", "str")]
    if not location:
        return _not_an_object()
    field = location[0] + "".join(f"[{part}]" for part in location[1:] if part.isdigit())
    problem = first["msg"].replace("Input should be", "the value should be")
    return RequestError(422, field, problem, "see the types of the fields at /docs")
