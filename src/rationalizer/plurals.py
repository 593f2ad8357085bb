"""Numbers with nouns in messages."""


def count_of(number: int, noun: str) -> str:
    """Return "1 epoch", "12 epochs" or "1,200 texts"; for nouns with a regular plural."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
