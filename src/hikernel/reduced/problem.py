"""The problem on a hull that grows and shrinks, and its squared-error case."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, Self

import numpy as np

from hikernel.engines.kernels import KernelOperator
from hikernel.engines.memory import require_memory
from hikernel.engines.protocol import Engine, FloatArray, Vertex
from hikernel.engines.threads import one_blas_thread
from hikernel.reduced.forms import DualForm, Form, IndexArray, PrimalForm
from hikernel.reduced.kernel_form import KernelForm
from hikernel.reduced.newton import solve_reduced
from hikernel.reduced.result import ReducedSolution, WarmStart
from hikernel.reduced.variational import HullMap, SupportsAncestors
from hikernel.reduced.working_set import solve_from

__all__ = ["FormName", "ReducedProblem", "SquaredProblem", "solve_form"]

FormName = Literal["auto", "primal", "dual"]

_ONE_THREAD = 500
"""Size of the linear systems up to which one thread is as fast as two."""

_CONSTANT = 1e-26
"""Variance over squared mean up to which a feature column is a constant, rounded."""


class ReducedProblem(ABC):
    """The problem on a hull, for any lambda.

    Parameters
    ----------
    engine : Engine
        The rows.
    graph : SupportsAncestors
        The graph the nodes come from.
    y : ndarray of shape (n,) or (n, k)
        The target.
    nodes : sequence of nodes
        An ancestor-closed hull.
    form : {"auto", "primal", "dual"}
        The R x R or the n x n form; "auto" takes the smaller one. Where a node is known by its
        Gram matrix there is only the latter.
    """

    def __init__(
        self,
        engine: Engine,
        graph: SupportsAncestors,
        y: FloatArray,
        nodes: Sequence[Vertex],
        *,
        form: FormName = "auto",
    ) -> None:
        self._engine = engine
        self._graph = graph
        self._y = y
        self._form_name = form
        self.nodes: list[Vertex] = []
        self._widths: list[int] = []
        self.means = np.empty(0)
        self.constant_columns = np.empty(0, dtype=bool)
        self._hull: HullMap | None = None
        self._kernels: KernelOperator | None = None
        self.extend(nodes)

    @abstractmethod
    def solve(self, alpha: float, *, tol: float, warm: WarmStart | None = None) -> ReducedSolution:
        """Solve for one lambda; ``warm`` may lack the nodes appended since."""

    @property
    def hull(self) -> HullMap:
        """Ancestor relations of the nodes."""
        if self._hull is None:
            self._hull = HullMap(self.nodes, self._graph)
        return self._hull

    @property
    def starts(self) -> IndexArray:
        """First feature column of each node, shape (m,)."""
        return np.concatenate([[0], np.cumsum(self._widths)[:-1]]).astype(np.intp)

    @property
    def n_columns(self) -> int:
        """R, the number of feature columns."""
        return len(self.means)

    @property
    def uses_dual_form(self) -> bool:
        """Whether the n x n form is in use."""
        if self._kernels is not None:
            return True
        if self._form_name == "auto":
            return self.n_columns > self._engine.n_rows
        return self._form_name == "dual"

    def node_squares(self, columns: FloatArray) -> FloatArray:
        """Return the squared norm of each node's coordinates (of all outputs), shape (m,)."""
        if self._kernels is not None:
            return self._kernels.squares(columns)
        squares = columns**2 if columns.ndim == 1 else np.sum(columns**2, axis=1)
        return np.asarray(np.add.reduceat(squares, self.starts))

    def rounded_up_squares(self, vector: FloatArray) -> FloatArray:
        """Return |Phi_w' vector|^2 plus a bound on its rounding error, for a vector of sum zero.

        Shape (m,).
        """
        if self._kernels is not None:
            return self._kernels.score_squares(vector, rounded_up=True)
        scores = np.abs(self._engine.correlate(self.nodes, vector))
        margin = (self._engine.n_rows + 64) * np.finfo(float).eps
        scores += margin * self._engine.correlate(self.nodes, vector, absolute=True)
        # A constant column has no score but rounding.
        scores[self.constant_columns] = 0.0
        return self.node_squares(scores)

    def columns_of(self, index: Sequence[int]) -> IndexArray:
        """Return the feature columns of some nodes, given by position."""
        starts = self.starts
        parts = [np.arange(starts[i], starts[i] + self._widths[i]) for i in index]
        return np.concatenate(parts).astype(np.intp)

    def extend(self, nodes: Sequence[Vertex]) -> None:
        """Append nodes, whose parents are there already or among them."""
        fresh = list(nodes)
        known = set(self.nodes)
        if len(set(fresh)) != len(fresh) or not known.isdisjoint(fresh):
            raise ValueError("The nodes to append must be distinct and not yet in the hull.")
        widths = [self._engine.width(node) for node in fresh]
        size = self.n_columns + sum(widths)
        require_memory(
            6 * min(size, self._engine.n_rows) ** 2,
            f"A reduced problem of {size} feature columns",
            "Lower max_kernels, or use a basis with fewer columns per level.",
        )
        means = self._engine.means(fresh)
        variances = self._engine.gram_diagonal(fresh, means)
        # A column that is constant up to rounding says nothing beyond the intercept.
        constant = variances <= _CONSTANT * means**2
        self.constant_columns = np.concatenate([self.constant_columns, constant])
        n_old = len(self.nodes)
        self.nodes = self.nodes + fresh
        self._widths = self._widths + widths
        self.means = np.concatenate([self.means, means])
        self._hull = None
        self._kernels = self._engine.kernel_operator(self.nodes)
        self._on_extend(n_old)

    def restrict(self, keep: Sequence[Vertex]) -> Self:
        """Return the problem on a smaller hull."""
        chosen = set(keep)
        index = [i for i, node in enumerate(self.nodes) if node in chosen]
        columns = self.columns_of(index)
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__)
        out.nodes = [self.nodes[i] for i in index]
        out._widths = [self._widths[i] for i in index]
        out.means = self.means[columns]
        out.constant_columns = self.constant_columns[columns]
        out._hull = None
        out._kernels = self._engine.kernel_operator(out.nodes)
        out._on_restrict(columns)
        return out

    @abstractmethod
    def _on_extend(self, n_old: int) -> None:
        """Take note of the nodes from position ``n_old`` on."""

    @abstractmethod
    def _on_restrict(self, columns: IndexArray) -> None:
        """Take note that only some of the former columns are left."""

    def _weighted_form(
        self, weights: FloatArray, target: FloatArray, means: FloatArray, gram: FloatArray | None
    ) -> Form:
        """Return the form of min sum weights_i (target_i - f_i)^2 / 2 with an intercept.

        ``target`` must have weighted mean zero, ``means`` are the weighted means of the columns;
        ``gram`` is None for the dual form.
        """
        if self._kernels is not None:
            return KernelForm(self._kernels, weights, target)
        if gram is None:
            root = np.sqrt(weights)
            features = self._engine.features(self.nodes)
            features -= means
            features *= root[:, None]
            features[:, self.constant_columns] = 0.0
            return DualForm(features, root * target, self.starts)
        weighted = weights * target
        # The weighted target sums to zero up to rounding only; take out what that leaves.
        cross = self._engine.correlate(self.nodes, weighted) - means * float(np.sum(weighted))
        cross[self.constant_columns] = 0.0
        return PrimalForm(gram, cross, float(weighted @ target), self.starts)

    def _without_constants(self, gram: FloatArray) -> FloatArray:
        gram[self.constant_columns] = 0.0
        gram[:, self.constant_columns] = 0.0
        return gram


