"""Losses as functions of the target y and the prediction f, one file per family.

To add a loss, write its class and add it to ``REGRESSION`` or ``CLASSIFICATION``. The tests then
require a case for it in ``tests/losses/cases.py``.
"""

from __future__ import annotations

from hikernel.losses.loss import DualCurve, Loss, balanced, make_loss
from hikernel.losses.margins import Hinge, LogLoss, SquaredHinge
from hikernel.losses.multinomial import Multinomial
from hikernel.losses.poisson import Poisson
from hikernel.losses.robust import EpsilonInsensitive, Huber, Quantile
from hikernel.losses.squared import SquaredError

__all__ = [
    "CLASSIFICATION",
    "REGRESSION",
    "DualCurve",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "LogLoss",
    "Loss",
    "Multinomial",
    "Poisson",
    "Quantile",
    "SquaredError",
    "SquaredHinge",
    "balanced",
    "make_loss",
]

REGRESSION: dict[str, type[Loss]] = {
    loss.name: loss for loss in (SquaredError, Huber, Quantile, EpsilonInsensitive, Poisson)
}
"""Losses of ``HKLRegressor`` by name."""

CLASSIFICATION: dict[str, type[Loss]] = {loss.name: loss for loss in (LogLoss, Hinge, SquaredHinge)}
"""Losses of ``HKLClassifier`` by name."""
