"""Losses: pure objects of the target y and the prediction f, one file per family.

A new loss is a class in its family's file and a line in ``REGRESSION`` or ``CLASSIFICATION``; it
then takes part in every test of ``tests/losses``.
"""

from __future__ import annotations

from hikernel.losses.base import Loss, balanced
from hikernel.losses.counts import Poisson
from hikernel.losses.dual import DualCurve
from hikernel.losses.margins import Hinge, LogLoss, SquaredHinge
from hikernel.losses.multinomial import Multinomial
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


def make_loss(spec: object, choices: dict[str, type[Loss]]) -> Loss:
    """Return a loss from its name or itself.

    Parameters
    ----------
    spec : str or Loss
        A name of ``choices``, or an object of one of its classes.
    choices : dict
        ``REGRESSION`` or ``CLASSIFICATION``.

    Examples
    --------
    >>> make_loss("quantile", REGRESSION)
    Quantile(level=0.5)
    """
    if isinstance(spec, Loss) and type(spec) in choices.values():
        return spec
    if isinstance(spec, str) and spec in choices:
        return choices[spec]()
    listed = ", ".join(repr(name) for name in choices)
    example = next(iter(choices.values())).__name__
    raise ValueError(
        f"loss must be one of {listed}, or an object of their classes such as "
        f"hikernel.losses.{example}(); got {spec!r}."
    )
