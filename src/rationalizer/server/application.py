"""The web application: the page, the JSON endpoint, and the batching of requests."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, get_args

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from rationalizer import __version__
from rationalizer import drawing as render
from rationalizer.constraints import Constraints
from rationalizer.drawing import AnyExplanation
from rationalizer.server.access import AccessControl
from rationalizer.server.batching import Batcher, QueueFullError
from rationalizer.server.http_errors import ErrorResponse, RequestError, handle_http_exception
from rationalizer.server.json_routes import JSONRoute
from rationalizer.server.middleware import RequestMiddleware
from rationalizer.server.monitoring import Metrics
from rationalizer.server.quotas import Quotas
from rationalizer.server.request_schema import ExplainAnswer, ExplainRequest, ExplainTask, constraint_error, validate
from rationalizer.server.served_models import ServedModel, Text, budget_facts, estimate_cost
from rationalizer.server.static_files import MEDIA_TYPES, static_file
from rationalizer.text import Budget
from rationalizer.text.errors import DataError, InputError
from rationalizer.work_limits import RequestTime, limit_entries

if TYPE_CHECKING:
    from rationalizer.server.annotation_task import AnnotationTask

PAGES = {"/": "index.html", "/docs": "docs.html"}
ASSETS = ("style.css", "api.js", "examples.js", "dataset.js", "downloads.js", "label_search.js", "page.js", "docs.js")
Drawing = Literal["html", "svg"]
# The model's name, what replaces its own settings, whether decisions are recorded, whether words have weights, and, if
# the request may take long, its time limit.
Key = tuple[str, Budget | None, Constraints | None, bool, bool, RequestTime | None]
MOST_ENTRIES = 2**25  # of the table of one constrained selection: 256 MB, 0.4 seconds
MANY_WORDS = 1000  # writing an answer with more takes so long that others are answered in the meantime
WARM_UP_TEXT, WARM_UP_PAIR = "A first text.", ("A first text.", "A second one.")
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse, "description": "Not JSON, or fields that contradict each other."},
    401: {"model": ErrorResponse, "description": "The server has a token, and the request does not have it."},
    408: {"model": ErrorResponse, "description": "The request took too long to arrive."},
    413: {"model": ErrorResponse, "description": "Too many items, or too long a text."},
    421: {"model": ErrorResponse, "description": "The header Host is none of the server's names."},
    422: {"model": ErrorResponse, "description": "A field with a wrong type or value."},
    503: {"model": ErrorResponse, "description": "The queue is full; try again after the seconds of Retry-After."},
}


def create_app(
    models: Sequence[ServedModel],
    *,
    quotas: Quotas | None = None,
    examples: Sequence[Text] = (),
    views: Mapping[str, str] | None = None,
    dataset: str = "",
    hosts: Iterable[str] = (),
    token: str | None = None,
    corrections: AnnotationTask | None = None,
) -> FastAPI:
    """Create the web application.

    Args:
        models: at least one; requests that name no model use the first for their kind of text.
        quotas: limits of requests and of the queue.
        examples: texts (or pairs) that the page offers.
        views: HTML fragment per model that shows it on a whole dataset, from `drawing.html.to_html_fragment`.
        dataset: name of that dataset.
        hosts: accepted values of the header Host besides localhost (see `AccessControl`).
        token: bearer token that requests must send; None: no token is needed.
        corrections: where people's corrections of texts on the page are written; None: they cannot correct any.
    """
    if not models:
        raise ValueError("there is no model to serve; give at least one")
    quotas, views, metrics = quotas or Quotas(), views or {}, Metrics()
    by_name = {model.name: model for model in models}

    def explain_batch(key: Key, texts: Sequence[Text]) -> list[AnyExplanation | DataError]:
        name, budget, constraints, record, reasons, time_limit = key
        with limit_entries(MOST_ENTRIES), time_limit.use() if time_limit is not None else nullcontext():
            return by_name[name].explain(budget, constraints, texts, record=record, reasons=reasons)

    def record_batch(texts: int) -> None:
        metrics.batches.observe(texts)
        metrics.waiting.set(batcher.waiting)

    batcher: Batcher[Key, Text, AnyExplanation | DataError] = Batcher(
        explain_batch,
        cost=estimate_cost,
        capacity=quotas.waiting,
        reserved=quotas.items,
        is_slow=lambda key: key[-1] is not None,
        on_batch=record_batch,
        on_end=stop_process,
        on_hung=lambda: os._exit(1),  # the model's thread would keep the process alive
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with batcher:
            for model in models:  # compiles kernels before the first request
                first = WARM_UP_PAIR if model.pairs else WARM_UP_TEXT
                await batcher.submit((model.name, None, None, False, True, None), [first])
            yield

    app = FastAPI(
        title="rationalizer",
        description="Text classifiers that read only the words they show.",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's page loads scripts from other servers; ours is in static/
        redoc_url=None,
    )
    max_bytes = quotas.max_bytes(pairs=any(model.pairs for model in models))
    app.add_middleware(RequestMiddleware, access=AccessControl(hosts, token), max_bytes=max_bytes, metrics=metrics)
    app.add_exception_handler(HTTPException, handle_http_exception)

    async def submit(task: ExplainTask, request: Request) -> list[AnyExplanation | DataError]:
        key = (task.model.name, task.budget, task.constraints, task.record, task.reasons, task.time_limit())
        try:
            return await batcher.submit(key, task.texts, request.client and request.client.host)
        except QueueFullError as error:
            raise RequestError(503, "body", str(error), "try again in a second") from None
        except InputError as error:
            raise constraint_error(error) from None
        finally:
            metrics.waiting.set(batcher.waiting)

    async def explain_task(task: ExplainTask, request: Request) -> list[AnyExplanation]:
        explanations: list[AnyExplanation] = []
        for index, result in enumerate(await _unless_disconnected(request, submit(task, request))):
            if isinstance(result, DataError):
                raise RequestError(422, task.field_of(index), result.problem, result.remedy)
            explanations.append(result)
        metrics.texts.inc(len(explanations))
        return explanations

    async def validate_body(body: ExplainRequest) -> ExplainTask:
        if body.constraints is None:
            return validate(body, by_name, quotas)
        return await run_in_threadpool(validate, body, by_name, quotas)  # compiling patterns may take a while

    async def explain(body: ExplainRequest, request: Request) -> Response:
        task = await validate_body(body)
        explanations = await explain_task(task, request)
        is_long = body.html or sum(map(estimate_cost, task.texts)) > MANY_WORDS
        arguments = (task, explanations, body.html)
        content = await run_in_threadpool(write, *arguments) if is_long else write(*arguments)
        return Response(content, media_type="application/json")

    def write(task: ExplainTask, explanations: Sequence[AnyExplanation], html: bool) -> bytes:
        """Return the answer as JSON, with or without an HTML fragment per explanation."""
        rows = [explanation.to_dict() for explanation in explanations]
        if html:
            fragments = map(render.to_html, explanations)
            rows = [{**row, "html": fragment} for row, fragment in zip(rows, fragments, strict=True)]
        model = task.model.model
        budget = model.budget if task.budget is None else task.budget
        constraints = model.constraints if task.constraints is None else task.constraints
        facts = {**budget_facts(budget), "constraints": list(map(str, constraints))}
        return to_json({"model": task.model.name, **facts, "explanations": rows}, inf_nan_mode="null")

    async def draw(kind: Drawing, body: ExplainRequest, request: Request) -> Response:
        if kind not in get_args(Drawing):
            raise RequestError(422, "kind", f"there is no drawing of the kind {kind!r}", "use html or svg")
        task = await validate_body(body)
        if kind == "svg" and len(task.texts) > 1:
            problem = f"an SVG shows one text, got {len(task.texts)}"
            raise RequestError(422, "texts", problem, "send one text, or use html")
        explanations = await explain_task(task, request)
        title = f"Explained by {task.model.name}"
        content = await run_in_threadpool(
            lambda: render.to_svg(explanations[0]) if kind == "svg" else render.to_html_page(explanations, title=title)
        )
        headers = {"Content-Disposition": f'attachment; filename="explanation.{kind}"'}
        return Response(content, media_type=MEDIA_TYPES[kind], headers=headers)

    json_route: dict[str, Any] = {
        "methods": ["POST"],
        "responses": ERROR_RESPONSES,
        "route_class_override": JSONRoute,
    }
    app.router.add_api_route(
        "/explain",
        explain,
        response_model=ExplainAnswer,
        summary="Predictions and their rationales",
        response_description="The model's name, the budget, and explanations in the order of the texts.",
        **json_route,
    )
    app.router.add_api_route(
        "/render/{kind}", draw, response_class=Response, summary="Explanations as a file", **json_route
    )

    @app.get("/models", summary="The available models")
    async def list_models() -> dict[str, Any]:
        facts = [{**model.facts(), "view": model.name in views} for model in models]
        limits = {"items": quotas.items, "characters": quotas.characters}
        correct = {} if corrections is None else {"corrections": corrections.file.content.header["pairs"]}
        return {"models": facts, "limits": limits, "dataset": dataset, **correct}

    @app.get("/views/{name}", response_class=HTMLResponse, summary="A model on a whole dataset, as HTML")
    async def get_view(name: str) -> HTMLResponse:
        if name not in views:
            raise RequestError(404, "name", f"there is no view of {name[:40]!r}", "start the server with --dataset")
        return HTMLResponse(views[name])

    @app.get("/examples", summary="Example texts")
    async def list_examples() -> dict[str, Any]:
        return {"examples": examples}

    @app.get("/health", summary="Whether the server answers, and how many texts are waiting")
    async def get_health() -> dict[str, Any]:
        names = {"models": list(by_name)} if token is None else {}  # the path is open to requests without the token
        return {"status": "ok", "version": __version__, **names, "waiting": batcher.waiting}

    @app.get("/ready", responses={503: ERROR_RESPONSES[503]}, summary="Whether a request would be answered now")
    async def get_ready() -> dict[str, str]:
        if not batcher.is_running:
            raise RequestError(503, "body", "the task that runs the batches has ended", "restart the server")
        if batcher.is_full:
            raise RequestError(503, "body", f"{batcher.waiting} texts are waiting", "try again in a second")
        return {"status": "ready"}

    @app.get("/metrics", response_class=Response, summary="Counts, sizes and times, for Prometheus")
    async def get_metrics() -> Response:
        return Response(metrics.exposition(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    if corrections is not None:
        from rationalizer.server.annotation_routes import add_annotation_page  # imports PyTorch

        add_annotation_page(app, corrections, "/annotate", quotas.characters)
    for path, name in (*PAGES.items(), *((f"/static/{name}", name) for name in ASSETS)):
        app.get(path, include_in_schema=False)(static_file(name))
    return app


def stop_process() -> None:
    """Stop the server as SIGTERM does: requests in progress are answered; a supervisor starts a new process."""
    signal.raise_signal(signal.SIGTERM)


async def _unless_disconnected(request: Request, answer: Awaitable[Any]) -> Any:
    """Await the answer; cancel it if the client disconnects, so that nobody's texts use up the model's time."""
    task = asyncio.ensure_future(answer)
    disconnected = asyncio.ensure_future(request.receive())  # the body has been received: only a disconnect can follow
    try:
        await asyncio.wait({task, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():  # the status that nginx logs; nobody receives it
            raise RequestError(499, "body", "the client has disconnected", "wait for the answer")
        return task.result()
    finally:
        task.cancel()
        disconnected.cancel()
