"""The annotation page and its JSON endpoints, alone or as a part of the page of `serve`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

from rationalizer.server.access import AccessControl
from rationalizer.server.annotation_task import AnnotationTask
from rationalizer.server.http_errors import RequestError
from rationalizer.server.json_routes import JSONRoute
from rationalizer.server.middleware import RequestMiddleware
from rationalizer.server.monitoring import Metrics
from rationalizer.server.quotas import Quotas
from rationalizer.server.request_schema import check_text, check_unicode
from rationalizer.server.static_files import static_file
from rationalizer.text.errors import InputError

SCRIPTS = ("api.js", "annotate.js", "annotate_draft.js", "annotate_words.js", "annotate_agreement.js")
ASSETS = ("style.css", "annotate.css", *SCRIPTS)
MAX_BYTES = 8_000_000  # of a request
LONGEST_SECONDS = 10**9


class AnnotationBody(BaseModel):
    """A person's annotation of a text."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(max_length=64)
    annotator: str
    label: str | int | Annotated[float, Field(allow_inf_nan=False)] | list[str] | None = None
    rationale_chars: list[tuple[int, int]] | None = None
    alignment: list[tuple[int, int]] | None = None
    not_enough: bool = False
    seconds: float = Field(0, ge=0, le=LONGEST_SECONDS)


class NeverBody(BaseModel):
    """The words that a person says must never count."""

    annotator: str
    never: list[str]


class TextBody(BaseModel):
    """A text to annotate: one string, or a premise and a hypothesis."""

    texts: list[str] = Field(min_length=1, max_length=2)
    annotator: str = ""


def add_annotation_page(
    app: FastAPI, task: AnnotationTask, prefix: str = "", characters: int = Quotas.characters
) -> None:
    """Add the page at `prefix/`, and what it calls; `characters` is the maximum length of a new text."""

    def get(path: str, answer: Callable[[str, str], Any]) -> None:
        async def endpoint(request: Request) -> JSONResponse:
            person, key = request.query_params.get("person", ""), request.path_params.get("key", "")
            return await _answer(partial(answer, person, key))

        app.router.add_api_route(prefix + path, endpoint, methods=["GET"], include_in_schema=False)

    get("/task", lambda person, key: task.describe())
    get("/queue", lambda person, key: task.queue(person))
    get("/texts/{key}", lambda person, key: task.text(key, person))
    get("/agreement", lambda person, key: task.agreement())

    async def save(body: AnnotationBody, request: Request) -> JSONResponse:
        label = body.label if isinstance(body.label, list) else [str(body.label)]
        check_unicode("body", body.id, body.annotator, *label)
        row = body.model_dump(exclude_none=True, exclude={"id", "annotator"}, mode="json")
        return await _answer(partial(task.save, body.id, body.annotator, row))

    async def save_never(body: NeverBody, request: Request) -> JSONResponse:
        check_unicode("body", body.annotator, *body.never)
        return await _answer(partial(task.save_never, body.annotator, body.never))

    async def draw(body: TextBody, request: Request) -> JSONResponse:
        for text in body.texts:
            check_text(text, "texts", characters)
        return await _answer(partial(task.draw, body.texts, body.annotator))

    for path, endpoint in (("/annotations", save), ("/never", save_never), ("/draw", draw)):
        # Not on a router of their own: FastAPI 0.163 would parse their bodies itself.
        options: dict[str, Any] = {"include_in_schema": False, "response_model": None}
        app.router.add_api_route(prefix + path, endpoint, methods=["POST"], route_class_override=JSONRoute, **options)
    for path, name in (("/", "annotate.html"), *((f"/static/{name}", name) for name in ASSETS)):
        app.get(prefix + path, include_in_schema=False)(static_file(name))


async def _answer(action: Callable[[], Any]) -> JSONResponse:
    try:
        return JSONResponse(await run_in_threadpool(action))
    except InputError as error:
        raise RequestError(422, "body", error.problem, error.remedy) from None
    except OSError as error:
        raise RequestError(
            500, "body", f"the annotation was not written: {error}", "free the disk, then save again"
        ) from None


def create_annotation_app(task: AnnotationTask, *, hosts: Iterable[str] = (), token: str | None = None) -> FastAPI:
    """The annotation page as an application of its own."""
    app = FastAPI(title="rationalizer annotate", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(RequestMiddleware, access=AccessControl(hosts, token), max_bytes=MAX_BYTES, metrics=Metrics())
    add_annotation_page(app, task)
    return app
