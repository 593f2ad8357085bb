"""The format of a model's folder."""

FORMAT = 7
