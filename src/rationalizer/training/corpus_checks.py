"""Errors for corpora that cannot be trained on, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping

from rationalizer.data import Corpus
from rationalizer.data.disk_examples import DiskExamples
from rationalizer.models.config import Config, configure
from rationalizer.models.setting_conflicts import resolve_rationales
from rationalizer.suggestions import did_you_mean
from rationalizer.text import AnyExample
from rationalizer.text.example import is_annotated
from rationalizer.training.class_balance import training_weights


def check_corpus(corpus: Corpus, config: Config) -> None:
    """Raise ValueError if the corpus cannot be trained on with these settings."""
    if not corpus.train:
        raise ValueError(f"the corpus {corpus.name!r} has no training examples; evaluate can still score it")
    if config.annotation_weight and not any(is_annotated(example) for example in corpus.train):
        kind, column = ("alignment", "alignment") if corpus.pairs else ("human rationale", "rationale_mask")
        raise ValueError(
            f"annotation_weight is {config.annotation_weight:g}, but {corpus.name!r} has no {kind} in train; name its "
            f"column (on the command line: --column {column}=NAME), or leave annotation_weight out"
        )
    if len(corpus.classes) == 1 and not corpus.label_names and not config.annotation_weight:
        raise ValueError(
            f"all labels are {corpus.classes[0]!r}, but a classifier needs at least two classes; add texts of another "
            "class, name another label column (on the command line: --column label=NAME), or train on the annotation "
            "alone (--set annotation_weight=1)"
        )
    if corpus.pairs != config.pairs:
        configure(config.method, pairs=corpus.pairs)  # raises, unless the method exists for both kinds of texts
        kind = "pairs of" if corpus.pairs else "single"
        raise ValueError(f"{corpus.name!r} holds {kind} texts; configure with pairs={corpus.pairs}")
    for split, examples in (("train", corpus.train), ("dev", corpus.dev)):
        if isinstance(examples, DiskExamples):
            continue  # each was checked when it was written
        for i, example in enumerate(examples):
            _check_example(example, f"{corpus.name} {split}[{i}]", corpus)
    _check_class_weight(corpus, config)
    _check_rationales(corpus, config)


def _check_rationales(corpus: Corpus, config: Config) -> None:
    several, separate = corpus.label_names, resolve_rationales(config, len(corpus.label_names)) != "shared"
    if several and corpus.pairs:
        raise ValueError("pairs of texts have one label, but these have several; train one model for each label")
    if several and config.sampling == "balanced":
        raise ValueError("sampling=balanced is for texts with one class, but these have several labels; leave it out")
    if separate and corpus.task == "regression":
        raise ValueError(f"rationales={config.rationales} needs classes or several targets; leave it out")
    if (
        separate
        and config.annotation_weight
        and not any(getattr(example, "label_annotations", None) for example in corpus.train)
    ):
        raise ValueError(
            "annotation_weight with a rationale for each label needs annotations of each label, as a mapping "
            '{"food": [[0, 2]]}; leave it out, or use rationales=shared'
        )


def _check_class_weight(corpus: Corpus, config: Config) -> None:
    if corpus.label_names and isinstance(config.class_weight, Mapping):
        raise ValueError("class_weight is for texts with one class, but these have several labels; leave it out")
    if corpus.classes:
        training_weights(corpus, config)  # raises if class_weight names an unknown class
    elif isinstance(config.class_weight, Mapping):  # the default, "balanced", has no effect on numbers
        raise ValueError(
            f"class_weight is {config.class_weight!r}, but the labels of {corpus.name!r} are numbers, not classes; "
            "leave it out"
        )


def _check_example(example: AnyExample, where: str, corpus: Corpus) -> None:
    if not all(example.shape):
        raise ValueError(f"{where} has no words; leave empty texts out")
    if example.label is None:
        raise ValueError(f"{where} has no label; training and validation need a label for every text")
    annotated = getattr(example, "label_annotations", None) or {}
    known = corpus.label_names or corpus.classes
    unknown = next((name for name in annotated if name not in known), None)
    if unknown is not None:
        raise ValueError(
            f"{where} has an annotation of the label {unknown!r}, which is unknown; {did_you_mean(unknown, known)}"
        )
    if corpus.label_names:
        if not (isinstance(example.label, tuple) and len(example.label) == len(corpus.label_names)):
            raise ValueError(f"{where} has the label {example.label!r}; expected {len(corpus.label_names)} numbers")
        return
    if corpus.classes and not (isinstance(example.label, int) and 0 <= example.label < len(corpus.classes)):
        raise ValueError(f"{where} has the label {example.label!r}; expected 0 to {len(corpus.classes) - 1}")
