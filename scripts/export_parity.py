"""Whether the starter models give the same answers with PyTorch, with NumPy and with ONNX Runtime.

    python scripts/export_parity.py --texts 2000
    python scripts/export_parity.py --texts 200 --write cases.json   # also the expected answers, for other runtimes

Texts of many kinds (short, long, emoji, addresses, other scripts, unknown words, blank) under random budgets and
constraints. Printed are the cases in which the selected words or the message of an error differ, and the largest
difference of a probability.

A case in the file has `model`, `texts` (one, or a premise and a hypothesis), `budget` and `constraints` (null: the
model's own), and `expected`: `tokens` (a list per text), `selected` (token numbers, or pairs of them), `label` and
`probabilities` in the order of the classes; or `error`.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from rationalizer.drawing import PairExplanation
from rationalizer.export import ExportedModel, export_model
from rationalizer.text import BUNDLED, load_vectors

MODELS = ("sentiment", "nli", "sentiment", "align")  # of every four cases; every second one is a pair
BUDGETS = (None, None, "1", "3", "1%", "5%", "20%", "50%", "100%")
TEXT_CONSTRAINTS = (
    None,
    None,
    [],
    ["spans=1"],
    ["spans=2"],
    ["span-length=2-4"],
    ["span-length=3-", "spans=2"],
    ["whole-sentences"],
    ["per-sentence=1"],
    ["per-sentence=2", "spans=3", "span-length=-2"],
    ["never=stopwords"],
    ["never=punctuation,words:film,good"],
    ["must=words:not,never,good"],
    ["must=pattern:the \\w+", "spans=2"],
    ["ends=pattern:(not|very|a) \\w+"],
    ["ends=pattern:\\w+ film", "never=stopwords", "spans=2"],
)
PAIR_CONSTRAINTS = (
    None,
    None,
    [],
    ["monotone"],
    ["exactly-k=1"],
    ["exactly-k=3", "monotone"],
    ["must-align=equal"],
    ["must-align=equal,stopwords", "monotone"],
    ["never-align=stopwords"],
    ["never-align=equal", "exactly-k=2"],
)
SPECIAL = (
    "😀 great 👍🏽 but 👨‍👩‍👧 hated it ☹️ 🇫🇷",
    "See https://example.org/a?b=(c)&d=1, www.test.com/x#y or mail me@site.co.uk — it's gooood!!!",
    "Отличный фильм, но очень длинный.",
    "这部电影很好看，但是太长了。 映画はとても良かったです。",
    "فيلم رائع ولكنه طويل جدا",
    "ภาพยนตร์เรื่องนี้ดีมาก but slow",
    "Café-bar naïve résumé déjà-vu; œuvre, straße, İstanbul ﬁne ½ №5",
    "xqzzv blorptang wibblefrotz",
    "... !!! ??? --",
    "<br />Wasn't   it\tgreat?<br>I wouldn't've gone; y'all'd've. Dr. Smith's 10.50$ vs. 3,000km, 24/7, C++ &amp; AT&T",
    "good good good good good good good good",
    "NOT GOOD AT ALL!!! :( :-) <3 ^_^ 8-)",
    "It's \u201cfine\u201d \u2014 \u2018really\u2019 (or [not]) \u2026",
    "definately recieve beleive wonderfull moviee",
    "a",
    "The",
    " ",
    "\u00ad\u200b film",
    "1",
    "One\n\ntwo. three? Four! 'Five.' \"Six.\" seven... Eight",
)


def make_cases(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return cases without `expected`, half of them texts and half pairs; the same for the same seed."""
    random_ = random.Random(seed)
    words = load_vectors(BUNDLED, limit=6000).words
    cases: list[dict[str, Any]] = []
    while len(cases) < count:
        pairs = len(cases) % 2 == 1
        texts = [_make_text(random_, words, pairs) for _ in range(2 if pairs else 1)]
        if pairs and random_.random() < 0.5:  # a hypothesis that shares words with the premise
            own = texts[0].split()
            texts[1] = " ".join(random_.choice([word, word, random_.choice(words)]) for word in own[:12]) or "a"
        constraints = random_.choice(PAIR_CONSTRAINTS if pairs else TEXT_CONSTRAINTS)
        budget = None if pairs else random_.choice(BUDGETS)
        model = MODELS[len(cases) % len(MODELS)]
        cases.append({"model": model, "texts": texts, "budget": budget, "constraints": constraints})
    return cases


