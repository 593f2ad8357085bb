import pytest

from tests.nn.tiny_transformers import write_encoder


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    """The folder of a tiny BERT."""
    return write_encoder(tmp_path_factory.mktemp("encoders") / "bert")
