"""The arguments of ``fit``, read and checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from hikernel.engines.protocol import FloatArray
from hikernel.graphs import GraphSource
from hikernel.losses import Loss

if TYPE_CHECKING:
    from hikernel.estimators.offsets import RowOffset

__all__ = ["TrainingData"]


@dataclass(frozen=True)
class TrainingData:
    """The arguments of ``fit``, after checks.

    Attributes
    ----------
    source : GraphSource
        The graph, or the grid of the columns of X.
    rows : Any
        The rows of X, as the source reads them.
    y : ndarray of shape (n,)
        Float64, or labels of any type.
    target : ndarray of shape (n,) or (n, k)
        y encoded for the loss.
    weights : ndarray of shape (n,)
        Weights of the rows, zero or positive.
    loss : Loss
        The loss.
    name : str or None
        Name of y, if it is a column with a name.
    offset : RowOffset or None
        What is added to f in every row; None for nothing.
    """

    source: GraphSource
    rows: Any
    y: NDArray[Any]
    target: FloatArray
    weights: FloatArray
    loss: Loss
    name: str | None = None
    offset: RowOffset | None = None
