"""Variables of a factor graph, and the literals that factors are built from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

if TYPE_CHECKING:
    from rationalizer.graph.graph import FactorGraph

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Literals:
    """Entries of a graph's variables, plain or negated, of shape (batch, *shape). Supports indexing and ~."""

    def __init__(self, graph: FactorGraph, ids: IntArray, negated: BoolArray) -> None:
        self.graph = graph
        # The first dimension is 1 if all instances of the batch share the entries, as in most graphs.
        self.ids = ids
        self.negated = negated

    @property
    def shape(self) -> torch.Size:
        return torch.Size((self.graph.batch, *self.ids.shape[1:]))

    def __getitem__(self, index: Any) -> Literals:
        """Any index of a tensor of this shape that keeps the batch: z[:, 2, :], z[:, [0, 3]], z[rows, picks] ..."""
        batch, size = self.shape[0], self.shape[1:].numel()
        positions = torch.arange(batch * size).reshape(self.shape)
        parts = index if isinstance(index, tuple) else (index,)
        try:
            picked = positions[tuple(part.cpu() if isinstance(part, Tensor) else part for part in parts)]
        except (IndexError, TypeError) as error:
            raise IndexError(f"index {index!r} does not fit literals of shape {tuple(self.shape)}: {error}") from None
        expected = torch.arange(batch).reshape(-1, *[1] * (picked.dim() - 1)) if picked.dim() else None
        if (
            expected is None
            or picked.shape[0] != batch
            or (size and not torch.equal((picked // size).contiguous(), expected.expand_as(picked).contiguous()))
        ):
            raise IndexError(
                f"index {index!r} must keep the batch as the first dimension: start with ':' "
                "(z[:, 2]), or pick per instance with z[torch.arange(batch)[:, None], picks]"
            )
        local = (picked % max(size, 1)).numpy()
        if (local == local[:1]).all():
            local = local[:1]
        lead = max(local.shape[0], self.ids.shape[0])

        def take(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            flat = np.broadcast_to(values.reshape(values.shape[0], -1), (lead, size))
            spread = np.broadcast_to(local.reshape(local.shape[0], -1), (lead, local[0].size))
            return np.take_along_axis(flat, spread, axis=1).reshape(lead, *local.shape[1:])

        return Literals(self.graph, take(self.ids), take(self.negated))

    def __invert__(self) -> Literals:
        """Return the negated literals: 1 if the entries are 0."""
        return Literals(self.graph, self.ids, ~self.negated)

    def __iter__(self) -> Any:
        raise TypeError("literals are not iterable (the first dimension is the batch); index them, as in z[:, 0]")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={tuple(self.shape)})"


class Variable(Literals):
    """One binary variable per entry of a score tensor; created by `FactorGraph.variable`."""

    def __init__(self, graph: FactorGraph, offset: int, scores: Tensor, mask: Tensor) -> None:
        size = scores.shape[1:].numel()
        ids = np.arange(offset, offset + size, dtype=np.int64).reshape(1, *scores.shape[1:])
        super().__init__(graph, ids, np.zeros(ids.shape, np.bool_))
        self.offset = offset
        self.size = size
        self.scores = scores
        self.mask = mask


class FactorGroup:
    """Factors of one shape: `count` of them per instance, each over `size` literals."""

    def __init__(self, graph: FactorGraph, ids: IntArray, negated: BoolArray) -> None:
        self.graph = graph
        self.ids = ids  # (1 or batch, count, size)
        self.negated = negated
        self.count, self.size = ids.shape[1:]


def group_literals(literals: Any, dim: int | Sequence[int] | None, name: str) -> FactorGroup:
    """Group literals (batch, *shape) into one factor for each position of the dimensions that are not in `dim`."""
    if isinstance(literals, (list, tuple)):
        literals = stack(literals, name)
        dim = -1
    if not isinstance(literals, Literals):
        raise TypeError(
            f"{name} takes literals (a variable, z[...], ~z[...], or a list of those), got {type(literals).__name__}"
        )
    ids, negated = literals.ids, literals.negated
    dims = literals.ids.ndim
    if dims == 1:
        ids, negated, dims = ids[:, None], negated[:, None], 2
    requested = tuple(range(1, dims)) if dim is None else tuple(dim) if isinstance(dim, Sequence) else (dim,)
    axes = []
    for axis in requested:
        if not -dims <= axis < dims or axis % dims == 0:
            raise ValueError(
                f"{name}: dim={dim} does not name a dimension of literals of shape {tuple(literals.shape)} "
                "other than the batch (dimension 0)"
            )
        axes.append(axis % dims)
    others = [axis for axis in range(1, dims) if axis not in axes]
    count = int(np.prod([ids.shape[a] for a in others], dtype=np.int64))
    size = int(np.prod([ids.shape[a] for a in axes], dtype=np.int64))
    order = (0, *others, *axes)
    shape = (ids.shape[0], count, size)
    group = FactorGroup(literals.graph, ids.transpose(order).reshape(shape), negated.transpose(order).reshape(shape))
    require_literals(group, name)
    return group


def require_literals(group: FactorGroup, name: str) -> None:
    if group.size == 0 or group.count == 0:
        raise ValueError(f"{name} has no variables; leave the factor out, or check the index")
    ordered = np.sort(group.ids, axis=-1)
    if (ordered[..., 1:] == ordered[..., :-1]).any():
        raise ValueError(f"{name} uses the same variable twice in one factor; use each once")


def stack(literals: Sequence[Any], name: str) -> Literals:
    """Stack literals of one shape along a new last dimension."""
    if not literals:
        raise ValueError(f"{name} has no variables; leave the factor out, or check the index")
    for part in literals:
        if not isinstance(part, Literals):
            raise TypeError(f"{name} takes a list of literals, got {type(part).__name__} in it")
        if part.graph is not literals[0].graph:
            raise ValueError(f"{name} mixes variables of two graphs; make them all with one FactorGraph")
    try:
        shape = np.broadcast_shapes(*(part.ids.shape for part in literals))
    except ValueError:
        shapes = ", ".join(str(tuple(part.shape)) for part in literals)
        raise ValueError(f"{name} needs literals of one shape, got {shapes}") from None
    ids = np.stack([np.broadcast_to(part.ids, shape) for part in literals], axis=-1)
    negated = np.stack([np.broadcast_to(part.negated, shape) for part in literals], axis=-1)
    return Literals(literals[0].graph, ids, negated)
