"""What is particular to each dataset of the literature: one table, one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from rationalizer.data.column_names import Columns
from rationalizer.data.corpus import Task
from rationalizer.data.corpus_files import SPLIT_NAMES, SplitNames
from rationalizer.data.labels import Label
from rationalizer.data.table_files import Table
from rationalizer.paper.beer_hotels_movies import (
    BEER_ASPECTS,
    BEER_SPLITS,
    BETWEEN,
    HOTEL_ASPECTS,
    polarity,
    prepare_beer,
    prepare_movies,
    read_beer,
    read_hotels,
    read_movies,
)
from rationalizer.paper.esnli import ESNLI_COLUMNS, ESNLI_SPLITS, prepare_esnli
from rationalizer.paper.hatexplain import MARKS, UNDECIDED, prepare_hatexplain, read_hatexplain
from rationalizer.paper.nli import (
    HANS,
    HANS_SPLITS,
    MNLI_SPLITS,
    NLI,
    NO_GOLD,
    SNLI_SPLITS,
    tidy,
    tidy_hans,
)
from rationalizer.paper.word_alignment import PAIR, SOURCES, alignment_splits, prepare_alignments, read_multimwa
from rationalizer.paper.yelp_hat import YELP_HAT_SPLITS, prepare_yelp_hat, read_yelp_hat
from rationalizer.text.budget import Budget
from rationalizer.text.word_splitting import SplitRule

BINARY = ("negative", "positive")


@dataclass(frozen=True)
class Dataset:
    """What is particular to a dataset.

    `labels` are the columns that may hold the label, `{aspect}` standing for the aspect asked for: the first
    one that train has is used. `dev_fraction` of train is held out where there is no dev split; with `halve_dev`
    the dev split is halved into dev and test where there is no test split. `splits` are what its splits are called.

    `format` reads the authors' files (called `original`) for an aspect. Their tables and others are then brought into
    the form of users' own files by `prepare`, for an aspect, with the columns `reads` if they are there; `relabel` says
    what a label stands for. Pairs of SNLI's kind have `tidy` instead of `prepare`. Where `splits` has no train, the
    data is for scoring models; of a single class, there is nothing to predict, and people's marks are learned from.

    `texts` is how many there are in train and dev together as published; a copy with fewer is a reduced one.
    """

    name: str
    classes: tuple[str, ...] = ()
    budget: Budget = field(default_factory=lambda: Budget.share(0.2))
    hub: str | None = None
    dev_fraction: float = 0.1
    rule: SplitRule | None = None  # how its texts are cut: "spaces" if they come tokenized
    labels: tuple[str, ...] = ("label",)
    drop_labels: tuple[Label, ...] = ()
    aspects: tuple[str, ...] = ()
    format: Callable[[Path, str], dict[str, list[Table]] | None] | None = None
    original: str = ""
    reads: tuple[str, ...] = ()
    prepare: Callable[[Table, str], Table] | None = None
    relabel: Callable[[Label], Label] | None = None
    halve_dev: bool = False
    splits: SplitNames = field(default_factory=lambda: SPLIT_NAMES)
    tidy: Callable[[Table, Columns], Table] | None = None
    pairs: bool = False  # whether it holds pairs of texts
    texts: int | None = None

    @property
    def task(self) -> Task:
        return "classification" if self.classes else "regression"


_BEER = Dataset(
    "beer",
    budget=Budget.share(0.1),
    rule="spaces",
    labels=("{aspect}", "label"),
    aspects=BEER_ASPECTS,
    format=read_beer,
    original="reviews.aspect*.train.txt",
    reads=("aspect", "rationale_{aspect}"),
    prepare=prepare_beer,
    splits=BEER_SPLITS,
    texts=90_000,
)


def _aligned(name: str, original: str, *names: str) -> Dataset:
    """Pairs of sentences whose words people aligned; their files are called by these names."""
    splits = alignment_splits(*names)
    return Dataset(
        name,
        (PAIR,),
        Budget.share(1.0),
        rule="spaces",
        format=read_multimwa(splits),
        original=original,
        reads=SOURCES,
        prepare=prepare_alignments,
        splits=splits,
        pairs=True,
    )


DATASETS = {
    dataset.name: dataset
    for dataset in (
        # Neutral sentences carry the label -1 in copies of the five-class treebank.
        Dataset("sst", BINARY, hub="SetFit/sst2", rule="spaces", drop_labels=(-1,), texts=7_792),
        Dataset(
            "agnews",
            ("World", "Sports", "Business", "Sci/Tech"),
            hub="fancyzhx/ag_news",
            dev_fraction=0.15,
            texts=120_000,
        ),
        Dataset("imdb", BINARY, hub="stanfordnlp/imdb", texts=25_000),
        _BEER,
        replace(
            _BEER,
            name="beer-binary",
            classes=BINARY,
            budget=Budget.share(0.18),
            relabel=polarity,
            drop_labels=(BETWEEN,),
        ),
        Dataset(
            "hotels",
            BINARY,
            Budget.share(0.15),
            rule="spaces",
            aspects=HOTEL_ASPECTS,
            format=read_hotels,
            original="hotel_*.train",
        ),
        Dataset(
            "movies",
            BINARY,
            rule="spaces",
            format=read_movies,
            original="train.jsonl with the folder docs",
            prepare=prepare_movies,
            texts=1_800,
        ),
        Dataset(
            "hatexplain",
            ("normal", "offensive", "hatespeech"),
            Budget.share(0.3),
            rule="spaces",
            drop_labels=(UNDECIDED,),
            format=read_hatexplain,
            original="dataset.json with post_id_divisions.json",
            reads=MARKS,
            prepare=prepare_hatexplain,
            texts=17_305,
        ),
        Dataset(
            "snli",
            NLI,
            Budget.count(4),
            hub="stanfordnlp/snli",
            drop_labels=NO_GOLD,
            splits=SNLI_SPLITS,
            tidy=tidy,
            pairs=True,
            texts=559_209,
        ),
        Dataset(
            "mnli",
            NLI,
            Budget.count(6),
            hub="nyu-mll/multi_nli",
            drop_labels=NO_GOLD,
            halve_dev=True,
            splits=MNLI_SPLITS,
            tidy=tidy,
            texts=392_702,
            pairs=True,
        ),
        Dataset(
            "hans",
            HANS,
            Budget.count(4),
            hub="jhu-cogsci/hans",
            splits=HANS_SPLITS,
            tidy=tidy_hans,
            texts=30_000,
            pairs=True,
        ),
        Dataset(
            "esnli",
            NLI,
            Budget.count(4),
            drop_labels=NO_GOLD,
            original="esnli_dev.csv",
            reads=ESNLI_COLUMNS,
            prepare=prepare_esnli,
            splits=ESNLI_SPLITS,
            pairs=True,
        ),
        Dataset(
            "yelp-hat",
            BINARY,
            rule="spaces",
            format=read_yelp_hat,
            original="ham_part*.csv",
            reads=("masks",),
            prepare=prepare_yelp_hat,
            splits=YELP_HAT_SPLITS,
        ),
        _aligned("msr-rte", "RTE2_dev_M.align.json", "msr_rte"),
        _aligned("edinburgh", "gold.train.sure.json", "edinburgh", "gold"),
        _aligned("mtref", "mtref-train.tsv", "mtref"),
        _aligned("wiki-align", "wiki-train.tsv", "wiki"),
    )
}
