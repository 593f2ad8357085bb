"""The SPECTRA paper: its datasets, presets, HANS evaluation and reported figures."""

import rationalizer.data  # noqa: F401
