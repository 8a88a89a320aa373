"""Conformal prediction: sizes of intervals and sets from the errors on rows that a model never saw.

Let s_1, ..., s_n be the conformity scores of the calibration rows, larger for a worse prediction,
and s the score of a new row. If these n + 1 rows are exchangeable, the rank of s among them is
uniform. With q the k-th smallest of s_1, ..., s_n and k = ceil((n + 1) level),

    P(s <= q) >= level,   and <= level + 1 / (n + 1) if no scores are tied

(Vovk, Gammerman & Shafer 2005), whatever the model and the distribution. The probability is over
calibration rows and new row together; for given calibration rows the coverage varies about level,
with a standard deviation of about sqrt(level (1 - level) / n). If k > n no q is large enough, and
q is infinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from hikernel.engines.protocol import FloatArray

__all__ = ["Calibration", "least_rows"]


@dataclass(frozen=True)
class Calibration:
    """The conformity scores of calibration rows.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        Scores in increasing order.
    scaled : bool
        Whether they are relative to a standard deviation of each row.
    cross : bool
        Whether they come from models of folds, in place of rows that the model has not seen.
    """

    scores: FloatArray
    scaled: bool = False
    cross: bool = False

    def quantile(self, level: float) -> float:
        """Return the k-th smallest score, k = ceil((n + 1) level); infinity if k > n.

        The level counts as the decimal number that it is written as: 0.9 is nine tenths, so that
        (n + 1) level is exact.

        >>> import numpy as np
        >>> Calibration(np.array([1.0, 2.0, 3.0, 4.0])).quantile(0.8)
        4.0
        """
        k = math.ceil((len(self.scores) + 1) * Fraction(repr(float(level))))
        return float(self.scores[k - 1]) if k <= len(self.scores) else math.inf


def least_rows(level: float) -> int:
    """Return the least number of calibration rows with a finite quantile at a level.

    >>> least_rows(0.9)
    9
    """
    exact = Fraction(repr(float(level)))
    return math.ceil(exact / (1 - exact))
