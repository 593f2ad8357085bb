import pytest

from tests.nn.encoders import write_encoder


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    """The folder of a tiny BERT."""
    return write_encoder(tmp_path_factory.mktemp("encoders") / "bert")
