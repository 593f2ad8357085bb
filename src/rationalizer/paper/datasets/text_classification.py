"""SST, AgNews and IMDB, which need no preparation."""

from rationalizer.data.dataset_registry import Dataset, register_dataset

BINARY = ("negative", "positive")

# Neutral sentences have the label -1 in copies of the five-class treebank.
register_dataset(Dataset("sst", BINARY, hub="SetFit/sst2", rule="spaces", drop_labels=(-1,), texts=7_792))
register_dataset(
    Dataset(
        "agnews",
        ("World", "Sports", "Business", "Sci/Tech"),
        hub="fancyzhx/ag_news",
        dev_fraction=0.15,
        texts=120_000,
    )
)
register_dataset(Dataset("imdb", BINARY, hub="stanfordnlp/imdb", texts=25_000))
