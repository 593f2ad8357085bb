"""Which tokens count towards the budget."""

from itertools import product

import numpy as np
import pytest

from rationalizer.text.token_kinds import BLANK, KNOWN, PUNCTUATION, UNKNOWN, counted_tokens, selectable_tokens


@pytest.mark.parametrize("punctuation", ["free", "count"])
def test_one_text_counts_the_same_tokens_as_a_batch(punctuation):
    for kinds in product((UNKNOWN, KNOWN, PUNCTUATION, BLANK), repeat=3):
        own = np.array(kinds, dtype=np.int8)
        in_batch, _ = selectable_tokens(own, np.ones((1, 3), dtype=np.bool_), punctuation)
        assert counted_tokens(own, punctuation).tolist() == in_batch[0].tolist()
