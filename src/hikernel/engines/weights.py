"""Weights of rows: of sum one, and the part of an engine that has them."""

from __future__ import annotations

from typing import Self

import numpy as np

from hikernel.engines.protocol import FloatArray

__all__ = ["WeightedRows", "normalised"]


def normalised(weights: FloatArray) -> FloatArray:
    """Return weights of sum one; the largest is divided out first, so that no sum overflows."""
    scaled = weights / np.max(weights)
    return np.asarray(scaled / np.sum(scaled))


class WeightedRows:
    """Rows with weights.

    Parameters
    ----------
    row_weights : ndarray of shape (n,)
        Positive; they are normalised to sum one.
    """

    def __init__(self, row_weights: FloatArray) -> None:
        self._weights = normalised(np.asarray(row_weights, dtype=np.float64))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._weights)

    @property
    def row_weights(self) -> FloatArray:
        """Weights of the rows, of sum one."""
        return self._weights

    def weighted(self, row_weights: FloatArray) -> Self:
        """Return the same rows with other weights; nothing is copied."""
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__)
        out._weights = normalised(np.asarray(row_weights, dtype=np.float64))
        return out
