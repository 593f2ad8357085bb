import pytest
import torch

THREADED = ("ops", "graph")  # the kernels' own tests keep their threads


@pytest.fixture(autouse=True, scope="module")
def one_thread(request):
    """Models in tests are small: threads cost more than they bring, above all where tests run side by side."""
    threads = torch.get_num_threads()
    if request.path.parent.name not in THREADED:
        torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
