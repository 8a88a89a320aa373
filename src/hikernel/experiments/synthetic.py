"""Generated data whose true terms are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hikernel.engines.protocol import FloatArray, Node

__all__ = ["KnownTruth", "make_polynomial"]


@dataclass(frozen=True)
class KnownTruth:
    """Rows with the function that made them.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Normal inputs, correlation 0.3^|i - j| between columns i and j.
    y : ndarray of shape (n,)
        signal + noise.
    signal : ndarray of shape (n,)
        sum over the terms of coefficient times the product of x^level.
    terms : dict of Node to float
        The terms and their coefficients.
    """

    X: FloatArray
    y: FloatArray
    signal: FloatArray
    terms: dict[Node, float]


def make_polynomial(
    n: int, p: int, terms: dict[Node, float], *, noise: float, seed: int
) -> KnownTruth:
    """Draw data from a sparse polynomial of correlated normal variables.

    Parameters
    ----------
    n, p : int
        Rows and variables.
    terms : dict of Node to float
        ((variable, power), ...) and coefficients.
    noise : float
        Standard deviation of the noise as a fraction of that of the signal.
    seed : int
        Seed of the generator.

    Examples
    --------
    >>> data = make_polynomial(100, 3, {((0, 1), (2, 2)): 2.0}, noise=0.0, seed=0)
    >>> bool(np.allclose(data.y, 2.0 * data.X[:, 0] * data.X[:, 2] ** 2))
    True
    """
    rng = np.random.default_rng(seed)
    covariance = 0.3 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    X = rng.multivariate_normal(np.zeros(p), covariance, size=n, method="cholesky")
    signal = np.zeros(n)
    for node, coefficient in terms.items():
        signal += coefficient * np.prod([X[:, m] ** power for m, power in node], axis=0)
    y = signal + noise * np.std(signal) * rng.standard_normal(n)
    return KnownTruth(X, y, signal, terms)
