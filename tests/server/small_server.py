"""A server without a model, in one process or several: `python -m tests.server.small_server PROCESSES`."""

import asyncio
import os
import sys

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from rationalizer.server.listener import run
from rationalizer.server.monitoring import TEXTS


def make(metrics):
    async def slow(_):
        metrics.add(TEXTS)
        await asyncio.sleep(0.5)
        return PlainTextResponse("done")

    async def process(_):
        return PlainTextResponse(str(os.getpid()))

    async def threads(_):
        return PlainTextResponse(os.environ["OMP_NUM_THREADS"])

    async def told(_):
        return PlainTextResponse(metrics.exposition())

    return Starlette(routes=[Route(f"/{answer.__name__}", answer) for answer in (slow, process, threads, told)])


def tell(address):
    print(address, flush=True)


if __name__ == "__main__":
    try:
        run(make, "127.0.0.1", 0, workers=int(sys.argv[1]), on_started=tell)
    except KeyboardInterrupt:
        sys.exit(130)
