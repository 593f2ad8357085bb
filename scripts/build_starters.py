"""Train the starter models of the package, score them on held-out data and write their cards.

    python scripts/build_starters.py sentiment nli align --data data
    python scripts/build_starters.py nli --data data --device cuda --runs runs/starters
    python scripts/build_starters.py sentiment nli align --renew    # rewrite in the current format, without data

`--data` contains the folders `sst`, `imdb`, `snli`, `word_alignment` and `yelp_hat` (evaluation only), with one Parquet
file per split.
The models contain single words of the training texts (the vocabulary), but no texts. Runs are saved in `--runs`;
finished runs are not trained again. The scores are those of the compact model that is shipped.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

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
from rationalizer.text import split_words

SEED = 0
SCORED = 5_000  # of the 25,000 reviews in IMDB's test split
Links = list[tuple[int, int]]


class Split(NamedTuple):
    """Texts, or pairs of texts, with labels and, for alignments, the links that people drew."""

    texts: list[Any]
    labels: list[str]
    links: list[Links] | None = None


def rows(path: Path) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = read_table(path).to_pylist()
    return records


def join_tokens(tokens: list[str]) -> str:
    """Return a tokenized sentence in ordinary spelling."""
    text = " ".join(map(as_written, tokens))
    text = re.sub(r" (n't|'(?:s|re|ve|m|ll|d)\b|[,.;:!?)%])", r"\1", text, flags=re.IGNORECASE)
    return text.replace("( ", "(")


def as_written(token: str) -> str:
    """Return a token of a treebank as it is written in a text."""
    return _SPELLINGS.get(token.upper(), token.replace("\\/", "/"))


_SPELLINGS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "``": '"', "''": '"'}


# -- sentiment: sentences and phrases of SST, reviews of IMDB ---------------------------------------------------------

POLARITY = ("negative", "positive")
REVIEWS = 5_000  # whole IMDB reviews in the training set
MAX_WORDS = 200  # maximum length of an IMDB review in the training set
ENDINGS = 5_000  # other IMDB reviews, represented by their last sentences, which state the reviewer's conclusion
PHRASES = 16_000  # phrases from SST's trees
HELD_OUT = 1_000  # IMDB reviews not used for training; the first half is part of the dev set, which selects the epoch


def sst(path: Path) -> Split:
    labelled = [row for row in rows(path) if row["label"] >= 0]
    return Split([join_tokens(row["tokens"]) for row in labelled], [POLARITY[row["label"]] for row in labelled])


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
    return Split(drawn, [polarity[text] for text in drawn])


def imdb(path: Path) -> Split:
    shuffled = rows(path)
    random.Random(SEED).shuffle(shuffled)
    texts = [re.sub(r"\s*(?:<br */?>\s*)+", " ", row["text"]) for row in shuffled]
    return Split(texts, [POLARITY[row["label"]] for row in shuffled])


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
    texts, labels, _ = imdb(data / "imdb" / "train.parquet")
    rest = list(zip(texts[HELD_OUT:], labels[HELD_OUT:], strict=True))
    short = [(text, label) for text, label in rest if len(text.split()) <= MAX_WORDS]
    whole, ends = short[:REVIEWS], short[REVIEWS : REVIEWS + ENDINGS]
    sentences, parts = sst(data / "sst" / "train.parquet"), phrases(data / "sst" / "train.parquet", PHRASES)
    dev = sst(data / "sst" / "dev.parquet")
    test_texts, test_labels, _ = imdb(data / "imdb" / "test.parquet")
    yelp = rows(data / "yelp_hat" / "dev.parquet")
    return Recipe(
        method="spectra",
        settings={
            **{"epochs": 5, "min_epochs": 5, "patience": 5, "batch_size": 64, "decay": True, "warmup": 0.02},
            **{"min_count": 5, "hidden": 64, "seed": SEED, "keep_examples": 0},
        },
        train=Split(
            [*sentences.texts, *parts.texts, *(text for text, _ in whole), *(ending(text) for text, _ in ends)],
            [*sentences.labels, *parts.labels, *(label for _, label in whole + ends)],
        ),
        dev=Split(dev.texts + texts[: HELD_OUT // 2], dev.labels + labels[: HELD_OUT // 2]),
        tests={
            "SST test, 1,821 sentences": sst(data / "sst" / "test.parquet"),
            f"IMDB test, {SCORED:,} reviews": Split(test_texts[:SCORED], test_labels[:SCORED]),
            "Yelp-HAT, 1,000 reviews of places": Split(
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
                    "use": f"training ({len(sentences.texts):,} sentences, {PHRASES:,} phrases)",
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
        train=Split(pairs[:-DEV_PAIRS], labels[:-DEV_PAIRS]),
        dev=Split(pairs[-DEV_PAIRS:], labels[-DEV_PAIRS:]),
        tests={f"SNLI dev, {len(held_out):,} pairs": Split(dev_pairs, [RELATIONS[row["label"]] for row in held_out])},
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


# -- align: word alignments of paraphrases and of texts with their hypotheses ------------------------------------------

ALIGNED = {"msr_rte": "MSR-RTE", "edinburgh": "Edinburgh++", "mtref": "MultiMWA-MTRef", "wiki": "MultiMWA-Wiki"}
TO_SELECT = 12  # one in so many training pairs is in the dev set, which selects the epoch


def words_of_tokens(tokens: list[str], words: Sequence[str]) -> list[list[int]]:
    """For each token, the indices of the words that share characters with it; both cover the same text."""
    written = [as_written(token) for token in tokens]
    assert "".join(written) == "".join(words), (tokens, words)
    of_characters = [[k for k, part in enumerate(parts) for _ in part] for parts in (written, words)]
    found: list[list[int]] = [[] for _ in tokens]
    for token, word in sorted(set(zip(*of_characters, strict=True))):
        found[token].append(word)
    return found


def tokenized(path: Path) -> Split:
    """Return pairs of token lists, with the sure links between them."""
    found = rows(path)
    pairs = [(row["source_tokens"], row["target_tokens"]) for row in found]
    return Split(pairs, ["pair"] * len(pairs), [[(i, j) for i, j in row["sure"]] for row in found])


def alignments(path: Path) -> Split:
    """Return pairs in ordinary spelling, with the sure links between their words."""
    pairs, links = [], []
    for row in rows(path):
        sides = [row["source_tokens"], row["target_tokens"]]
        pair = tuple(map(join_tokens, sides))
        first, second = (
            words_of_tokens(tokens, split_words(text)[0]) for tokens, text in zip(sides, pair, strict=True)
        )
        pairs.append(pair)
        links.append(sorted({(i, j) for a, b in row["sure"] for i in first[a] for j in second[b]}))
    return Split(pairs, ["pair"] * len(pairs), links)


def align(data: Path) -> Recipe:
    folder = data / "word_alignment"
    train, dev = Split([], [], []), Split([], [], [])
    for name in ALIGNED:
        found = list(zip(*alignments(folder / f"{name}_train.parquet"), strict=True))
        random.Random(SEED).shuffle(found)
        for part, chosen in ((dev, found[: len(found) // TO_SELECT]), (train, found[len(found) // TO_SELECT :])):
            for column, values in zip(part, zip(*chosen, strict=True), strict=True):
                column.extend(values)
    scored = {f"{name} dev": tokenized(folder / f"{key}_dev.parquet") for key, name in ALIGNED.items()}
    return Recipe(
        method="at-most-one",
        settings={
            **{"annotation_weight": 1.0, "punctuation": "count", "epochs": 12, "batch_size": 16, "dropout": 0.3},
            **{"averaging": 0.99, "min_count": 3, "hidden": 64, "seed": SEED, "keep_examples": 0},
        },
        train=train,
        dev=dev,
        tests={f"{name}, {len(split.texts)} pairs": split for name, split in scored.items()},
        facts=Facts(
            about="Aligns the words of two English sentences that say the same or nearly the same: each word with at "
            "most one of the other sentence. It predicts no label.",
            data=(
                {
                    "name": "MSR-RTE (Brockett, 2007), Edinburgh++ (Cohn et al., 2008), MultiMWA (Lan et al., 2021)",
                    "use": f"training ({len(train.texts):,} pairs with the links that people drew)",
                    "terms": "published for research",
                },
                {
                    "name": "GloVe 6B",
                    "use": "word vectors (those of the package)",
                    "terms": "public domain (PDDL 1.0)",
                },
            ),
            limits=(
                "People also align phrases, several words with several; this model aligns a word with one word.",
                "It was trained on news, encyclopedia articles and translations, and expects related sentences. Of "
                "unrelated ones it aligns words that are merely similar.",
            ),
        ),
        examples=[
            ("The committee rejected the proposal on Monday.", "On Monday, the plan was turned down by the committee."),
            ("She bought a used car for her daughter.", "The mother purchased a second-hand car for her child."),
            ("The storm left thousands of homes without power.", "Thousands of houses lost electricity in the storm."),
            ("Scientists found water ice near the moon's south pole.", "Ice was discovered at the lunar south pole."),
        ],
    )


# -- all --------------------------------------------------------------------------------------------------------------

RECIPES: dict[str, Callable[[Path], Recipe]] = {"sentiment": sentiment, "nli": nli, "align": align}


SCORES = ("accuracy", "macro_f1", "size", "alignments", "alignment_precision", "alignment_recall", "alignment_f1")


def score(model: Rationalizer, split: Split) -> dict[str, float]:
    trained = model.trained
    options = {"pairs": model.pairs, "rule": trained.encoder.rule}
    examples = make_examples(split.texts, split.labels, split.links, trained.classes, **options)
    scores = evaluate(trained, examples).as_dict()
    return {name: round(scores[name], 4) for name in SCORES if scores.get(name) is not None}


def build(name: str, data: Path, runs: Path, out: Path, device: str) -> None:
    recipe = RECIPES[name](data)
    print(f"{name}: {len(recipe.train.texts):,} texts, {recipe.method}, {recipe.settings}", flush=True)
    model = Rationalizer(recipe.method, **recipe.settings)
    texts, labels, links = recipe.train
    model.fit(texts, labels, annotations=links, dev=recipe.dev, run_dir=runs / name, resume=True, device=device)
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
