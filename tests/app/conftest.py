import socket
import threading
from contextlib import contextmanager

import pytest
import uvicorn
from fastapi.testclient import TestClient

from rationalizer.app import Limits, create_app, load_models
from rationalizer.data import generated_reviews as reviews


@pytest.fixture(scope="session")
def models(spectra_run, sparsemax_run):
    return load_models([spectra_run, sparsemax_run])


@pytest.fixture(scope="session")
def client(models):
    limits = Limits(items=8, characters=1000)
    with TestClient(create_app(models, limits=limits, examples=["A first one.", "A second one."])) as client:
        yield client


@pytest.fixture(scope="session")
def pair_client(pair_run):
    with TestClient(create_app(load_models([pair_run]))) as client:
        yield client


@contextmanager
def listening(app):
    """The application at a free port, served by another thread of this process."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def server(models):
    texts = [example.text for example in reviews(train=1, dev=1, test=4).test]
    with listening(create_app(models, examples=texts)) as address:
        yield address


@pytest.fixture(scope="session")
def pair_server(pair_run):
    with listening(create_app(load_models([pair_run]))) as address:
        yield address
