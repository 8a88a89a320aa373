"""Losses as functions of the target y and the prediction f, one file per family.

To add a loss, write its class and add it to ``REGRESSION`` or ``CLASSIFICATION``. The tests then
require a case for it in ``tests/losses/cases.py``. Users pass objects of classes of their own,
which ``check_loss`` examines.
"""

from __future__ import annotations

from hikernel.losses.check_loss import check_loss
from hikernel.losses.cox import Cox
from hikernel.losses.dual_curve import DualCurve
from hikernel.losses.gamma import Gamma
from hikernel.losses.loss import Loss, balanced, make_loss, row_sums
from hikernel.losses.margins import Hinge, LogLoss, SquaredHinge
from hikernel.losses.multinomial import Multinomial
from hikernel.losses.offset_loss import OffsetLoss, with_offset
from hikernel.losses.poisson import Poisson
from hikernel.losses.robust import EpsilonInsensitive, Huber, Quantile
from hikernel.losses.squared import SquaredError
from hikernel.losses.tweedie import Tweedie

__all__ = [
    "CLASSIFICATION",
    "REGRESSION",
    "SURVIVAL",
    "Cox",
    "DualCurve",
    "EpsilonInsensitive",
    "Gamma",
    "Hinge",
    "Huber",
    "LogLoss",
    "Loss",
    "Multinomial",
    "OffsetLoss",
    "Poisson",
    "Quantile",
    "SquaredError",
    "SquaredHinge",
    "Tweedie",
    "balanced",
    "check_loss",
    "make_loss",
    "row_sums",
    "with_offset",
]

REGRESSION: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (
        SquaredError,
        Huber,
        Quantile,
        EpsilonInsensitive,
        Poisson,
        Gamma,
        Tweedie,
    )
}
"""Losses of ``HKLRegressor`` by name."""

CLASSIFICATION: dict[str, type[Loss]] = {loss.name: loss for loss in (LogLoss, Hinge, SquaredHinge)}
"""Losses of ``HKLClassifier`` by name."""

SURVIVAL: dict[str, type[Loss]] = {Cox.name: Cox}
"""Losses of ``HKLSurvival`` by name."""
