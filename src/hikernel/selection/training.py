"""A training problem: data and graph, made once, solved for any alpha."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hikernel.bases import Basis, Standardizer
from hikernel.bases.design import Design
from hikernel.engines import Engine
from hikernel.engines.numpy_engine import normalised
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.threads import one_blas_thread
from hikernel.graphs import Grid, geometric_weights
from hikernel.search import (
    Budget,
    SearchProblem,
    SearchResult,
    lookahead_search,
    paper_search,
)
from hikernel.search.problem import Certify
from hikernel.search.screen import PairScreen
from hikernel.search.state import StepCallback
from hikernel.selection.model import TermModel

__all__ = ["SearchName", "SearchSettings", "TrainingProblem"]

SearchName = Literal["lookahead", "paper"]

_ONE_THREAD = 200_000
"""Rows times one-variable levels up to which one BLAS thread is as fast as two."""


@dataclass(frozen=True)
class SearchSettings:
    """How to search.

    Attributes
    ----------
    search : {"lookahead", "paper"}
        The rule.
    tol : float
        Relative duality gap to reach.
    max_kernels : int
        Largest hull that is solved.
    certify : {"auto", "exact", "statistical", "none"}
        How the tail is bounded.
    time_budget : float or None
        Seconds after which the search ends with what it has.
    seed : int
        Of the draws behind statistical bounds.
    """

    search: SearchName = "lookahead"
    tol: float = 1e-3
    max_kernels: int = 600
    certify: Certify = "auto"
    time_budget: float | None = None
    seed: int = 0


@dataclass(frozen=True)
class TrainingProblem:
    """Fitted bases, graph and rows; y is standardised, which leaves alpha as it is.

    Attributes
    ----------
    design : Design
        The fitted bases.
    graph : Grid
        The graph.
    engine : Engine
        The rows of positive weight.
    y : ndarray of shape (n_used,)
        Target of mean zero and variance one (or zero, when it is constant).
    center, scale : float
        y in its own units is center + scale y.
    used : ndarray of bool of shape (n,)
        Rows of positive weight.
    """

    design: Design
    graph: Grid
    engine: Engine
    y: FloatArray
    center: float
    scale: float
    used: NDArray[np.bool_]

    @classmethod
    def make(
        cls,
        X: FloatArray,
        y: FloatArray,
        weights: FloatArray,
        bases: Sequence[Basis],
        *,
        max_order: int | None,
        weight_base: float,
        root_weight: float,
    ) -> TrainingProblem:
        """Fit the bases and lay out the rows.

        Parameters
        ----------
        X : ndarray of shape (n, p)
            Finite numbers.
        y, weights : ndarray of shape (n,)
            Target, and weights that are zero or positive.
        bases : sequence of Basis
            One per column.
        max_order : int or None
            How many variables may interact.
        weight_base, root_weight : float
            Weights of the graph.
        """
        # Fitting is all short vector products, which threads only slow down.
        with one_blas_thread():
            design = Design.fit(X, bases, weights)
        if max_order is not None and not all(basis.constant_level for basis in design.bases):
            raise ValueError(
                "max_order needs bases with a constant level 0: without one every term contains "
                "every variable. Pass constant_level=True to the basis, or give it by name."
            )
        used = weights > 0
        with one_blas_thread():
            scaler = Standardizer.fit(y[used], normalised(weights[used]))
        return cls(
            design=design,
            graph=Grid(geometric_weights(design.max_levels, weight_base), root_weight, max_order),
            engine=design.engine(X[used], weights[used]),
            y=scaler.transform(y[used]),
            center=scaler.center,
            scale=1.0 if scaler.constant else scaler.scale,
            used=used,
        )

    def solve(
        self,
        alpha: float,
        settings: SearchSettings,
        *,
        start: tuple[Sequence[Node], FloatArray] | None = None,
        callback: StepCallback | None = None,
    ) -> TermModel:
        """Search for one alpha.

        Parameters
        ----------
        alpha : float
            lambda.
        settings : SearchSettings
            How to search.
        start : tuple of (nodes, eta), optional
            Hull and variational weights of a neighbouring alpha (look-ahead only).
        callback : callable, optional
            Called with every step of the search.
        """
        problem = SearchProblem(
            self.engine, self.graph, self.y, alpha, seed=settings.seed, screen=self._screen
        )
        with one_blas_thread(self.engine.n_rows * len(self.engine.level_pairs) <= _ONE_THREAD):
            if settings.search == "paper":
                result = paper_search(
                    problem,
                    tol=settings.tol,
                    max_kernels=settings.max_kernels,
                    certify=settings.certify,
                    callback=callback,
                )
            else:
                seconds = settings.time_budget
                deadline = np.inf if seconds is None else time.monotonic() + seconds
                result = lookahead_search(
                    problem,
                    tol=settings.tol,
                    budget=Budget(settings.max_kernels, deadline=deadline),
                    certify=settings.certify,
                    callback=callback,
                    start=start,
                )
        return self._model(alpha, result)

    @cached_property
    def _screen(self) -> PairScreen:
        """Bounds on pairs, which the lambdas of a path share."""
        return PairScreen(self.engine, self.graph)

    def _model(self, alpha: float, result: SearchResult) -> TermModel:
        """Return a result in the units of y."""
        coef, starts = result.solution.coef, result.problem.starts
        dual_coef = np.zeros(len(self.used))
        dual_coef[self.used] = self.scale * result.alpha
        variances = self._variances(result.nodes, np.split(coef, starts[1:]))
        total = float(np.sum(variances))
        return TermModel(
            alpha=alpha,
            nodes=result.nodes,
            widths=np.diff(np.append(starts, len(coef))),
            coef=self.scale * coef,
            intercept=self.center + self.scale * result.problem.intercept(coef),
            dual_coef=dual_coef,
            eta=result.solution.eta,
            zeta=result.solution.zeta,
            norms=self.scale * np.sqrt(np.add.reduceat(coef**2, starts)),
            shares=variances / total if total > 0.0 else variances,
            certificate=result.certificate.scaled(self.scale**2),
            history=[certificate.scaled(self.scale**2) for certificate in result.history],
            status=result.solution.status,
        )

    def _variances(self, nodes: Sequence[Node], blocks: Sequence[FloatArray]) -> FloatArray:
        """Return the variance of each term over the training rows."""
        omega = self.engine.row_weights
        out = []
        with one_blas_thread():
            for node, block in zip(nodes, blocks, strict=True):
                values = self.engine.apply([node], block)
                out.append(float(omega @ (values - float(omega @ values)) ** 2))
        return np.array(out)
