"""The page and the endpoint: routes, limits, and how requests reach the model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, Literal, get_args

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from rationalizer import __version__
from rationalizer import drawing as render
from rationalizer.constraints import Constraints
from rationalizer.drawing import AnyExplanation
from rationalizer.server.access import Door
from rationalizer.server.batching import Batcher, Busy, Gone
from rationalizer.server.connections import GONE
from rationalizer.server.http_errors import Refusal, Refused, refuse_unread
from rationalizer.server.json_routes import JSONRoute
from rationalizer.server.middleware import Guard
from rationalizer.server.monitoring import BATCH, TEXTS, WAITING, Metrics
from rationalizer.server.quotas import Quotas
from rationalizer.server.request_schema import Answer, ExplainRequest, Question, problem_and_remedy, understand
from rationalizer.server.served_models import ServedModel, Text, Unreadable, budget_facts, work
from rationalizer.text import Budget

STATIC = files("rationalizer.server") / "static"
TYPES = {"css": "text/css", "js": "text/javascript", "html": "text/html", "svg": "image/svg+xml"}
Drawing = Literal["html", "svg"]
Key = tuple[str, Budget | None, Constraints | None]  # the model's name, and what it is asked for beside its own
WARM_UP: tuple[str, tuple[str, str]] = ("A first text.", ("A first text.", "A second one."))
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refusal, "description": "Not JSON, or fields that contradict each other."},
    401: {"model": Refusal, "description": "The server has a token, and the request does not have it."},
    408: {"model": Refusal, "description": "The request took too long to arrive."},
    413: {"model": Refusal, "description": "Too many items, or too long a text."},
    421: {"model": Refusal, "description": "The header Host is none of the server's names."},
    422: {"model": Refusal, "description": "A field with a wrong type or value."},
    503: {"model": Refusal, "description": "Too much is waiting; try again after the seconds of Retry-After."},
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
    metrics: Metrics | None = None,
) -> FastAPI:
    """The web application.

    Args:
        models: at least one; the first that reads such texts answers requests that name none.
        quotas: how much a request may ask for.
        examples: texts (or pairs) that the page offers to click.
        views: by model, what is to be seen of it on a whole dataset: HTML, as of `render.html.to_html_fragment`.
        dataset: that dataset's name.
        hosts: names that the server goes by, besides localhost; "*" for any (see `Door`).
        token: what requests must bring in the header `Authorization: Bearer ...`; None: nothing.
        metrics: where to count, if with other processes.
    """
    if not models:
        raise ValueError("there is no model to serve; give at least one")
    quotas, views = quotas or Quotas(), views or {}
    metrics = metrics or Metrics()
    by_name = {served.name: served for served in models}

    def run(key: Key, texts: Sequence[Text]) -> list[AnyExplanation | Unreadable]:
        name, budget, constraints = key
        return by_name[name].explain(budget, constraints, texts)

    def note_batch(texts: int) -> None:
        metrics.observe(BATCH, texts)
        metrics.set(WAITING, batcher.waiting)

    batcher: Batcher[Key, Text, AnyExplanation | Unreadable] = Batcher(
        run, size=work, capacity=quotas.waiting, share=quotas.items, ran=note_batch
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with batcher:
            for served in models:  # what is compiled on first use is compiled before the first request
                await batcher.submit((served.name, None, None), [WARM_UP[served.model.pairs]])
            yield

    app = FastAPI(
        title="rationalizer",
        description="Text classifiers that read only the words they show.",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's page loads its scripts from elsewhere; ours is in static/
        redoc_url=None,
    )
    body = quotas.body(pairs=any(served.model.pairs for served in models))
    app.add_middleware(Guard, door=Door(hosts, token), limit=body, metrics=metrics)
    app.add_exception_handler(HTTPException, refuse_unread)

    async def answer(question: Question, asked: Request) -> list[AnyExplanation]:
        key = (question.served.name, question.budget, question.constraints)
        client = asked.client and asked.client.host
        gone = asked.scope.get("extensions", {}).get(GONE, lambda: False)
        try:
            answers = await batcher.submit(key, question.texts, client, gone)
        except Busy as error:
            raise Refused(503, "body", str(error), "try again in a second") from None
        except Gone:  # as nginx has it in its logs; nobody is told
            raise Refused(499, "body", "the client has hung up", "wait for the answer") from None
        except ValueError as error:
            if not (question.constraints or question.served.model.constraints):
                raise
            raise Refused(422, "constraints", *problem_and_remedy(error)) from None
        finally:
            metrics.set(WAITING, batcher.waiting)
        found: list[AnyExplanation] = []
        for number, one in enumerate(answers):
            if isinstance(one, Unreadable):
                raise Refused(422, question.place(number), one.problem, one.remedy)
            found.append(one)
        metrics.add(TEXTS, len(found))
        return found

    async def explain(request: ExplainRequest, asked: Request) -> Response:
        question = understand(request, by_name, quotas)
        found = await answer(question, asked)
        rows = [explanation.to_dict() for explanation in found]
        if request.html:
            drawn = await run_in_threadpool(lambda: [render.to_html(explanation) for explanation in found])
            rows = [{**row, "html": html} for row, html in zip(rows, drawn, strict=True)]
        model = question.served.model
        budget = model.budget if question.budget is None else question.budget
        constraints = model.constraints if question.constraints is None else question.constraints
        facts = {**budget_facts(budget), "constraints": list(map(str, constraints))}
        content = to_json({"model": question.served.name, **facts, "explanations": rows}, inf_nan_mode="null")
        return Response(content, media_type="application/json")

    async def draw(kind: Drawing, request: ExplainRequest, asked: Request) -> Response:
        if kind not in get_args(Drawing):
            raise Refused(422, "kind", f"there is no picture of the kind {kind!r}", "ask for html or svg")
        question = understand(request, by_name, quotas)
        found = await answer(question, asked)
        if kind == "svg" and len(found) > 1:
            raise Refused(422, "texts", f"a picture shows one text, got {len(found)}", "send one text, or ask for html")
        title = f"Explained by {question.served.name}"
        content = await run_in_threadpool(
            lambda: render.to_svg(found[0]) if kind == "svg" else render.to_html_page(found, title=title)
        )
        headers = {"Content-Disposition": f'attachment; filename="explanation.{kind}"'}
        return Response(content, media_type=TYPES[kind], headers=headers)

    posted: dict[str, Any] = {"methods": ["POST"], "responses": REFUSALS, "route_class_override": JSONRoute}
    app.router.add_api_route(
        "/explain",
        explain,
        response_model=Answer,
        summary="Labels and the words they rest on",
        response_description="The model's name, the budget, and explanations in the order of the texts.",
        **posted,
    )
    app.router.add_api_route(
        "/render/{kind}", draw, response_class=Response, summary="Explanations as a file", **posted
    )

    @app.get("/models", summary="The models that can be asked")
    async def list_models() -> dict[str, Any]:
        limited = {"items": quotas.items, "characters": quotas.characters}
        facts = [{**served.facts(), "view": served.name in views} for served in models]
        return {"models": facts, "limits": limited, "dataset": dataset}

    @app.get("/views/{name}", response_class=HTMLResponse, summary="A model on a whole dataset, as HTML")
    async def view(name: str) -> HTMLResponse:
        if name not in views:
            raise Refused(404, "name", f"there is no view of {name[:40]!r}", "serve it with --dataset")
        return HTMLResponse(views[name])

    @app.get("/examples", summary="Texts to try")
    async def list_examples() -> dict[str, Any]:
        return {"examples": examples}

    @app.get("/health", summary="Whether the server answers, and how much waits")
    async def health() -> dict[str, Any]:
        return {"status": "ok", "version": __version__, "models": list(by_name), "waiting": batcher.waiting}

    @app.get("/ready", responses={503: REFUSALS[503]}, summary="Whether a request would be answered now")
    async def ready() -> dict[str, str]:
        if not batcher.ready:
            raise Refused(503, "body", f"{batcher.waiting} texts are waiting", "try again in a second")
        return {"status": "ready"}

    @app.get("/metrics", response_class=PlainTextResponse, summary="Counts, sizes and times, for Prometheus")
    async def tell_metrics() -> PlainTextResponse:
        return PlainTextResponse(metrics.exposition(), media_type="text/plain; version=0.0.4")

    _add_pages(app)
    return app


def _add_pages(app: FastAPI) -> None:
    def page(name: str) -> Callable[[], Awaitable[FileResponse]]:
        async def send() -> FileResponse:
            kind = name.rpartition(".")[2]
            # Asked for again each time: a page must not meet the script of another version.
            return FileResponse(str(STATIC / name), media_type=TYPES[kind], headers={"Cache-Control": "no-cache"})

        return send

    for path, name in {"/": "index.html", "/docs": "docs.html"}.items():
        app.get(path, include_in_schema=False)(page(name))
    for name in ("style.css", "ask.js", "examples.js", "dataset.js", "page.js", "docs.js"):
        app.get(f"/static/{name}", include_in_schema=False)(page(name))
