"""A server without a model, in one process or several: `python -m tests.server.small_server WORKERS [fail]`."""

import asyncio
import os
import sys

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from rationalizer.server.listener import run
from rationalizer.server.monitoring import Metrics


def create():
    metrics = Metrics()

    async def slow(_):
        metrics.texts.inc()
        await asyncio.sleep(0.5)
        return PlainTextResponse("done")

    async def process(_):
        return PlainTextResponse(str(os.getpid()))

    async def threads(_):
        return PlainTextResponse(os.environ["OMP_NUM_THREADS"])

    async def counts(_):
        return PlainTextResponse(metrics.exposition())

    return Starlette(routes=[Route(f"/{answer.__name__}", answer) for answer in (slow, process, threads, counts)])


def create_nothing():
    raise ValueError("there is nothing to serve")


if __name__ == "__main__":
    workers, *options = sys.argv[1:]
    try:
        run(
            create_nothing if "fail" in options else create,
            "127.0.0.1",
            0,
            workers=int(workers),
            on_started=lambda address: print(address, flush=True),
        )
    except KeyboardInterrupt:
        sys.exit(130)
    except ValueError as error:
        sys.exit(f"error: {error}")
