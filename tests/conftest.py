import os
import signal

import hypothesis
import pytest
import torch

# Tests are never timed: a busy or slow machine must not fail them.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

# Models in tests are small: several threads make them slower, above all where tests run in parallel. Only the tests of
# kernels use all processors. `RATIONALIZER_TEST_THREADS=4 pytest` runs all tests with four threads.
THREADS = int(os.environ.get("RATIONALIZER_TEST_THREADS", 1))
THREADED = () if "RATIONALIZER_TEST_THREADS" in os.environ else ("ops", "graph")
os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))  # of the processes that tests start

# A shell that runs the tests in the background makes them, and all they start, deaf to Ctrl-C; tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)  # the tests also run without xdist
def pytest_xdist_auto_num_workers():
    """One more than there are cores: some tests wait, for a process that starts, for a disk, for what times out."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items):
    """What takes long begins first: begun last, it would leave all workers but one without work."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(autouse=True, scope="module")
def threads(request):
    """Set the number of PyTorch's threads for a module's tests."""
    before = torch.get_num_threads()
    if request.path.parent.name not in THREADED:
        torch.set_num_threads(THREADS)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def make_run(tmp_path_factory):
    """Trains a small model on an embedded corpus, in seconds, and gives its folder."""
    from rationalizer.data import DataSource, generated_pairs, generated_reviews
    from rationalizer.models import configure
    from rationalizer.training import run

    folder = tmp_path_factory.mktemp("runs")

    def make(method, name=None, **settings):
        of_pairs = method in ("budget", "at-most-one")
        corpus = (generated_pairs if of_pairs else generated_reviews)(train=240, dev=40, test=40)
        small = {
            "hidden": 8,
            "vector_size": 8,
            "embeddings": None,
            "epochs": 2,
            "min_epochs": 1,
            "batch_size": 16,
            "learning_rate": 0.02,
        }
        config = configure(method, {**small, **settings}, pairs=of_pairs)
        source = DataSource.resolve("pairs" if of_pairs else "reviews")
        threads = torch.get_num_threads()
        torch.set_num_threads(THREADS)
        try:
            run(corpus, config, folder / (name or method), source=source, progress=False)
        finally:
            torch.set_num_threads(threads)
        return folder / (name or method)

    return make


@pytest.fixture(scope="session")
def spectra_run(make_run):
    return make_run("spectra")


@pytest.fixture(scope="session")
def sparsemax_run(make_run):
    return make_run("sparsemax")


@pytest.fixture(scope="session")
def pair_run(make_run):
    return make_run("budget", "matching")
