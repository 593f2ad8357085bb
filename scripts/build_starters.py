"""Train the starter models of the package, score them on held-out data and write their cards.

    python scripts/build_starters.py sentiment nli --data data
    python scripts/build_starters.py nli --data data --device cuda --runs runs/starters
    python scripts/build_starters.py sentiment nli --renew    # rewrite in the current format, without data

`--data` contains the folders `sst`, `imdb`, `snli` and `yelp_hat` (evaluation only), with one Parquet file per split.
The models contain single words of the training texts (the vocabulary), but no texts. Runs are saved in `--runs`;
finished runs are not trained again. The scores are those of the compact model that is shipped.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from pyarrow.parquet import read_table

from rationalizer import Rationalizer
from rationalizer.data import make_examples
from rationalizer.hub import STARTERS, Facts, write_card
from rationalizer.hub.starters import FACTS_FILE
from rationalizer.inference import evaluate
from rationalizer.models import TrainedModel
from rationalizer.models.atomic_files import read_record, read_tensors, write_record, write_tensors
from rationalizer.models.format_upgrade import FORMAT, find_file, upgrade_weights
from rationalizer.models.trained_model import CONFIG, ENCODER_FILE, HISTORY, MODEL

SEED = 0
SCORED = 5_000  # of the 25,000 reviews in IMDB's test split
Split = tuple[list[Any], list[str]]


def rows(path: Path) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = read_table(path).to_pylist()
    return records


def join_tokens(tokens: list[str]) -> str:
    """Return a tokenized sentence in ordinary spelling."""
    text = " ".join(_MARKS.get(token, token.replace("\\/", "/")) for token in tokens)
    text = re.sub(r" (n't|'(?:s|re|ve|m|ll|d)\b|[,.;:!?)%])", r"\1", text, flags=re.IGNORECASE)
    return text.replace("( ", "(")


_MARKS = {"-LRB-": "(", "-RRB-": ")", "``": '"', "''": '"'}


# -- sentiment: sentences and phrases of SST, reviews of IMDB ---------------------------------------------------------

POLARITY = ("negative", "positive")
REVIEWS = 5_000  # whole IMDB reviews in the training set
MAX_WORDS = 200  # maximum length of an IMDB review in the training set
ENDINGS = 5_000  # other IMDB reviews, represented by their last sentences, which state the reviewer's conclusion
PHRASES = 16_000  # phrases from SST's trees
HELD_OUT = 1_000  # IMDB reviews not used for training; the first half is part of the dev set, which selects the epoch


def sst(path: Path) -> Split:
    labelled = [row for row in rows(path) if row["label"] >= 0]
    return [join_tokens(row["tokens"]) for row in labelled], [POLARITY[row["label"]] for row in labelled]


def nodes(tree: str) -> list[tuple[int, list[str]]]:
    """Return the label (0 to 4) and tokens of every node of a tree, children first: the whole sentence is last."""
    finished: list[tuple[int, list[str]]] = []
    unfinished: list[tuple[int, list[str]]] = []
    for label, token, _ in re.findall(r"\((\d) ?|([^()\s]+)|(\))", tree):
        if label:
            unfinished.append((int(label), []))
        elif token:
            unfinished[-1][1].append(token)
        else:
            finished.append(unfinished.pop())
            if unfinished:
                unfinished[-1][1].extend(finished[-1][1])
    return finished


def phrases(path: Path, count: int) -> Split:
    """Draw `count` phrases of at least three tokens that are neither neutral nor whole sentences."""
    polarity: dict[str, str] = {}
    for row in rows(path):
        for label, tokens in nodes(row["tree"])[:-1]:
            if label != 2 and len(tokens) >= 3:
                polarity[join_tokens(tokens)] = POLARITY[label > 2]
    drawn = random.Random(SEED).sample(sorted(polarity), count)
    return drawn, [polarity[text] for text in drawn]


def imdb(path: Path) -> Split:
    shuffled = rows(path)
    random.Random(SEED).shuffle(shuffled)
    texts = [re.sub(r"\s*(?:<br */?>\s*)+", " ", row["text"]) for row in shuffled]
    return texts, [POLARITY[row["label"]] for row in shuffled]


def ending(text: str, words: int = 25) -> str:
    """Return the last sentences of a review, with at least `words` words together."""
    sentences = re.split(r"(?<=[.!?])\s+", text)
    last: list[str] = []
    while sentences and sum(len(sentence.split()) for sentence in last) < words:
        last.insert(0, sentences.pop())
    return " ".join(last)


@dataclass(frozen=True)
class Recipe:
    """The data and settings that a starter model is trained with, and the content of its card."""

    method: str
    settings: dict[str, Any]
    train: Split
    dev: Split  # selects the epoch
    tests: dict[str, Split]  # description -> examples
    facts: Facts
    examples: list[Any]


def sentiment(data: Path) -> Recipe:
    texts, labels = imdb(data / "imdb" / "train.parquet")
    held_out = texts[:HELD_OUT], labels[:HELD_OUT]
    rest = list(zip(texts[HELD_OUT:], labels[HELD_OUT:], strict=True))
    short = [(text, label) for text, label in rest if len(text.split()) <= MAX_WORDS]
    whole, ends = short[:REVIEWS], short[REVIEWS : REVIEWS + ENDINGS]
    sentences, parts = sst(data / "sst" / "train.parquet"), phrases(data / "sst" / "train.parquet", PHRASES)
    dev = sst(data / "sst" / "dev.parquet")
    test_texts, test_labels = imdb(data / "imdb" / "test.parquet")
    yelp = rows(data / "yelp_hat" / "dev.parquet")
    return Recipe(
        method="spectra",
        settings={
            **{"epochs": 5, "min_epochs": 5, "patience": 5, "batch_size": 64, "decay": True, "warmup": 0.02},
            **{"min_count": 5, "hidden": 64, "seed": SEED, "keep_examples": 0},
        },
        train=(
            [*sentences[0], *parts[0], *(text for text, _ in whole), *(ending(text) for text, _ in ends)],
            [*sentences[1], *parts[1], *(label for _, label in whole + ends)],
        ),
        dev=(dev[0] + held_out[0][: HELD_OUT // 2], dev[1] + held_out[1][: HELD_OUT // 2]),
        tests={
            "SST test, 1,821 sentences": sst(data / "sst" / "test.parquet"),
            f"IMDB test, {SCORED:,} reviews": (test_texts[:SCORED], test_labels[:SCORED]),
            "Yelp-HAT, 1,000 reviews of places": (
                [row["text"] for row in yelp],
                [POLARITY[int(row["label"])] for row in yelp],
            ),
        },
        facts=Facts(
            about="Predicts whether an English text is positive or negative, and shows the words the prediction is "
            "based on.",
            data=(
                {
                    "name": "Stanford Sentiment Treebank",
                    "use": f"training ({len(sentences[0]):,} sentences, {PHRASES:,} phrases)",
                    "terms": "published for research, without a licence",
                },
                {
                    "name": "IMDB reviews (Maas et al., 2011)",
                    "use": f"training ({REVIEWS:,} reviews of up to {MAX_WORDS} words, the ends of {ENDINGS:,} others)",
                    "terms": "published for research, without a licence",
                },
                {
                    "name": "GloVe 6B",
                    "use": "word vectors (those of the package)",
                    "terms": "public domain (PDDL 1.0)",
                },
                {"name": "Yelp-HAT", "use": "evaluation only", "terms": "terms of the Yelp dataset"},
            ),
            limits=(
                "It was trained on film reviews. Words that praise a film but criticize a machine (unpredictable, "
                "sharp, cold) are interpreted as in film reviews.",
                "There is no class for texts without an opinion; for those, the prediction is a guess, and half of the "
                "time one with 90% or more.",
                "In a short sentence it reads a single word. Negations (not bad, could not have been more helpful), "
                "irony, comparisons and reported opinions are often misclassified.",
                "It reflects the biases of its training texts and word vectors. Use it for experiments, not for "
                "decisions about people or what they write.",
            ),
        ),
        examples=[
            "The room was spotless but the staff was rude.",
            "A warm, funny film with a wonderful cast.",
            "The battery died after two days and nobody answered my emails.",
            "Slow service, cold food, and we still had to wait for the bill.",
            "The plot makes no sense, yet I enjoyed every minute of it.",
            "It works perfectly and arrived on time.",
        ],
    )


# -- nli: pairs of SNLI -----------------------------------------------------------------------------------------------

RELATIONS = ("entailment", "neutral", "contradiction")
DEV_PAIRS = 3_000  # the last pairs of the training split are the dev set, which selects the epoch


def nli(data: Path) -> Recipe:
    labelled = [row for row in rows(data / "snli" / "train.parquet") if row["label"] >= 0]
    pairs = [(row["premise"], row["hypothesis"]) for row in labelled]
    labels = [RELATIONS[row["label"]] for row in labelled]
    held_out = [row for row in rows(data / "snli" / "dev.parquet") if row["label"] >= 0]
    dev_pairs = [
        tuple(join_tokens(row[f"{side}_tokens"].split()) for side in ("premise", "hypothesis")) for row in held_out
    ]
    return Recipe(
        method="at-most-one",
        settings={
            **{"epochs": 2, "min_epochs": 2, "patience": 2, "batch_size": 128, "decay": True, "warmup": 0.05},
            **{"learning_rate": 2e-3, "min_count": 3, "hidden": 64, "seed": SEED, "keep_examples": 0},
        },
        train=(pairs[:-DEV_PAIRS], labels[:-DEV_PAIRS]),
        dev=(pairs[-DEV_PAIRS:], labels[-DEV_PAIRS:]),
        tests={f"SNLI dev, {len(held_out):,} pairs": (dev_pairs, [RELATIONS[row["label"]] for row in held_out])},
        facts=Facts(
            about="Predicts whether a second English sentence follows from the first, contradicts it, or neither, and "
            "shows which words it compared.",
            data=(
                {
                    "name": "SNLI (Bowman et al., 2015), reduced",
                    "use": f"training ({len(pairs) - DEV_PAIRS:,} of its 550,152 pairs)",
                    "terms": "CC BY-SA 4.0",
                },
                {
                    "name": "GloVe 6B",
                    "use": "word vectors (those of the package)",
                    "terms": "public domain (PDDL 1.0)",
                },
            ),
            limits=(
                "It was trained on captions of photographs. It is unreliable for sentences about anything other than "
                "visible actions.",
                "The hypotheses of SNLI partly reveal their label (sentences about sleeping people are mostly "
                "contradictions), and the model has learned this too.",
                "It predicts entailment too often if the sentences share words, even if the word order reverses the "
                "meaning.",
            ),
        ),
        examples=[
            ("A man plays a guitar on the street.", "A musician performs outside."),
            ("Two children are playing in the snow.", "The children are asleep in their beds."),
            ("A woman in a red coat waits for the bus.", "A woman is going to work."),
            ("A dog runs along the beach with a stick.", "An animal is outdoors."),
            ("The chef is cutting vegetables in the kitchen.", "Nobody is cooking."),
            ("Three friends drink coffee at a small table.", "Some people are sitting in a cafe."),
        ],
    )


# -- both --------------------------------------------------------------------------------------------------------------

RECIPES: dict[str, Callable[[Path], Recipe]] = {"sentiment": sentiment, "nli": nli}


def score(model: Rationalizer, split: Split) -> dict[str, float]:
    trained = model.trained
    texts, labels = split
    classes = trained.classes
    examples = make_examples(texts, labels, None, classes, pairs=model.pairs, rule=trained.encoder.rule)
    scores = evaluate(trained, examples).as_dict()
    return {name: round(scores[name], 4) for name in ("accuracy", "macro_f1", "size", "alignments") if name in scores}


def build(name: str, data: Path, runs: Path, out: Path, device: str) -> None:
    recipe = RECIPES[name](data)
    print(f"{name}: {len(recipe.train[0]):,} texts, {recipe.method}, {recipe.settings}", flush=True)
    model = Rationalizer(recipe.method, **recipe.settings)
    model.fit(*recipe.train, dev=recipe.dev, run_dir=runs / name, resume=True, device=device)
    with tempfile.TemporaryDirectory() as folder:
        model.trained.save(folder, compact=True)
        shipped = Rationalizer.load(folder)
    scores = []
    for description, split in recipe.tests.items():
        scores.append({"data": description, **score(shipped, split)})
        print(f"{name}: {scores[-1]}", flush=True)
    facts = replace(recipe.facts, scores=scores, language="en", settings=recipe.settings)
    out.mkdir(parents=True, exist_ok=True)
    model.trained.save(out, compact=True)
    described = {**asdict(facts), "examples": recipe.examples}
    (out / FACTS_FILE).write_text(json.dumps(described, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write_card(out, shipped.trained, name=name, example=shipped.explain(recipe.examples[:1])[0], facts=facts)
    size = sum(path.stat().st_size for path in out.iterdir())
    print(f"{out}: {size:,} bytes", flush=True)


def renew(folder: Path) -> None:
    """Write a starter's files in this version's format, without training.

    Settings that did not exist when the starter was trained get the value that reproduces its behaviour.
    """
    before = read_record(folder / CONFIG)["format"]
    write_record(folder / CONFIG, TrainedModel.load(folder).description.to_json())
    for name in (ENCODER_FILE, HISTORY):
        old = find_file(folder, name)
        write_record(folder / name, read_record(old))
        if old.name != name:
            old.unlink()
    write_tensors(folder / MODEL, *upgrade_weights(*read_tensors(folder / MODEL)))
    TrainedModel.load(folder)
    print(f"{folder}: format {before} is now {FORMAT}")


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", choices=RECIPES)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path, help="folder with the datasets: train, score and write the starters")
    what.add_argument("--renew", action="store_true", help="only rewrite the starters' files in the current format")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, mps or auto")
    parser.add_argument("--runs", type=Path, default=Path("runs/starters"))
    parser.add_argument("--out", type=Path, help="output folder (default: the starters in the package)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.names:
        if args.renew:
            renew(STARTERS[name])
            continue
        build(name, args.data, args.runs, args.out / name if args.out else STARTERS[name], args.device)


if __name__ == "__main__":
    main()
