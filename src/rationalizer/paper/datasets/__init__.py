"""One module per dataset or family of datasets. Each registers its `Dataset` when it is imported."""
