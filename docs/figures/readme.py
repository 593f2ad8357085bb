"""The pictures of the README: what the models of the package say.

python docs/figures/readme.py
"""

from __future__ import annotations

from pathlib import Path

from rationalizer import Rationalizer

REVIEW = (
    "We booked it for the view, which is lovely. The room was spotless, but the staff was rude, nobody answered the "
    "phone, and breakfast was a disappointment."
)
PREMISE, HYPOTHESIS = "Two children are playing in the snow.", "The kids are sleeping in their beds."


def main() -> None:
    here = Path(__file__).parent
    (here / "highlight.svg").write_text(Rationalizer.load("sentiment").explain(REVIEW).to_svg(), encoding="utf-8")
    (here / "alignment.svg").write_text(
        Rationalizer.load("nli").explain(PREMISE, HYPOTHESIS).to_svg(), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
