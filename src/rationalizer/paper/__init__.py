"""The SPECTRA paper and the literature around it: datasets, presets, reported figures, evaluation on HANS.

This package is a plugin (see `rationalizer.discovery`): importing it registers the datasets, presets and figures.
"""

from rationalizer.discovery import import_modules
from rationalizer.paper import published_settings, reported_figures

__all__ = ["published_settings", "reported_figures"]

import_modules("rationalizer.paper.datasets")
