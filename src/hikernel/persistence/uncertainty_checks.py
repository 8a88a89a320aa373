"""Check what a file says about error bars and calibration: shapes, ranges, and that they fit."""

from __future__ import annotations

import math

import numpy as np

from hikernel.persistence.content import ContentError
from hikernel.selection import TermModel
from hikernel.selection.conformal import Calibration
from hikernel.selection.posterior import Posterior

__all__ = ["check_calibration", "check_posterior"]


def check_posterior(posterior: Posterior | None, model: TermModel | None) -> None:
    """Raise unless a posterior belongs to the refitted model; there may be none."""
    if posterior is None:
        return
    if model is None:
        raise ContentError("it has error bars, but no refit")
    factor = posterior.factor
    kept = model.kept()
    rows = (int(np.sum(model.widths[kept.positions])) + 1, *model.coef.shape[1:])
    if factor.dtype != np.float64 or factor.shape[:-1] != rows or factor.ndim != len(rows) + 1:
        raise ContentError("its error bars do not belong to its terms")
    if factor.shape[-1] > math.prod(rows):
        raise ContentError("its error bars have more directions than coefficients")
    numbers = [posterior.dispersion, posterior.edf]
    if not np.all(np.isfinite(factor)) or not all(map(math.isfinite, numbers)) or min(numbers) < 0:
        raise ContentError("its error bars hold impossible numbers")


def check_calibration(
    calibration: Calibration | None, posterior: Posterior | None, *, labels: bool
) -> None:
    """Raise unless a calibration has sorted finite scores, and error bars if it is scaled."""
    if calibration is None:
        return
    scores = calibration.scores
    if scores.dtype != np.float64 or scores.ndim != 1 or len(scores) == 0:
        raise ContentError("its calibration does not hold one number a row")
    if not np.all(np.isfinite(scores)) or np.any(np.diff(scores) < 0.0):
        raise ContentError("its calibration holds numbers that are not sorted, or not finite")
    if calibration.scaled and (posterior is None or labels):
        raise ContentError("its calibration is relative to error bars that it does not have")
