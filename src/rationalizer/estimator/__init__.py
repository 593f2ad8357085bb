"""The methods of `Rationalizer`, by subject; `model.py` puts them together."""
