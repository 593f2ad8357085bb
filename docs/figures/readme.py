"""Draw the pictures of the README with the starter models.

python docs/figures/readme.py
"""

from __future__ import annotations

from pathlib import Path

from rationalizer import Rationalizer

REVIEW = (
    "We booked it for the view, which is lovely. The room was spotless, but the staff was rude, nobody answered the "
    "phone, and breakfast was a disappointment."
)
PREMISE, HYPOTHESIS = "A man plays a guitar on the street.", "A musician performs outside."


def main() -> None:
    highlight = Rationalizer.load("sentiment").explain(REVIEW)
    alignment = Rationalizer.load("nli").explain(PREMISE, HYPOTHESIS)
    for name, explanation in {"highlight": highlight, "alignment": alignment}.items():
        Path(__file__).with_name(f"{name}.svg").write_text(explanation.to_svg(), encoding="utf-8")
        print(explanation)


if __name__ == "__main__":
    main()
