"""Plant a word that goes along with a class, and measure what takes it away again: corrections, or a `never` list.

    python scripts/spurious_word.py DATA/hatexplain --seeds 0 1 2

The word is put at a random place into 95% of the training and dev posts of one class of HateXplain and into 5% of the
others. A person who corrects 20 posts that contain the word is simulated in two ways: as somebody who marks what people
marked in the data and unmarks all else that the model selected, and as somebody who unmarks the word alone. The 800
scored posts do not contain the word, or all of them do. Prints one JSON object per model, then a table.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

import numpy as np
import torch

from rationalizer.cli.train import WARM_EPOCHS, learn_from_annotations
from rationalizer.constraints import Never
from rationalizer.data import load
from rationalizer.data.annotation_file import Annotations, mask_characters, text_row
from rationalizer.data.single_examples import make_example
from rationalizer.inference import evaluate, predict
from rationalizer.models import TrainedModel, configure
from rationalizer.text import Example, is_punctuation
from rationalizer.training.trainer import train

WORD, CLASS = "zentrix", "hatespeech"
SHOWN = ("accuracy, texts without it", "accuracy, texts with it", "called the class, texts with it", "word selected")


def plant(example: Example, place: int) -> Example:
    """The text with the word at this place, not annotated."""
    tokens = [*example.tokens[:place], WORD, *example.tokens[place:]]
    mask = example.annotation
    marked = None if mask is None else [*mask[:place], False, *mask[place:]]
    return make_example(tokens=tokens, mask=marked, label=example.label, rule="spaces")


def correct(first: TrainedModel, examples: Sequence[Example], *, only_word: bool) -> list[Example]:
    """The posts with what a person marks in them, and with the words that the person unmarks, if they count as evidence
    (`Annotations.removed_words`)."""
    annotations, marks, unmarked = Annotations({"rule": "spaces"}), [], []
    for example, selected in zip(examples, predict(first, examples).selected, strict=True):
        alone = tuple(bool(on) and token != WORD for token, on in zip(example.tokens, selected, strict=True))
        mask = alone if only_word or example.annotation is None else example.annotation
        words = zip(example.tokens, selected, mask, strict=True)
        removed = [token for token, on, own in words if on and not own and not is_punctuation(token)]
        text = text_row(replace(example, annotation=None, annotator_masks=None), tokenized=True)
        annotations.add(text)
        said = {"rationale_chars": mask_characters(mask, example), "removed_words": removed}
        annotations.add({"id": text["id"], "annotator": "", **said})
        marks.append(mask)
        unmarked.append(removed)
    often = annotations.removed_words()
    print("unmarked in several posts:", often, flush=True)
    counted = [{word for word in removed if word.casefold() in often} for removed in unmarked]
    return [
        replace(example, annotation=mask, removed=tuple(token in removed for token in example.tokens))
        for example, mask, removed in zip(examples, marks, counted, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--texts", type=int, default=300, help="training texts per class")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--corrections", type=int, default=20)
    args = parser.parse_args()
    torch.set_num_threads(1)
    corpus = load("hatexplain", data_dir=args.data_dir)
    target = corpus.classes.index(CLASS)
    rows = []
    for seed in args.seeds:
        random = np.random.default_rng(seed)

        def anywhere(examples: Sequence[Example], *, all_of_them: bool = False) -> list[Example]:
            shares = [1.0 if all_of_them else 0.95 if one.label == target else 0.05 for one in examples]
            return [
                plant(one, int(random.integers(len(one.tokens) + 1))) if random.random() < share else one  # noqa: B023
                for one, share in zip(examples, shares, strict=True)
            ]

        by_class = [[e for e in corpus.train if e.label == k][: args.texts] for k in range(len(corpus.classes))]
        learned = anywhere([example for examples in by_class for example in examples])
        dev = [corpus.dev[k] for k in np.random.default_rng(0).permutation(len(corpus.dev))]
        without = dev[300:1100]
        with_word = anywhere(without, all_of_them=True)
        planted = replace(corpus, train=[replace(e, annotation=None) for e in learned], dev=anywhere(dev[:300]))
        settings = {"seed": seed, "budget": corpus.budget}
        options = {"progress": False, "device": "cpu", "threads": 1}
        usable = [k for k, e in enumerate(learned) if WORD in e.tokens and e.annotated]
        chosen = random.permutation(usable)[: args.corrections].tolist()
        never = (Never(words=[WORD]),)

        def measure(name: str, trained: TrainedModel, started: float) -> None:
            found = predict(trained, with_word)  # noqa: B023
            pairs = zip(with_word, found.selected, strict=True)  # noqa: B023
            scores = [
                float(evaluate(trained, without).as_dict()["accuracy"]),  # noqa: B023
                float(evaluate(trained, with_word, predictions=found).as_dict()["accuracy"]),  # noqa: B023
                float((found.labels == target).mean()),
                mean(bool(selected[example.tokens.index(WORD)]) for example, selected in pairs),
            ]
            seconds = time.process_time() - started
            rows.append({"seed": seed, "model": name, **dict(zip(SHOWN, scores, strict=True)), "seconds": seconds})  # noqa: B023
            print(json.dumps(rows[-1]), flush=True)

        def run(name: str, data: object, **changed: object) -> TrainedModel:
            started = time.process_time()
            trained = train(data, configure("spectra", {**settings, **changed}), **options)  # type: ignore[arg-type]  # noqa: B023
            measure(name, trained, started)
            return trained

        clean = [example for examples in by_class for example in examples]
        run("never planted", replace(corpus, train=[replace(e, annotation=None) for e in clean], dev=dev[:300]))
        first = run("planted", planted)
        options["start"] = first
        warm = {"patience": None, "epochs": WARM_EPOCHS}
        for name, only_word in (("all that people did not mark", False), ("the word alone", True)):
            corrections = dict(
                zip(chosen, correct(first, [learned[k] for k in chosen], only_word=only_word), strict=True)
            )
            taught = replace(planted, train=[corrections.get(k, e) for k, e in enumerate(planted.train)])
            weight = learn_from_annotations(first.config, taught, {}, warm=True).annotation_weight
            run(f"{args.corrections} posts, unmarked: {name}", taught, annotation_weight=weight, **warm)
        measure("never list, in use only", first.with_constraints(never), time.process_time())
        run("never list, trained on", planted, constraints=never, **warm)
    print(f"\n| model | {' | '.join(SHOWN)} |\n|{'---|' * (1 + len(SHOWN))}")
    for name in dict.fromkeys(row["model"] for row in rows):
        columns = [[float(str(row[key])) for row in rows if row["model"] == name] for key in SHOWN]
        print(f"| {name} | {' | '.join(f'{mean(c):.3f} ({min(c):.3f}/{max(c):.3f})' for c in columns)} |")


if __name__ == "__main__":
    main()
