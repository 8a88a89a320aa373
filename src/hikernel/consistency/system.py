"""Checks of the input of the conditions (blocks, hull, covariance), and Sigma_WW^-1 q."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from hikernel.consistency.graph_part import GraphPart
from hikernel.engines.features import Blocks
from hikernel.engines.numerics import matvec
from hikernel.engines.protocol import FloatArray, Vertex
from hikernel.graphs import SupportsAncestors

__all__ = ["HullSplit", "NodeBlocks", "check_covariance", "solve_covariance"]

_SYMMETRY = 1e-8
"""Largest asymmetry of a correlation matrix that counts as rounding. Negative eigenvalues count as
rounding down to minus this times the number of columns."""
_RANK = 1e-10
"""Eigenvalues of the correlation matrix of W up to this share of the largest count as zero."""
_OUT_OF_RANGE = 1e-3
"""Relative norm of the part of q that may lie outside the range of Sigma_WW. It allows for the
tolerance of the solver that computed the coefficients, and for no more."""


@dataclass(frozen=True)
class NodeBlocks:
    """Nodes and the feature columns that belong to each.

    Attributes
    ----------
    nodes : list of nodes
        V, distinct and closed under ancestors.
    blocks : Blocks
        Their columns.
    """

    nodes: list[Vertex]
    blocks: Blocks

    @classmethod
    def of(
        cls, graph: SupportsAncestors, nodes: Iterable[Vertex], widths: Sequence[int] | None
    ) -> NodeBlocks:
        """Check nodes and widths and return them as blocks; ``widths`` None means 1 for all."""
        listed = list(nodes)
        known = set(listed)
        if len(known) != len(listed):
            raise ValueError("The nodes must be distinct.")
        if not listed:
            raise ValueError("There must be at least one node.")
        sizes = [1] * len(listed) if widths is None else [int(width) for width in widths]
        if len(sizes) != len(listed):
            raise ValueError(f"There are {len(listed)} nodes but {len(sizes)} widths.")
        if min(sizes) < 1:
            raise ValueError("Every node must have at least one column.")
        for node in listed:
            above = graph.ancestors(node)
            if node not in above:
                raise ValueError(f"graph.ancestors({node!r}) must contain {node!r} itself.")
            missing = [v for v in above if v not in known]
            if missing:
                raise ValueError(
                    f"{node!r} is among the nodes but its ancestor {missing[0]!r} is not; "
                    "the nodes considered must contain all their ancestors."
                )
            weight = float(graph.weights([node])[0])
            if not (np.isfinite(weight) and weight > 0.0):
                raise ValueError(f"The weight of {node!r} must be positive, got {weight!r}.")
        return cls(listed, Blocks(sizes))

    @property
    def n_columns(self) -> int:
        """Total number of columns R."""
        return self.blocks.n_columns

    def direction(self, coefficients: Mapping[Vertex, ArrayLike]) -> FloatArray:
        """Return beta / max |beta|, shape (R,), with zeros for the nodes not in the mapping.

        No condition depends on the scale of beta. The division keeps squares from overflowing.
        """
        position = {node: i for i, node in enumerate(self.nodes)}
        beta = np.zeros(self.n_columns)
        for node, values in coefficients.items():
            if node not in position:
                raise ValueError(f"There are coefficients for {node!r}, which is not a node.")
            columns = self.blocks.columns([position[node]])
            block = np.atleast_1d(np.asarray(values, dtype=np.float64))
            width = len(columns)
            if block.shape != (width,):
                raise ValueError(
                    f"{node!r} has {width} column(s) but coefficients of shape {block.shape}."
                )
            if not np.all(np.isfinite(block)):
                raise ValueError(f"The coefficients of {node!r} must be finite.")
            beta[columns] = block
        return beta / (float(np.max(np.abs(beta))) or 1.0)


@dataclass(frozen=True)
class HullSplit:
    """The nodes in W and in its complement, as positions and as parts of the graph."""

    inside: list[int]
    outside: list[int]
    hull: GraphPart
    complement: GraphPart
    squares: FloatArray  # |beta_w|^2 on W

    @classmethod
    def of(
        cls,
        graph: SupportsAncestors,
        blocks: NodeBlocks,
        beta: FloatArray,
        hull: Iterable[Vertex] | None,
    ) -> HullSplit:
        """Split the nodes; ``hull`` None means the hull of the nodes with a nonzero beta."""
        nodes = blocks.nodes
        squares = blocks.blocks.squares(beta)
        active = {node for node, square in zip(nodes, squares, strict=True) if square > 0.0}
        if not active:
            raise ValueError(
                "All coefficients are zero: the true hull is empty and there is no condition."
            )
        if hull is None:
            members = {v for node in active for v in graph.ancestors(node)}
        else:
            members = _checked_hull(graph, nodes, active, hull)
        inside = [i for i, node in enumerate(nodes) if node in members]
        outside = [i for i, node in enumerate(nodes) if node not in members]
        part = GraphPart([nodes[i] for i in inside], graph)
        empty = part.map.descendant_sums(squares[inside]) == 0.0
        if np.any(empty):
            raise ValueError(
                f"{part.nodes[int(np.argmax(empty))]!r} is in the hull but neither it nor a "
                "descendant has a nonzero coefficient; take it out of the hull."
            )
        rest = GraphPart([nodes[i] for i in outside], graph)
        return cls(inside, outside, part, rest, squares[inside])


def _checked_hull(
    graph: SupportsAncestors, nodes: Sequence[Vertex], active: set[Vertex], hull: Iterable[Vertex]
) -> set[Vertex]:
    """Return W as a set, after checking that it is a hull and contains the active nodes."""
    members = set(hull)
    unknown = members.difference(nodes)
    if unknown:
        raise ValueError(f"{unknown.pop()!r} is in the hull but is not a node.")
    for node in nodes:
        if node in members:
            missing = [v for v in graph.ancestors(node) if v not in members]
            if missing:
                raise ValueError(
                    f"W is not a hull: it contains {node!r} but not its ancestor {missing[0]!r}."
                )
        elif node in active:
            raise ValueError(f"{node!r} has a nonzero coefficient but is not in the hull.")
    return members


def check_covariance(covariance: ArrayLike, n_columns: int) -> FloatArray:
    """Return Sigma, shape (R, R), checked to be finite, symmetric and positive semidefinite."""
    sigma = np.asarray(covariance, dtype=np.float64)
    if sigma.shape != (n_columns, n_columns):
        raise ValueError(
            f"The covariance must have shape ({n_columns}, {n_columns}), one row and column for "
            f"every column of the nodes, got {sigma.shape}."
        )
    if not np.all(np.isfinite(sigma)):
        raise ValueError("The covariance must be finite.")
    variances = np.diag(sigma)
    if np.any(variances < 0.0):
        raise ValueError(f"The covariance has a negative variance, {variances.min():g}.")
    scale = np.sqrt(np.where(variances > 0.0, variances, 1.0))
    correlation = sigma / (scale[:, None] * scale)
    asymmetry = float(np.max(np.abs(correlation - correlation.T)))
    if asymmetry > _SYMMETRY:
        raise ValueError(f"The covariance must be symmetric; correlations differ by {asymmetry:g}.")
    smallest = float(linalg.eigvalsh(0.5 * (correlation + correlation.T))[0])
    if smallest < -_SYMMETRY * n_columns:
        raise ValueError(
            "The covariance must be positive semidefinite; its correlations have the eigenvalue "
            f"{smallest:g}."
        )
    return 0.5 * (sigma + sigma.T)


def solve_covariance(sigma: FloatArray, q: FloatArray) -> tuple[FloatArray, int]:
    """Return Sigma_WW^-1 q and the dimension of the null space of Sigma_WW.

    If Sigma_WW is singular, the solution of minimum norm for standardised columns is returned. The
    choice does not matter: Sigma_{W^c W} times the solution is the same for all solutions. There
    is no solution if q has a part outside the range of Sigma_WW. Then some change of beta lowers
    the norm without changing any prediction, so that the estimate does not converge to beta, and a
    ValueError is raised. Columns of variance zero are part of the intercept. Their coefficients
    must be zero, and they do not count as singular directions.

    Parameters
    ----------
    sigma : ndarray of shape (R_W, R_W)
        Sigma_WW, positive semidefinite.
    q : ndarray of shape (R_W,)
        The gradient of the norm at beta.
    """
    deviations = np.sqrt(np.diag(sigma))
    moving = np.flatnonzero(deviations > 0.0)
    if np.any(q[deviations == 0.0] != 0.0):
        raise ValueError(
            "A column of variance zero has a nonzero coefficient, which no data can tell from the "
            "intercept; set it to zero."
        )
    scale = deviations[moving]
    correlation = sigma[np.ix_(moving, moving)] / (scale[:, None] * scale)
    values, vectors = linalg.eigh(correlation)
    used = values > _RANK * np.max(values, initial=0.0)
    target = q[moving] / scale
    loads = matvec(vectors.T, target)
    lost = float(np.linalg.norm(loads[~used]))
    if lost > _OUT_OF_RANGE * float(np.linalg.norm(target)):
        raise ValueError(
            "The covariance of the hull is singular and the coefficients are not those of least "
            "norm among the ones with the same predictions, so that no estimate tends to them; "
            "take out the dependent columns, or pass the coefficients of least norm (those of a "
            "fit, solved to a smaller tol)."
        )
    solution = np.zeros_like(q)
    solution[moving] = matvec(vectors[:, used], loads[used] / values[used]) / scale
    return solution, int(np.sum(~used))
