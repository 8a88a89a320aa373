"""Breslow's baseline: survival functions from the risk scores of a Cox model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.losses.cox import CoxOnRows

__all__ = ["BreslowBaseline"]


@dataclass(frozen=True, eq=False)
class BreslowBaseline:
    """H_0(t) = sum of d_k / S_k over the times of events t_k <= t, with f of the training rows.

    d_k is the weight of the events at t_k, and S_k the sum of omega_j exp(f_j) over the rows at
    risk. The cumulative hazard of a row is H_0(t) exp(f), and exp of minus that is the probability
    to have no event up to t.

    Attributes
    ----------
    times : ndarray of shape (K,)
        t_1 < ... < t_K.
    hazards : ndarray of shape (K,)
        H_0 at these times.
    horizon : float
        The largest time of a row, after which nothing is known.
    """

    times: FloatArray
    hazards: FloatArray
    horizon: float

    @classmethod
    def of(cls, loss: CoxOnRows, times: FloatArray, f: FloatArray) -> BreslowBaseline:
        """Return the baseline of rows with the given times, in the order of the rows of the loss.

        Raises
        ------
        ValueError
            If it overflows, as f has no bound where events can be told apart completely.
        """
        rows, hazards = loss.baseline(f)
        if not np.all(np.isfinite(hazards)):
            raise ValueError(
                "The risk scores of the training rows are so far apart that the baseline hazard "
                "overflows; use a larger alpha, or a refit with a penalty."
            )
        return cls(times[rows], hazards, float(np.max(times)))

    def cumulative(self, f: FloatArray, at: FloatArray) -> FloatArray:
        """Return the cumulative hazards of rows with risk scores f, shape (len(f), len(at)).

        It is infinite where it overflows.
        """
        steps = np.append(0.0, self.hazards)[np.searchsorted(self.times, at, side="right")]
        with np.errstate(over="ignore", invalid="ignore"):
            out = np.exp(f)[:, None] * steps
        return np.where(steps > 0.0, out, 0.0)
