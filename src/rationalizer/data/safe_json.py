"""Parse JSON from untrusted files: every problem is a DataError."""

from __future__ import annotations

import json
from typing import Any

from rationalizer.text.errors import DataError


def parse_json(text: str | bytes, remedy: str = "") -> Any:
    """As `json.loads`, but raise DataError with this remedy."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        problem = f"not valid JSON ({error.msg}, {line}column {error.colno})"
        raise DataError(problem, remedy) from None
    except RecursionError:
        raise DataError("lists or objects are nested too deeply to be read", "write them flat") from None
    except UnicodeDecodeError as error:
        raise DataError(f"byte 0x{error.object[error.start]:02x} is not UTF-8", "save the file as UTF-8") from None
    except ValueError:  # Python's limit on the digits of an integer
        raise DataError("a number has thousands of digits", "write it as a float or as text") from None
