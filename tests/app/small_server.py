"""A server without a model, in one process or several: `python -m tests.app.small_server PROCESSES`."""

import asyncio
import os
import sys

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from rationalizer.app.listen import run
from rationalizer.app.metrics import TEXTS


def make(metrics):
    app = FastAPI()

    @app.get("/slow")
    async def slow():
        metrics.add(TEXTS)
        await asyncio.sleep(0.5)
        return "done"

    @app.get("/process")
    async def process():
        return os.getpid()

    @app.get("/metrics")
    async def told():
        return PlainTextResponse(metrics.exposition())

    return app


def tell(address):
    print(address, flush=True)


if __name__ == "__main__":
    try:
        run(make, "127.0.0.1", 0, workers=int(sys.argv[1]), started=tell)
    except KeyboardInterrupt:
        sys.exit(130)
