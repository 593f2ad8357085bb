"""A server with a fault: `python -m tests.server.failing_server MODEL FAULT`; the text "fail" causes it.

Faults: "queue" ends the task that runs the batches, "hang" never returns from the model.
"""

import socket
import sys
import time
from pathlib import Path

import uvicorn

from rationalizer.server import batching, create_app, load_models
from rationalizer.server.fair_queue import FairQueue
from rationalizer.server.listener import server_config
from rationalizer.server.served_models import ServedModel


def add_fault(owner, name, is_faulty, fault):
    original = getattr(owner, name)

    def replacement(*arguments, **options):
        result = original(*arguments, **options)
        return fault() if is_faulty(result) else result

    setattr(owner, name, replacement)


if __name__ == "__main__":
    folder, fault = sys.argv[1:]
    batching.STOP_SECONDS = 0.5
    if fault == "queue":
        add_fault(FairQueue, "peek", lambda job: "fail" in job.items, lambda: 1 / 0)
    else:
        add_fault(ServedModel, "explain", lambda found: found[0].text == "fail", lambda: time.sleep(3600))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        app = create_app(load_models([Path(folder)]))
        uvicorn.Server(server_config(app, request_timeout=5, grace_seconds=1)).run([listener])
