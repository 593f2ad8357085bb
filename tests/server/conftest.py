import shutil
import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn
from fastapi.testclient import TestClient

from rationalizer.data import generated_reviews as reviews
from rationalizer.server import Quotas, create_app, load_models
from rationalizer.server.listener import server_config

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def models(spectra_run, sparsemax_run):
    return load_models([spectra_run, sparsemax_run])


def local_client(app, **options):
    """A client that addresses the application as localhost."""
    return TestClient(app, base_url="http://localhost", **options)


@pytest.fixture(scope="session")
def client(models):
    quotas = Quotas(items=8, characters=1000)
    with local_client(create_app(models, quotas=quotas, examples=["A first one.", "A second one."])) as client:
        yield client


@pytest.fixture(scope="session")
def pair_client(pair_run):
    with local_client(create_app(load_models([pair_run]))) as client:
        yield client


@contextmanager
def listening(app, seconds=30, grace=10, port=0):
    """Serve the application at a port, by default a free one, in another thread of this process."""
    server = uvicorn.Server(server_config(app, request_timeout=seconds, grace_seconds=grace))
    with socket.create_server(("127.0.0.1", port)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        deadline = time.monotonic() + 60
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
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


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    if CHROMIUM is None:
        pytest.skip("the browser tests need Chromium (apt-get install chromium)")
    playwright.expect.set_options(timeout=20_000)  # the machine may be busy
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page without console messages, and without requests to other servers."""
    context = browser.new_context(viewport={"width": 1100, "height": 900}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(20_000)
    messages, hosts = [], set()
    page.on("console", lambda message: messages.append(message.text) if message.type in ("error", "warning") else 0)
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]) if "://" in request.url else 0)
    yield page
    assert messages == []
    assert all(host.startswith("127.0.0.1:") for host in hosts)
    context.close()
