"""Long, random robustness runs: python -m soak [name ...] [--seed N] [--scale F]. Not part of the tests."""
