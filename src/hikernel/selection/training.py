"""The training problem, set up once and solved for any lambda, and the resulting models.

Models are in the units of y. The target is standardised for the solve. lambda is not converted: it
belongs to the standardised target (for the squared error it is the same in the units of y).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.features import Blocks, normalised
from hikernel.engines.machine import one_blas_thread
from hikernel.engines.protocol import Engine, FloatArray, Vertex
from hikernel.graphs import Design, GraphSource, SearchGraph, take
from hikernel.losses import Loss, with_offset
from hikernel.reduced import Status, WarmStart
from hikernel.search import (
    SEARCHES,
    Certificate,
    Objective,
    SearchResult,
    SearchSettings,
    SearchStart,
    StepCallback,
)
from hikernel.search.effort import UNLIMITED, ColumnLimits
from hikernel.selection.target import null_residuals, target_units

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TermModel", "TrainingProblem", "term_variances"]

_ONE_THREAD = 200_000
"""Rows times nodes scored together, up to which one BLAS thread is as fast as two."""

_IDLE = 1e-26
"""Variance of a term up to which it is only rounding error, relative to the variance of all terms
(at least 1), for a standardised target."""


class KeptTerms(NamedTuple):
    """Terms with nonzero coefficients: nodes, coefficients, and positions in the hull."""

    nodes: list[Vertex]
    blocks: list[FloatArray]
    positions: NDArray[np.intp]


@dataclass(frozen=True)
class TermModel:
    """f(x) = intercept + sum_w <coef_w, Phi_w(x)>.

    Attributes
    ----------
    lam : float
        lambda.
    nodes : list of nodes
        The selected hull.
    widths : ndarray of shape (m,)
        Number of feature columns of each node.
    coef : ndarray of shape (R,) or (R, k)
        Coefficients, blocks in the order of the nodes.
    intercept : ndarray of shape () or (k,)
        b.
    dual_coef : ndarray of shape (n,) or (n, k)
        Dual variables of the training rows.
    eta, zeta, norms, shares : ndarray of shape (m,)
        Variational weights, norms of the coefficients, and shares of the explained variance.
    certificate : Certificate
        What is proven about the model.
    history : list of Certificate
        The certificate of every step of the search.
    status : Status
        How the last reduced solve ended.
    work : float
        Work of the search (``search.effort``).
    """

    lam: float
    nodes: list[Vertex]
    widths: NDArray[np.intp]
    coef: FloatArray
    intercept: FloatArray
    dual_coef: FloatArray
    eta: FloatArray
    zeta: FloatArray
    norms: FloatArray
    shares: FloatArray
    certificate: Certificate
    history: list[Certificate]
    status: Status
    work: float = 0.0

    @property
    def n_terms(self) -> int:
        """Number of terms with nonzero coefficients."""
        return int(np.count_nonzero(self.norms > 0.0))

    def kept(self) -> KeptTerms:
        """Return the terms with nonzero coefficients, which make up the predictions."""
        positions = np.flatnonzero(self.norms > 0.0)
        blocks = Blocks(self.widths).split(self.coef)
        nodes = [self.nodes[i] for i in positions]
        return KeptTerms(nodes, [blocks[i] for i in positions], positions)

    def frame(self, design: Design) -> pd.DataFrame:
        """Return a data frame with one row per node."""
        import pandas as pd

        return pd.DataFrame(
            design.terms(self.nodes)
            | {
                "width": self.widths,
                "eta": self.eta,
                "zeta": self.zeta,
                "norm": self.norms,
                "share": self.shares,
            }
        )

    def predict(self, design: Design, rows: Any) -> FloatArray:
        """Return f(x), shape (n,) or (n, k), for rows in the form that the design takes.

        Raises
        ------
        ValueError
            If a row is so far from the training data that f overflows.
        """
        kept = self.kept()
        coef = np.concatenate([self.coef[:0], *kept.blocks])
        with np.errstate(over="ignore", invalid="ignore"):
            out = design.predict(kept.nodes, coef, rows) + self.intercept
        if not np.all(np.isfinite(out)):
            row = int(np.argwhere(~np.isfinite(out))[0, 0])
            raise ValueError(
                f"Row {row} of X lies so far outside the training data that its prediction "
                "overflows; check its units, or clip X to the range of the training data."
            )
        return np.asarray(out)


@dataclass(frozen=True)
class TrainingProblem:
    """Rows, graph, target and loss; the target is standardised if the loss depends on its scale.

    Attributes
    ----------
    design : Design
        The graph, fitted to the rows.
    engine : Engine
        The engine over the rows of positive weight.
    y : ndarray of shape (n_used,) or (n_used, k)
        Target, standardised; for a loss of residuals, without the offset of the rows.
    loss : Loss
        The loss, of these rows if it is a joint one; for other losses, it has the offset of the
        rows in it.
    center, scale : float
        The target in its original units is center + scale * y.
    used : ndarray of bool of shape (n,)
        Which rows have positive weight.
    rows : Any
        The rows of positive weight, in the form that the design takes.
    room : ColumnLimits
        Limits of memory on models; none by default.
    """

    design: Design
    engine: Engine
    y: FloatArray
    loss: Loss
    center: float
    scale: float
    used: NDArray[np.bool_]
    rows: Any
    room: ColumnLimits = UNLIMITED

    @classmethod
    def make(
        cls,
        source: GraphSource,
        rows: Any,
        y: FloatArray,
        weights: FloatArray,
        loss: Loss,
        offset: FloatArray | None = None,
        plan: Callable[[Design, FloatArray], ColumnLimits] | None = None,
    ) -> TrainingProblem:
        """Fit a graph to rows, standardise the target, and make the engine.

        Parameters
        ----------
        source : GraphSource
            The graph, or the columns of a table as a graph.
        rows : Any
            The rows, as returned by ``source.read``.
        y : ndarray of shape (n,) or (n, k)
            Target.
        weights : ndarray of shape (n,)
            Zero or positive; rows of weight zero are left out.
        loss : Loss
            The loss; y must be in its domain.
        offset : ndarray of shape (n,) or (n, k), optional
            What is added to f in every row. It is no part of the models.
        plan : callable, optional
            Called with the design and the target before features are stored; raises if there is
            too little memory.
        """
        used = weights > 0
        y = y[used]
        loss.check_target(y)
        if offset is not None:
            loss, y = with_offset(loss, y, offset[used])
        center, scale = target_units(y, weights[used], loss)
        if not 1e-152 <= scale <= 1e152:
            raise ValueError(
                f"y has a standard deviation of {scale:.3g}, whose square leaves the range of "
                "floating point numbers; rescale y, for example by its standard deviation."
            )
        seen = rows if np.all(used) else take(rows, np.flatnonzero(used))
        design = source.fit(seen, weights[used])
        laid_out = design.training_rows(seen)
        y, omega = (y - center) / scale, normalised(weights[used])
        loss = loss.on_rows(y, omega)
        if design.follows_target:
            design = design.at_jumps(laid_out, omega, null_residuals(loss, y, omega))
        room = UNLIMITED if plan is None else plan(design, y)
        return cls(
            design=design,
            engine=design.engine(laid_out, weights[used]),
            y=y,
            loss=loss,
            center=center,
            scale=scale,
            used=used,
            rows=laid_out,
            room=room,
        )

    @property
    def graph(self) -> SearchGraph:
        """The graph that is searched."""
        return self.design.graph

    @cached_property
    def objective(self) -> Objective:
        """The problem on the whole graph."""
        rule = SEARCHES[self.graph.searches[0]]
        problem: Objective = rule.objective_type(self.engine, self.graph, self.y, self.loss)
        return problem

    def forget_bounds(self) -> None:
        """Drop what a search leaves behind for the next one, if it has vectors over many rows."""
        if self.engine.in_blocks:
            self.__dict__.pop("objective", None)

    def subset(self, rows: NDArray[np.intp]) -> TrainingProblem:
        """Return the problem on some of the rows, given by position among the rows used.

        Units and bases stay those of all rows, except for what follows y: levels that had seen the
        other rows would be scored on what they know. Features are copied.
        """
        y, loss, design = self.y[rows], self.loss.subset(rows), self.design.subset(rows)
        if design.follows_target:
            omega = normalised(self.engine.row_weights[rows])
            residuals = null_residuals(loss, y, omega)
            design = design.at_jumps(self.rows[rows], omega, residuals)
            engine = design.engine(self.rows[rows], omega)
        else:
            engine = self.engine.subset(rows)
        return replace(
            self,
            design=design,
            engine=engine,
            y=y,
            loss=loss,
            used=np.ones(len(rows), dtype=bool),
            rows=self.rows[rows],
        )

    def solve(
        self,
        lam: float,
        settings: SearchSettings,
        *,
        start: TermModel | None = None,
        callback: StepCallback | None = None,
    ) -> TermModel:
        """Search for one lambda.

        Parameters
        ----------
        lam : float
            lambda.
        settings : SearchSettings
            How to search.
        start : TermModel, optional
            The model of a neighbouring lambda, to start from.
        callback : callable, optional
            Called with every step of the search.
        """
        known = self.graph.searches
        search = SEARCHES[settings.search if settings.search in known else known[0]]
        begin = None
        if start is not None:
            begin = SearchStart(start.nodes, WarmStart(start.eta, start.coef / self.scale))
        settings = replace(settings, max_columns=min(settings.max_columns, self.room.hull))
        few = self.engine.n_rows * self.graph.n_scored(self.engine) <= _ONE_THREAD
        with one_blas_thread(few):
            result = search.run(self.objective, lam, settings, callback=callback, start=begin)
        return self._model(lam, result)

    def null_prediction(self, smoothing: float) -> FloatArray:
        """Return the best constant prediction, in the shape of y."""
        zero = np.zeros_like(self.y)
        return zero + self.loss.intercept(self.y, zero, self.engine.row_weights, smoothing)

    def prediction(self, model: TermModel) -> FloatArray:
        """Return f of a model on the rows, in the units of the standardised target."""
        linear = self.engine.apply(model.nodes, model.coef / self.scale)
        return np.asarray(linear + (model.intercept - self.center) / self.scale)

    def row_losses(self, f: FloatArray) -> FloatArray:
        """Return the loss of every row times its weight, shape (n_used,)."""
        return self.engine.row_weights * self.loss.value(self.y, f)

    def mean_loss(self, f: FloatArray) -> float:
        """Return the weighted mean of the loss over the rows."""
        return float(self.engine.row_weights @ self.loss.value(self.y, f))

    def error(self, f: FloatArray) -> float:
        """Return the mean loss over the rows, on the scale on which errors are compared."""
        return self.loss.error(self.mean_loss(f))

    def _model(self, lam: float, result: SearchResult) -> TermModel:
        """Return the model of a search result, in the original units of the target."""
        coef, blocks = result.solution.coef, result.problem.blocks
        squares = result.problem.node_squares(coef)
        dual_coef = np.zeros((len(self.used), *self.y.shape[1:]))
        unit = self.scale**self.loss.degree
        dual_coef[self.used] = self.scale * result.dual_coef
        variances = term_variances(self.engine, result.nodes, blocks.split(coef))
        total = float(np.sum(variances))
        if self.engine.kernel_operator(result.nodes) is not None:
            # The function of a constant kernel is only rounding error. (Feature columns need no
            # such test: the reduced problem handles constant ones.)
            idle = variances <= _IDLE * max(1.0, total)
            squares[idle] = variances[idle] = 0.0
            coef = (coef.T * blocks.spread(~idle)).T
        return TermModel(
            lam=lam,
            nodes=result.nodes,
            widths=blocks.widths,
            coef=self.scale * coef,
            intercept=self.center + self.scale * result.intercept,
            dual_coef=dual_coef,
            eta=result.solution.eta,
            zeta=result.solution.zeta,
            norms=self.scale * np.sqrt(squares),
            shares=variances / total if total > 0.0 else variances,
            certificate=result.certificate.scaled(unit),
            history=[certificate.scaled(unit) for certificate in result.history],
            status=result.solution.status,
            work=result.work,
        )


def term_variances(
    engine: Engine, nodes: Sequence[Vertex], blocks: Sequence[FloatArray]
) -> FloatArray:
    """Return the variance of each term over the rows, shape (len(nodes),)."""
    with one_blas_thread(not engine.in_blocks):
        return engine.variances(nodes, blocks)
