"""Scaled features of terms for a refit: an array, or what stands for one if rows lie in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from hikernel.engines.protocol import Engine, FloatArray, Vertex

if TYPE_CHECKING:
    from hikernel.selection.block_ridge import BlockFeatures

ScaledFeatures: TypeAlias = "FloatArray | BlockFeatures"

__all__ = ["ScaledFeatures", "column_variances", "scaled_features"]


def scaled_features(engine: Engine, nodes: Sequence[Vertex], scales: FloatArray) -> ScaledFeatures:
    """Return the features of nodes, their columns times scales, shape (n, R)."""
    if not engine.in_blocks:
        return engine.features(nodes) * scales
    from hikernel.selection.block_ridge import BlockFeatures  # imported only when needed

    return BlockFeatures(engine, nodes, scales)  # type: ignore[arg-type]


def column_variances(features: ScaledFeatures, omega: FloatArray) -> FloatArray:
    """Return the variances of the columns under weights of sum one, shape (R,)."""
    if not isinstance(features, np.ndarray):
        return features.variances
    return np.asarray(omega @ (features - omega @ features) ** 2)
