"""Tail bounds of an engine that stores its levels: exact sums, random draws, and exact parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.sketch import exact_parts

__all__ = ["TailVerbs"]


class TailVerbs:
    """The verbs of ``GridEngine`` that bound descendant sums, on what computes them."""

    _widths: list[tuple[int, ...]]

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows n."""

    @abstractmethod
    def subset(self, rows: NDArray[np.intp]) -> Any:
        """Return an engine over some of the rows."""

    @abstractmethod
    def _summer(self, scales: Sequence[FloatArray], max_order: int | None) -> Any:
        """Return what sums over all descendants, or over those of at most ``max_order``."""

    @abstractmethod
    def _row_squares(self, variable: int, level: int) -> FloatArray | float:
        """Return |phi_ml(x_i)|^2, shape (n,), or one for a constant level."""

    def tail_sums(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None = None,
    ) -> FloatArray:
        """Return the exact descendant sums U(t) of the nodes, computed in tiles of row pairs."""
        return np.asarray(self._summer(scales, max_order).sums(nodes, dual_coef))

    def tail_draws(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None,
        n_draws: int,
        seed: int,
    ) -> FloatArray:
        """Return independent random y_t with E y_t^2 = U(t), shape (n_draws, len(nodes))."""
        summer = self._summer(scales, max_order)
        return np.asarray(summer.draws(nodes, dual_coef, n_draws, seed))

    def tail_exact_parts(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None,
    ) -> FloatArray:
        """Return the larger of two exact parts: the diagonal, and that of the heaviest rows."""
        return exact_parts(self, nodes, dual_coef, scales, max_order)

    def tail_diagonal(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None,
    ) -> FloatArray:
        """Return sum_i |alpha_i|^2 prod_m S_{m,t_m}(x_i, x_i), the diagonal part of U(t)."""
        return np.asarray(self._summer(scales, max_order).diagonal(nodes, dual_coef))

    def log_kernels(self, scales: Sequence[FloatArray]) -> FloatArray:
        """Return log prod_m S_{m,0}(x_i, x_i), shape (n,)."""
        logs = np.zeros(self.n_rows)
        with np.errstate(all="ignore"):
            for m, widths in enumerate(self._widths):
                total = np.zeros(self.n_rows)
                for j in range(len(widths)):
                    total += scales[m][0, j] * self._row_squares(m, j)
                logs += np.log(total)
        return logs
