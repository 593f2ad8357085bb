"""The fewest words that are enough: budgets of the kind `Budget.enough`, in use.

The generous budget, the largest share, gives a prediction. Let z(b) be the selection that is decoded under the budget
of b words. The answer is z(b) for the smallest b such that the prediction from z(b) is the same class, with at least
the probability asked for (for values: nearly the same value). An empty z(b) does not count, unless that of the largest
share is empty, too. If no b is enough, the answer is the selection of the largest share.

Predictions are not monotone in b, so all b are tried, in ascending order, until one is enough.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rationalizer.nn import Model
from rationalizer.nn.base_model import Output
from rationalizer.text import Budget, WordBatch
from rationalizer.work_limits import check_time

STEP = 4  # budgets of each text that are tried together
MOST_ENTRIES = 2**24  # of the selections that are held in memory
BATCH = 128


def shorten(
    model: Model, texts: tuple[WordBatch, ...], output: Output, budget: Budget, constraints: Any = None
) -> Output:
    """Return the output with the selections that are enough, from the output under the largest share."""
    used = (output.selection.z != 0).flatten(1).sum(-1)
    z, reference = output.z.clone(), model.head.predict(output.outputs)
    longest = max(int(used.max()), 1)
    rows_at_once = max(1, MOST_ENTRIES // (longest * output.z[0].numel()))
    if constraints is not None:  # they are those of the whole batch
        rows_at_once = len(z)
    for start in range(0, len(z), rows_at_once):
        rows = torch.arange(start, min(start + rows_at_once, len(z)), device=z.device)
        part = [each.take(rows) for each in texts]
        # The budget that is used up entirely is the one of the output, which needs no further prediction.
        most = int(used[rows].max()) - 1
        if most < 1:
            continue
        selection = output.selection._replace(scores=output.selection.scores[rows])
        masks = [mask[rows] for mask in output.masks]
        candidates = model.method.decode_budgets(selection, masks, output.budget[rows], most, constraints)
        shown = torch.stack([model.shown(each, part, constraints) for each in candidates.unbind(1)], 1).to(z)
        found = _first_enough(model, part, shown, candidates, used[rows], reference[rows], budget.certainty)
        chosen = found >= 0
        z[rows[chosen]] = shown[chosen, found[chosen]]
    # One more pass, so that a prediction is the same as from this selection under a fixed budget.
    return output._replace(outputs=model.predict_from(z, *texts), z=z)


def _first_enough(
    model: Model,
    texts: list[WordBatch],
    shown: Tensor,
    candidates: Tensor,
    used: Tensor,
    reference: Tensor,
    certainty: float,
) -> Tensor:
    """(rows,) the index of the first candidate that is enough; -1 if none is."""
    sizes = (candidates != 0).flatten(2).sum(-1)
    new = torch.ones_like(sizes, dtype=torch.bool)  # not the same selection as for one word less
    new[:, 1:] = (candidates[:, 1:] != candidates[:, :-1]).flatten(2).any(-1)
    new &= (sizes > 0) & (torch.arange(1, new.shape[1] + 1, device=new.device) < used[:, None])
    found = torch.full_like(used, -1)
    for start in range(0, new.shape[1], STEP):
        tried = new[:, start : start + STEP] & (found < 0)[:, None]
        if not tried.any():
            continue
        rows, steps = tried.nonzero(as_tuple=True)
        enough = torch.zeros_like(tried)
        for first in range(0, len(rows), BATCH):
            check_time()
            row, step = rows[first : first + BATCH], steps[first : first + BATCH]
            outputs = model.predict_from(shown[row, start + step], *(each.take(row) for each in texts))
            enough[row, step] = model.head.agrees(model.head.predict(outputs), reference[row], certainty)
        found = torch.where((found < 0) & enough.any(1), start + enough.int().argmax(1), found)
    return found