class SquaredProblem(ReducedProblem):
    """The squared error: the moments do not depend on the solution, and only new nodes cost rows.

    Parameters are those of :class:`ReducedProblem`.
    """

    _gram: FloatArray | None = None
    _form: Form | None = None

    def solve(self, alpha: float, *, tol: float, warm: WarmStart | None = None) -> ReducedSolution:
        """Solve for one lambda."""
        eta = None if warm is None else warm.padded(len(self.nodes), self.n_columns).eta
        return solve_form(self.form(), self.hull, alpha, tol=tol, warm_eta=eta)

    def form(self) -> Form:
        """Return the primal or dual form of the present hull."""
        if self._form is None:
            weights = self._engine.row_weights
            centred = self._y - float(weights @ self._y)
            if self.uses_dual_form:
                self._gram = None
            elif self._gram is None:
                self._gram = self._moments(self.nodes, self.nodes, self.means, self.means)
                self._without_constants(self._gram)
            self._form = self._weighted_form(weights, centred, self.means, self._gram)
        return self._form

    def _moments(
        self,
        left: Sequence[Vertex],
        right: Sequence[Vertex],
        left_means: FloatArray,
        right_means: FloatArray,
    ) -> FloatArray:
        return self._engine.gram(left, right, left_means, right_means)

    def _on_extend(self, n_old: int) -> None:
        self._form = None
        if self._gram is None or self.uses_dual_form:
            self._gram = None
            return
        size = len(self._gram)
        old, fresh = self.nodes[:n_old], self.nodes[n_old:]
        old_means, fresh_means = self.means[:size], self.means[size:]
        across = self._moments(old, fresh, old_means, fresh_means)
        within = self._moments(fresh, fresh, fresh_means, fresh_means)
        self._gram = self._without_constants(np.block([[self._gram, across], [across.T, within]]))

    def _on_restrict(self, columns: IndexArray) -> None:
        self._form = None
        if self._gram is not None:
            self._gram = self._gram[np.ix_(columns, columns)]


def solve_form(
    form: Form, hull: HullMap, alpha: float, *, tol: float, warm_eta: FloatArray | None
) -> ReducedSolution:
    """Solve a form, from the start or from a neighbour's eta, on as many threads as pay."""
    with one_blas_thread(form.n_columns <= _ONE_THREAD):
        if warm_eta is None:
            return solve_reduced(form, hull, alpha, tol=tol)
        return solve_from(form, hull, alpha, tol=tol, warm_eta=warm_eta)
