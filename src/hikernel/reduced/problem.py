"""The reduced problem of a growing hull: moments are kept, and only new nodes cost rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from hikernel.engines.memory import require_memory
from hikernel.engines.protocol import Engine, FloatArray, Node
from hikernel.engines.threads import one_blas_thread
from hikernel.reduced.forms import DualForm, Form, PrimalForm
from hikernel.reduced.newton import solve_reduced
from hikernel.reduced.result import ReducedSolution
from hikernel.reduced.variational import HullMap, SupportsAncestors
from hikernel.reduced.working_set import solve_from

__all__ = ["FormName", "ReducedProblem"]

FormName = Literal["auto", "primal", "dual"]

_ONE_THREAD = 500
"""Size of the linear systems up to which one thread is as fast as two."""

_CONSTANT = 1e-26
"""Variance over squared mean up to which a feature column is a constant, rounded."""


class ReducedProblem:
    """The squared-error problem on a hull, for any lambda.

    Parameters
    ----------
    engine : Engine
        The rows.
    graph : SupportsAncestors
        The graph the nodes come from.
    y : ndarray of shape (n,)
        The target.
    nodes : sequence of Node
        An ancestor-closed hull.
    form : {"auto", "primal", "dual"}
        The R x R or the n x n form; "auto" takes the smaller one.
    """

    def __init__(
        self,
        engine: Engine,
        graph: SupportsAncestors,
        y: FloatArray,
        nodes: Sequence[Node],
        *,
        form: FormName = "auto",
    ) -> None:
        self._engine = engine
        self._graph = graph
        self._form_name = form
        self._y_mean = float(engine.row_weights @ y)
        self._centred = y - self._y_mean
        self._weighted = engine.row_weights * self._centred
        self._total = float(self._weighted @ self._centred)
        self._gram = np.empty((0, 0))
        self.nodes: list[Node] = []
        self._widths: list[int] = []
        self.means = np.empty(0)
        self._cross = np.empty(0)
        self.constant_columns = np.empty(0, dtype=bool)
        self._hull: HullMap | None = None
        self._form: Form | None = None
        self.extend(nodes)

    @property
    def hull(self) -> HullMap:
        """Ancestor relations of the nodes."""
        if self._hull is None:
            self._hull = HullMap(self.nodes, self._graph)
        return self._hull

    @property
    def starts(self) -> np.ndarray:
        """First feature column of each node, shape (m,)."""
        return np.concatenate([[0], np.cumsum(self._widths)[:-1]]).astype(np.intp)

    @property
    def n_columns(self) -> int:
        """R, the number of feature columns."""
        return len(self.means)

    @property
    def uses_dual_form(self) -> bool:
        """Whether the n x n form is in use."""
        if self._form_name == "auto":
            return self.n_columns > self._engine.n_rows
        return self._form_name == "dual"

    def extend(self, nodes: Sequence[Node]) -> None:
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
        cross = np.where(constant, 0.0, self._centred_cross(fresh, means))
        self._cross = np.concatenate([self._cross, cross])
        self.constant_columns = np.concatenate([self.constant_columns, constant])
        old_nodes, old_means = self.nodes, self.means
        self.nodes = old_nodes + fresh
        self._widths = self._widths + widths
        self.means = np.concatenate([old_means, means])
        self._hull = self._form = None
        if self.uses_dual_form:
            self._gram = np.empty((0, 0))
        elif len(self._gram) == len(old_means):
            self._grow_gram(old_nodes, old_means, fresh, means)
        else:
            self._gram = self._full_gram()

    def restrict(self, keep: Sequence[Node]) -> ReducedProblem:
        """Return the problem on a smaller hull; no row is touched."""
        chosen = set(keep)
        index = [i for i, node in enumerate(self.nodes) if node in chosen]
        out = object.__new__(ReducedProblem)
        out.__dict__.update(self.__dict__)
        starts = self.starts
        columns = np.concatenate(
            [np.arange(starts[i], starts[i] + self._widths[i]) for i in index]
        ).astype(np.intp)
        out.nodes = [self.nodes[i] for i in index]
        out._widths = [self._widths[i] for i in index]
        out.means = self.means[columns]
        out._cross = self._cross[columns]
        out.constant_columns = self.constant_columns[columns]
        out._hull = out._form = None
        if len(self._gram) == self.n_columns:
            out._gram = self._gram[np.ix_(columns, columns)]
        elif not out.uses_dual_form:
            out._gram = out._full_gram()
        return out

    def solve(
        self, alpha: float, *, tol: float, warm_eta: FloatArray | None = None
    ) -> ReducedSolution:
        """Solve for one lambda; ``warm_eta`` may lack the nodes appended since."""
        if warm_eta is not None and len(warm_eta) < len(self.nodes):
            warm_eta = np.concatenate([warm_eta, np.zeros(len(self.nodes) - len(warm_eta))])
        form = self.form()
        small = min(self.n_columns, self._engine.n_rows) <= _ONE_THREAD
        with one_blas_thread(small):
            if warm_eta is None:
                return solve_reduced(form, self.hull, alpha, tol=tol)
            return solve_from(form, self.hull, alpha, tol=tol, warm_eta=warm_eta)

    def intercept(self, coef: FloatArray) -> float:
        """Return b, which makes the weighted residuals sum to zero."""
        return self._y_mean - float(self.means @ coef)

    def form(self) -> Form:
        """Return the primal or dual form of the present hull."""
        if self._form is None:
            if self.uses_dual_form:
                root = np.sqrt(self._engine.row_weights)
                features = self._engine.features(self.nodes)
                features -= self.means
                features *= root[:, None]
                features[:, self.constant_columns] = 0.0
                self._form = DualForm(features, root * self._centred, self.starts)
            else:
                self._form = PrimalForm(self._gram, self._cross, self._total, self.starts)
        return self._form

    def _centred_cross(self, nodes: Sequence[Node], means: FloatArray) -> FloatArray:
        raw = self._engine.correlate(nodes, self._weighted)
        # The weighted target sums to zero up to rounding only; take out what that leaves.
        return raw - means * float(np.sum(self._weighted))

    def _full_gram(self) -> FloatArray:
        gram = self._engine.gram(self.nodes, self.nodes, self.means, self.means)
        gram[self.constant_columns] = 0.0
        gram[:, self.constant_columns] = 0.0
        return gram

    def _grow_gram(
        self,
        old: Sequence[Node],
        old_means: FloatArray,
        fresh: Sequence[Node],
        fresh_means: FloatArray,
    ) -> None:
        within = self._engine.gram(fresh, fresh, fresh_means, fresh_means)
        if len(old):
            across = self._engine.gram(old, fresh, old_means, fresh_means)
            self._gram = np.block([[self._gram, across], [across.T, within]])
        else:
            self._gram = within
        self._gram[self.constant_columns] = 0.0
        self._gram[:, self.constant_columns] = 0.0
