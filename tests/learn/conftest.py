import pytest
import torch

from rationalizer.data import reviews


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    """The tensors are small: threads cost more than they bring, above all where tests run side by side."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def corpus():
    return reviews(train=96, dev=24, test=24)
