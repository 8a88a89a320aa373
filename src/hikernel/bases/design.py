"""Columns to rows of an engine: one fitted basis per variable, fitted once, applied to any data."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from hikernel.bases.base import Basis, FittedBasis
from hikernel.engines import NumpyEngine
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.threads import n_threads, one_blas_thread
from hikernel.graphs import node_degree, node_order, term_names

__all__ = ["Design"]

_PREDICT_NUMBERS = 2**21
"""Numbers that a thread holds at a time while predicting: 16 MiB. With smaller chunks the threads
spend their time waiting for the interpreter."""


@dataclass(frozen=True)
class Design:
    """The fitted bases of all variables.

    Attributes
    ----------
    bases : tuple of FittedBasis
        One per column.
    """

    bases: tuple[FittedBasis, ...]

    @classmethod
    def fit(cls, X: FloatArray, bases: Sequence[Basis], sample_weight: FloatArray) -> Design:
        """Fit one basis per column of X, shape (n, p)."""
        return cls(
            tuple(
                basis.fit(np.ascontiguousarray(X[:, m]), sample_weight)
                for m, basis in enumerate(bases)
            )
        )

    def refitted(
        self,
        X: FloatArray,
        bases: Sequence[Basis],
        sample_weight: FloatArray,
        variables: Iterable[int],
    ) -> Design:
        """Return the design with other bases for some of the variables, fitted to X."""
        out = list(self.bases)
        for m in variables:
            out[m] = bases[m].fit(np.ascontiguousarray(X[:, m]), sample_weight)
        return Design(tuple(out))

    @property
    def max_levels(self) -> list[int]:
        """q_m of every variable."""
        return [basis.max_level for basis in self.bases]

    def up_to(self, levels: Mapping[int, int]) -> Design:
        """Return the bases without the levels above those given, by variable."""
        return Design(
            tuple(
                basis.up_to(levels[m]) if m in levels else basis
                for m, basis in enumerate(self.bases)
            )
        )

    def engine(
        self, X: FloatArray, sample_weight: FloatArray, variables: Iterable[int] | None = None
    ) -> NumpyEngine:
        """Return an engine over the rows of X.

        Parameters
        ----------
        X : ndarray of shape (n, p)
            The columns the bases were fitted to, old or new rows.
        sample_weight : ndarray of shape (n,)
            Positive weights.
        variables : iterable of int, optional
            Variables whose levels are needed; the others keep level 0 only, and may not
            appear in a node. All by default.
        """
        wanted = set(range(len(self.bases))) if variables is None else set(variables)
        constant = [basis.constant_level for basis in self.bases]
        widths = [
            basis.widths if m in wanted else basis.widths[:1] for m, basis in enumerate(self.bases)
        ]

        def levels() -> Iterable[Sequence[FloatArray]]:
            for m, basis in enumerate(self.bases):
                if m in wanted:
                    yield basis.transform(np.ascontiguousarray(X[:, m]))
                elif constant[m]:
                    yield []
                else:
                    yield basis.transform(np.ascontiguousarray(X[:, m]))[:1]

        return NumpyEngine(widths, levels(), sample_weight, constant)

    def predict(self, nodes: Sequence[Node], coef: FloatArray, X: FloatArray) -> FloatArray:
        """Return sum_w <coef_w, Phi_w(x)> for the rows of X, in threads over chunks.

        Parameters
        ----------
        nodes : sequence of Node
            The terms.
        coef : ndarray of shape (R,) or (R, k)
            Their coefficients.
        X : ndarray of shape (n, p)
            Rows, old or new.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
            Not finite where a row is too far away.
        """
        highest: dict[int, int] = {}
        for node in nodes:
            for m, level in node:
                highest[m] = max(highest.get(m, 0), level)
        needed = self.up_to(highest)
        per_row = sum(sum(needed.bases[m].widths) for m in highest) + len(coef) + 1
        step = max(1, _PREDICT_NUMBERS // per_row)
        out = np.empty((len(X), *coef.shape[1:]))

        def fill(start: int) -> None:
            rows = X[start : start + step]
            with np.errstate(over="ignore", invalid="ignore"):
                engine = needed.engine(rows, np.ones(len(rows)), highest)
                out[start : start + step] = engine.apply(nodes, coef)

        starts = range(0, len(X), step)
        threads = min(n_threads(), len(starts))
        if threads > 1:
            with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
                deque(pool.map(fill, starts), maxlen=0)
        else:
            for start in starts:
                fill(start)
        return out

    def subset(self, rows: object) -> Design:
        """Return the bases as they are: they are fitted on all rows, whatever part is used."""
        return self

    def terms(self, nodes: Sequence[Node], names: Sequence[str]) -> dict[str, list[Any]]:
        """Return what can be said of each term, by column of a frame: term, order, degree."""
        return {
            "term": term_names(nodes, names),
            "order": [node_order(node) for node in nodes],
            "degree": [node_degree(node) for node in nodes],
        }
