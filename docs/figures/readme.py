"""Draw the README's two pictures with trained models, as SVG next to this script.

python scripts/small_data.py DATA/hotels_location runs/hotels
rationalizer demo --out runs/demo
python docs/figures/readme.py runs/hotels/seed-0 runs/demo/pairs
"""

import sys
from pathlib import Path

from rationalizer import Rationalizer

REVIEW = (
    "The room was spotless and the view from our window wonderful, but the staff was rude and nobody ever answered "
    "when we called the front desk."
)
PREMISE = "Two brave nurses often help timid boys inside the hospital at noon."
HYPOTHESIS = "At midday two fearless medics often hinder timid lads."


def main(reviews: str, pairs: str) -> None:
    highlight = Rationalizer.load(reviews).explain(REVIEW)
    alignment = Rationalizer.load(pairs).explain(PREMISE, HYPOTHESIS)
    for name, explanation in {"highlight": highlight, "alignment": alignment}.items():
        path = Path(__file__).with_name(f"{name}.svg")
        path.write_text(explanation.to_svg(), encoding="utf-8")
        print(path, explanation.label)


if __name__ == "__main__":
    main(*sys.argv[1:])
