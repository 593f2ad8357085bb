import pyarrow as pa
import pytest

from rationalizer import Rationalizer
from rationalizer.data import generated_reviews

ROWS = 120


@pytest.fixture(scope="session")
def small(spectra_run):
    return Rationalizer.load(spectra_run)


@pytest.fixture(scope="session")
def table():
    """A table whose text column has another name, with Parquet-only column types and rows without a text."""
    texts = [example.text for example in generated_reviews(train=1, dev=1, test=ROWS).test]
    texts[3], texts[4] = None, "  "
    columns = {"id": range(ROWS), "review": texts, "when": pa.array(range(ROWS), pa.timestamp("ns"))}
    return pa.table({**columns, "tags": [["a", None]] * ROWS, "predicted": ["before"] * ROWS})
