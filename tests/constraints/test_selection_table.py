"""The size of the dynamic program, as it is estimated, and as the kernel allocates it."""

import numpy as np
import pytest
import torch

from rationalizer.constraints import BatchItem, ConstraintConflict, build_layer_constraints, parse_constraints
from rationalizer.constraints.selection_table import count_states
from rationalizer.ops.kernels.constraint_graph_cpu import build_graph
from rationalizer.text import Budget, Example, split_words
from rationalizer.work_limits import limit_entries

MANY = 10**6


def entries(constraints, text, budget="100%"):
    """The least limit under which the text is accepted."""
    example = Example(text, *split_words(text))
    counted = torch.ones(1, len(example.tokens), dtype=torch.bool)
    arguments = (
        parse_constraints(constraints),
        [BatchItem(example, 0, 1)],
        counted,
        Budget.parse(budget),
        "punctuation",
    )
    low, high = 0, 10**5
    layer = build_layer_constraints(*arguments)
    while low < high:
        middle = (low + high) // 2
        try:
            with limit_entries(middle):
                build_layer_constraints(*arguments)
            high = middle
        except ConstraintConflict:
            low = middle + 1
    if low:
        with limit_entries(low - 1), pytest.raises(ConstraintConflict, match=r"GiB .* is allowed; lower the budget"):
            build_layer_constraints(*arguments)
    return low, layer, int(Budget.parse(budget).word_limit(counted))


@pytest.mark.parametrize(
    "constraints",
    [
        ["spans=2"],
        ["spans=2", "span-length=2-3"],
        ["span-length=-3", "per-sentence=2"],
        ["whole-sentences"],
        ["whole-sentences", "spans=1", "never=words:five"],
        ["ends=pattern:two three", "spans=2", "per-sentence=4"],
    ],
)
@pytest.mark.parametrize("budget", ["100%", 3])
def test_estimated_size_is_that_of_the_kernel(constraints, budget):
    text = "One two three. Four five! Six seven eight nine ten"
    estimated, layer, most = entries(constraints, text, budget)
    n = len(split_words(text)[0])
    own = {name: value for name, value in layer.arguments().items() if value is not None}
    rows = {key: own[key][0].numpy().astype(np.int64) for key in ("unit", "fixed", "group") if key in own}
    graph = build_graph(
        0,
        most,
        min(own.get("spans", n), n),
        own["shortest"],
        own.get("longest", n),
        own.get("per_group", n),
        rows.get("unit", np.arange(n)),
        rows.get("fixed", np.zeros(n, np.int64)),
        rows.get("group", np.zeros(n, np.int64)),
    )
    assert estimated == graph[4].size * (graph[0] + 1)


def test_without_counters_there_is_no_table():
    assert entries(["never=stopwords"], "One two three four")[0] == 0
    assert count_states(5, [5], 3, MANY, 1, MANY, MANY).states == 2


def test_sizes_of_long_texts_do_not_overflow():
    assert count_states(MANY, [MANY] * 3, MANY, 10**5, 2, 10**5, 10**5).states > 10**14
