"""A named dataset: its task, its classes, its three splits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

from rationalizer.data.disk_examples import DiskExamples, cached_text, word_counts
from rationalizer.plurals import count_of
from rationalizer.text import AnyExample, Budget, PairExample, SplitRule

# One label per text: a class or a number. Several: labels that a text has or has not, or targets of their own kinds.
Task = Literal["classification", "regression", "multi-label", "multi-target"]
SEVERAL = ("multi-label", "multi-target")


@dataclass(frozen=True)
class Target:
    """One of several things to predict about a text."""

    name: str
    classes: tuple[str, ...] = ()  # empty for numbers

    @property
    def task(self) -> Literal["classification", "regression"]:
        return "classification" if self.classes else "regression"


def default_budget(*, pairs: bool) -> Budget:
    """The default: a fifth of a text's words; for pairs, half as many links as the shorter text has words."""
    return Budget.share(0.5 if pairs else 0.2)


@dataclass(frozen=True)
class Corpus:
    """What a model is trained and evaluated on. `classes` is empty for regression; a split may be empty.

    For the task "multi-label" `classes` are the names of the labels, and an example's label is a tuple with 1, 0 or
    None (not given) for each. For "multi-target" it has a class index, a value or None for each of the `targets`.

    The examples of all splits are texts, or all are pairs of texts. `dropped` is the number of rows of each split (or
    of "no split") that were left out because they had no usable label.
    """

    name: str
    task: Task
    classes: tuple[str, ...]
    train: Sequence[AnyExample]
    dev: Sequence[AnyExample]
    test: Sequence[AnyExample]
    budget: Budget = field(default_factory=lambda: default_budget(pairs=False))
    dropped: Mapping[str, int] = field(default_factory=dict)
    rule: SplitRule = "words"  # how its texts were split into words; "spaces" if they were tokenized
    columns: Mapping[str, str] = field(default_factory=dict)  # column names by kind: {"text": "review"}
    skipped: tuple[str, ...] = ()  # messages about rows that were skipped because they could not be used
    targets: tuple[Target, ...] = ()  # only for the task "multi-target"

    def __post_init__(self) -> None:
        if self.task not in get_args(Task):
            raise ValueError(f"task must be one of {', '.join(get_args(Task))}, got {self.task!r}")
        if (self.task in ("regression", "multi-target")) != (not self.classes):
            raise ValueError(f"a corpus for {self.task} cannot have the classes {self.classes!r}")
        if (self.task == "multi-target") != bool(self.targets):
            raise ValueError(f"a corpus for {self.task} cannot have the targets {self.targets!r}")
        if len(self._kinds()) > 1:
            raise ValueError("a corpus holds texts or pairs of texts, got splits of both kinds; make two corpora")

    @property
    def pairs(self) -> bool:
        """Whether the examples are pairs of texts."""
        return True in self._kinds()

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of several labels or targets; empty if a text has one label."""
        if self.task == "multi-label":
            return self.classes
        return tuple(target.name for target in self.targets)

    @cached_property
    def digest(self) -> str:
        """A hash of the train and dev texts and labels, on which training and early stopping depend."""
        if isinstance(self.train, DiskExamples):
            return cached_text(self._digest, "digest", self.train, self.dev)
        return self._digest()

    @cached_property
    def digest_with_annotations(self) -> str:
        """The same including annotations, for trainings that learn from them."""
        sha = hashlib.sha256(self.digest.encode())
        for split in (self.train, self.dev):
            for example in split:
                removed = getattr(example, "removed", None) or ()
                words = f"-{[k for k, on in enumerate(removed) if on]}" if any(removed) else ""
                sha.update(f"{example.annotated}{words}\n".encode())
            sha.update(b"\x1e")
        return sha.hexdigest()

    def blank_tokens_note(self) -> str:
        """A note with the number of blank tokens, which are never selected; empty if there are none."""
        if self.rule != "spaces":  # only tokenized texts have them
            return ""
        counts = [word_counts(split) for split in (self.train, self.dev, self.test) if len(split)]
        blank = sum(count for words in counts for word, count in words.items() if not word.strip())
        if not blank:
            return ""
        tokens = count_of(blank, "token")
        return f"note: {tokens} empty or white space, kept in position and never selected"

    def _digest(self) -> str:
        sha = hashlib.sha256()
        for split in (self.train, self.dev):
            for example in split:
                words = "\x1d".join("\x1f".join(text.tokens) for text in example.texts)
                lengths = [text.sentence_lengths for text in example.texts if text.sentence_lengths is not None]
                weight = "" if example.weight == 1 else f"\x1f{example.weight!r}"
                content = f"{words}\x1f{example.label!r}\x1f{lengths or ''}{weight}\n"
                sha.update(content.encode("utf-8", "surrogatepass"))
            sha.update(b"\x1e")
        return sha.hexdigest()

    def _kinds(self) -> set[bool]:
        return {isinstance(split[0], PairExample) for split in (self.train, self.dev, self.test) if len(split)}
