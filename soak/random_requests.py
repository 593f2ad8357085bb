"""Random requests, whose constraints and other fields are well-typed or ill-typed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

TEXTS = (
    "We found truly helpful lovely care. Expect barely musty regrettable comfort.",
    "a",
    "a" * 60 + "b",
    "a" * 22 + "b",
    "a " * 60,
    "So? No!",
)
NAMES = {
    "spans": ("most",),
    "span-length": ("at_least", "at_most"),
    "whole-sentences": (),
    "per-sentence": ("most",),
    "must": ("words", "pattern", "stopwords", "punctuation", "characters", "mask"),
    "never": ("words", "pattern", "stopwords", "punctuation", "characters", "mask"),
    "ends": ("pattern", "characters"),
    "must-align": ("words", "equal", "stopwords", "links", "matrix"),
    "never-align": ("words", "equal", "stopwords", "links", "matrix"),
    "monotone": (),
    "exactly-k": ("k",),
}
PAIR_NAMES = ("must-align", "never-align", "monotone", "exactly-k")
NUMBERS = (0, 1, 2, 3, 10**6, 10**30, -1, 1.0, 2.5)
WORDS = ("a", "lovely", "Care", "", "two words", "\ud800", "é", "a" * 5000)
PATTERNS = (
    "a",
    r"\w+ly",
    "(",
    "(?R)",
    "(?:a|a)+$",
    "(?:(?:(?:a){300}){300}){300}",
    "(" * 490 + ")" * 490,
    "a" * 1001,
    "\ud800",
    "(?:a*)*b",
    "$",
    "[[:alpha:]",
    "(?x)a # )",
)
LISTS = (
    ["a"],
    ["lovely", "care"],
    [],
    [["a", "b"]],
    [["a", "a"], ["a", "b"]],
    [["a"]],
    [{"a": 1}],
    [{"a": 1, "b": 2}],
    [None],
    [1],
    [[0, 0]],
    [[0, 1], [1, 10**30]],
    [["a", "a"]] * 20_000,
    ["a"] * 20_000,
)
TEXT_FORMS = ("spans=1", "span-length=-3", "never=stopwords", "must-align=equal", f"spans={10**30}", "exactly-k=1")
OTHERS = (None, True, False, "", "a", {}, {"a": 1}, "\ud800")
BY_SETTING: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("most", "at_least", "at_most", "k"), NUMBERS),
    **dict.fromkeys(("words", "characters", "mask", "links", "matrix"), LISTS),
    **dict.fromkeys(("stopwords", "punctuation", "equal"), (True, False)),
    "pattern": PATTERNS,
}
BUDGETS = (
    "enough",
    "enough, at most 100%, 100% certain",
    "enough, at most 9%, 0% certain",
    "18% on average, 8% to 35%",
)
# Values of the fields of a request, of the right type.
FIELDS: dict[str, tuple[Any, ...]] = {
    "text": TEXTS,
    "texts": (["a"], list(TEXTS), []),
    "premise": TEXTS,
    "hypothesis": TEXTS,
    "pairs": ([["a", "b"]], [["a", "b"]] * 5, []),
    "budget": (None, "50%", "100%", 1, 0.5, 10**30, *BUDGETS),
    "model": (None, "model", "sentiment"),
    "html": (True, False),
    "reasons": (True, False, None),
    "record": (True, False),
    "other": (None, 1),
}
ANYTHING = (*NUMBERS, *WORDS, *PATTERNS, *LISTS, *OTHERS)


def random_request(random: np.random.Generator, *, pairs: bool) -> bytes:
    """A JSON request; about half of its settings have values of the right type."""

    own_names = [name for name in NAMES if (name in PAIR_NAMES) == pairs]

    def pick(options: Any) -> Any:
        return options[int(random.integers(len(options)))]

    def setting(name: str) -> Any:
        if random.random() < 0.02:
            return _nested(pick((5, 100, 900)))
        return pick(BY_SETTING.get(name, OTHERS) if random.random() < 0.7 else ANYTHING)

    def constraint() -> Any:
        if random.random() < 0.05:
            return pick(ANYTHING)
        if random.random() < 0.1:
            return pick(TEXT_FORMS)
        name = pick(own_names) if random.random() < 0.9 else pick([*NAMES, *WORDS])
        settings = [key for key in NAMES.get(name, ()) if random.random() < 0.4]
        settings += ["other"] if random.random() < 0.02 else []
        if random.random() < 0.4:
            return f"{name}={','.join(f'{key}:{setting(key)}' for key in settings)}"
        return {"name": name, **{key: setting(key) for key in settings}}

    constraints = [constraint() for _ in range(int(random.integers(1, 3)))]
    texts = {"pairs": [[pick(TEXTS), pick(TEXTS)]]} if pairs else {"texts": [pick(TEXTS), pick(TEXTS)]}
    body = {**texts, "constraints": constraints if random.random() < 0.95 else pick(ANYTHING)}
    body["budget"] = pick(FIELDS["budget"])
    while random.random() < 0.3:
        name = pick([*FIELDS, *body])
        if random.random() < 0.3:
            body.pop(name, None)
        else:
            body[name] = pick(FIELDS.get(name, ()) or ANYTHING) if random.random() < 0.5 else pick(ANYTHING)
    return json.dumps(body if random.random() < 0.98 else pick(ANYTHING)).encode()


def _nested(depth: int) -> Any:
    value: Any = "a"
    for _ in range(depth):
        value = [value]
    return value
