"""Explanations made by hand: the drawings must show exactly these."""

import xml.etree.ElementTree as ElementTree

import numpy as np

from rationalizer.drawing import Explanation, PairExplanation, SelectedWord
from rationalizer.text import split_words as tokenize

SVG = "{http://www.w3.org/2000/svg}"
SENTIMENT = {"negative": 0.07, "positive": 0.93}
HOSTILE = (
    "<script>alert(\"x\")</script> ]]> & 'quoted' \x00\x1b[31mred\x07\x9b \ud800 \ufffe end\r\nnew\ttab "
    "<!-- --> <![CDATA[ <img src=x onerror=alert(1)>"
)
RIGHT_TO_LEFT = "הסרט היה מקסים, מצחיק ומרגש! השחקנים (במיוחד John Smith) היו נהדרים ב-2019."
EMOJI = "Loved it 👨‍👩‍👧‍👦 so 🇫🇷🇩🇪 👍🏽! Cafe\u0301 ❤️ नमस्ते 这部电影，很好。"


def explain(text, selected, *, weights=None, annotation=None, label="positive", probabilities=SENTIMENT, words=()):
    """`selected` and `annotation` are numbers of tokens; `weights` the factors of the selected ones."""
    tokens, offsets = tokenize(text)
    mask = tuple(k in selected for k in range(len(tokens)))
    given = dict(zip(selected, weights or [1.0] * len(selected), strict=True))
    spans = []
    for k, (start, end) in enumerate(offsets):
        if mask[k] and k and mask[k - 1]:
            spans[-1] = (spans[-1][0], end)
        elif mask[k]:
            spans.append((start, end))
    return Explanation(
        text=text,
        label=label,
        probabilities=probabilities,
        tokens=tokens,
        offsets=offsets,
        mask=tuple(given.get(k, 0.0) for k in range(len(tokens))),
        selected=mask,
        spans=tuple(spans),
        words=words,
        annotation=None if annotation is None else tuple(k in annotation for k in range(len(tokens))),
    )


def align(premise, hypothesis, weights, *, annotation=None, label="entailment"):
    """`weights` by (premise word, hypothesis word)."""
    (words, offsets), (others, places) = tokenize(premise), tokenize(hypothesis)
    matrix = np.zeros((len(words), len(others)), dtype=np.float32)
    for pair, weight in weights.items():
        matrix[pair] = weight
    return PairExplanation(
        premise=premise,
        hypothesis=hypothesis,
        label=label,
        probabilities={"entailment": 0.8, "neutral": 0.15, "contradiction": 0.05},
        premise_tokens=words,
        premise_offsets=offsets,
        hypothesis_tokens=others,
        hypothesis_offsets=places,
        alignment=matrix,
        pairs=tuple(weights),
        annotation=annotation,
    )


GUITAR = align(
    "A man in a blue shirt is playing a guitar on stage",
    "A person is playing an instrument in public",
    {(1, 1): 1.0, (7, 3): 0.8, (9, 5): 0.6, (11, 7): 0.3},
    annotation=((1, 1), (7, 3), (9, 5), (10, 6)),
)
LONG = align(
    "The old man with the grey beard and the broken umbrella was seen yesterday evening by several neighbours as he "
    "walked slowly down the street towards the harbour",
    "A man walked to the harbour and nobody noticed him because it was already much too dark to see anything at all",
    {(2, 1): 1.0, (20, 2): 0.9, (27, 5): 0.7},
)


def texts_of(svg):
    """What a reader (or a search) finds in a picture: the content of every text element."""
    root = ElementTree.fromstring(svg)
    return ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


FILM = "A warm, funny film: never dull."  # A warm , funny film : never dull .
_NEVER = SelectedWord("never", 6, 20, 25, 2.0, "for positive", {"negative": -2.0, "positive": 2.0})
_DULL = SelectedWord("dull", 7, 26, 30, -1.0, "for negative", {"negative": 1.0, "positive": -1.0})
_WARM = SelectedWord("warm", 1, 2, 6, 0.001, "no effect", {"negative": -0.001, "positive": 0.001})
WEIGHED = explain(FILM, [1, 6, 7], words=(_NEVER, _DULL, _WARM))
