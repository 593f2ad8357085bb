"""Bounds on regular expressions: the size of a pattern once it is compiled, and the time of a search."""

import time

import pytest

from rationalizer.constraints import Constraint, ConstraintConflict, Must
from rationalizer.constraints.patterns import check_expansion, find_pattern
from rationalizer.models import configure
from rationalizer.text.errors import InputError
from rationalizer.work_limits import RequestTime

SLOW = "(?:a|a)+$"
SLOW_TEXT = "a" * 60 + "b"


@pytest.mark.parametrize(
    "pattern",
    [
        r"[\w-]+@(?<!x)\b\d{1,4}",
        r"(?:\w+\s+){0,50}stars",
        r"(?i)\p{L}{200}",
        "a{5000}",
        "[[]{3}|[]a]{3}|[^]]{3}|[[:alpha:])]{3}",
        r"\({999}[(]{999}",
        "(?P<x>a)(?P=x)",
        "(?-x:a)",
        "(" * 49 + "a" + ")" * 49,
        "(?:good){e<=1}",
    ],
)
def test_ordinary_patterns(pattern):
    assert Must(pattern=pattern).pattern == pattern


@pytest.mark.parametrize(
    ("pattern", "keyword"),
    [
        ("(?:(?:(?:a){300}){300}){300}", "written out"),
        ("(?:(?:a{300,}){300}){0,300}", "written out"),
        ("a{10001}", "written out"),
        ("a{300}{300}", "written out"),
        ("(?:a(?#no parenthesis: \\)){99}b){999}", "written out"),
        ("(?:a{99}[)]a{99}){99}", "written out"),
        ("(?:a{99}[[:alpha:])]a{99}){99}", "written out"),
        (r"(?:a{99}\)a{99}){99}", "written out"),
        ("(" * 50 + "a" + ")" * 50, "nested"),
        ("(" * 490 + "a" + ")" * 490, "nested"),
        ("(?R)", "itself"),
        ("(a)(?1)", "itself"),
        ("(a)(?-1)", "itself"),
        ("(?P<n>a)(?&n)", "itself"),
        ("(?P<n>a)(?P>n)", "itself"),
        ("(?x)a # )", "flag x"),
        ("(?ix:a)", "flag x"),
        ("(?V1)[a--]]", "V1"),
        ("[[:a:b:c:]]", "set"),
        (r"\L<names>", "named list"),
    ],
)
def test_refused_patterns(pattern, keyword):
    started = time.monotonic()
    with pytest.raises(InputError, match=keyword):
        Constraint.parse(f"must=pattern:{pattern}")
    with pytest.raises(ValueError, match=keyword):
        Constraint.parse({"name": "ends", "pattern": pattern})
    assert time.monotonic() - started < 1


def test_stored_config_with_a_refused_pattern():
    config = configure("spectra", {})
    stored = {**config.to_json(), "constraints": [{"name": "must", "pattern": "(?:(?:(?:a){300}){300}){300}"}]}
    with pytest.raises(ValueError, match="written out"):
        type(config).from_json(stored)


def test_size_is_that_of_the_pattern_written_out():
    check_expansion("(?:" + "a" * 996 + "){10}")
    with pytest.raises(InputError, match="10000"):
        check_expansion("(?:" + "a" * 997 + "){10}")


def test_search_has_a_time_limit():
    with pytest.raises(ConstraintConflict, match="too long"):
        find_pattern(SLOW, SLOW_TEXT)


def test_several_searches_share_a_time_limit():
    started = time.process_time()  # other programs may use the processor, too
    with RequestTime(searches=0.2).use():
        assert find_pattern("a+", SLOW_TEXT) == [(0, 60)]
        for _ in range(10):
            with pytest.raises(ConstraintConflict, match="too long"):
                find_pattern(SLOW, SLOW_TEXT)
        with pytest.raises(ConstraintConflict, match="too long"):
            find_pattern("a+", SLOW_TEXT)
    assert time.process_time() - started < 1
    assert find_pattern("a+", SLOW_TEXT) == [(0, 60)]