def _make_text(random_: random.Random, words: tuple[str, ...], short: bool) -> str:
    kind = random_.random()
    if kind < 0.2:
        return random_.choice(SPECIAL)
    longest = 30 if short else 600 if kind > 0.97 else 150 if kind > 0.85 else 25
    length = random_.randint(1, longest)
    chosen = [random_.choice(words[: random_.choice((100, 1000, 6000))]) for _ in range(length)]
    for k, word in enumerate(chosen):
        draw = random_.random()
        if draw < 0.05:
            chosen[k] = random_.choice(SPECIAL[:10])
        elif draw < 0.15:
            chosen[k] = random_.choice((word.title(), word.upper(), f"{word}n't", f"{word}'s", word[:3] + word[2:]))
        elif draw < 0.3:
            chosen[k] = word + random_.choice((".", ",", "!", "?", ".", " ("))
        elif draw < 0.35:
            chosen[k] = random_.choice(("not", "never", "good", "film", "very"))
    return " ".join(chosen)


def answer(model: Any, case: dict[str, Any]) -> dict[str, Any]:
    """Return the model's answer as in `expected`."""
    try:
        examples = model.examples([tuple(case["texts"]) if model.pairs else case["texts"][0]])
        (found,) = model.explain_examples(examples, budget=case["budget"], constraints=case["constraints"])
    except ValueError as error:
        return {"error": str(error)}
    if isinstance(found, PairExplanation):
        tokens, selected = [found.premise_tokens, found.hypothesis_tokens], [list(pair) for pair in found.pairs]
    else:
        tokens, selected = [found.tokens], [k for k, chosen in enumerate(found.selected) if chosen]
    return {
        "tokens": [list(side) for side in tokens],
        "selected": selected,
        "label": found.label,
        "probabilities": list((found.probabilities or {}).values()),
    }


def compare(expected: dict[str, Any], actual: dict[str, Any]) -> float | None:
    """Return the largest difference of a probability; None if anything else differs."""
    if "error" in expected or "error" in actual:
        return 0.0 if expected == actual else None
    if any(expected[key] != actual[key] for key in ("tokens", "selected", "label")):
        return None
    return float(np.abs(np.subtract(expected["probabilities"], actual["probabilities"])).max(initial=0.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="write the cases with PyTorch's answers to this JSON file")
    options = parser.parse_args()
    from rationalizer import Rationalizer

    cases = make_cases(options.texts, options.seed)
    names = sorted(set(MODELS))
    with tempfile.TemporaryDirectory() as folder:
        runtimes: dict[str, dict[str, Any]] = {
            "pytorch": {name: Rationalizer.load(name, device="cpu") for name in names},
            "numpy": {name: ExportedModel.load(name) for name in names},
            "onnx": {name: ExportedModel.load(export_model(name, Path(folder) / name)) for name in names},
        }
        for runtime, models in runtimes.items():
            started, differing, largest = time.perf_counter(), Counter[str](), 0.0
            for number, case in enumerate(cases):
                found = answer(models[case["model"]], case)
                difference = compare(case.setdefault("expected", found), found)
                if difference is None:
                    differing[case["model"]] += 1
                    print(f"{runtime}: case {number} differs: {case} got {found}")
                largest = max(largest, difference or 0.0)
            seconds = time.perf_counter() - started
            counts = f"{len(cases)} cases, {sum(differing.values())} differ"
            print(f"{runtime}: {counts}, probabilities by up to {largest:.1e}, {seconds:.1f} s")
    errors = sum("error" in case["expected"] for case in cases)
    print(f"{errors} of {len(cases)} cases are errors")
    if options.write is not None:
        options.write.write_text(json.dumps({"cases": cases}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
