"""Generated data whose true terms are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hikernel.engines.protocol import FloatArray, Node
from hikernel.experiments.settings import FIGURE, FigureSettings

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FigureData",
    "KnownTruth",
    "draw_figure_data",
    "make_polynomial",
    "make_ringnorm",
    "make_twonorm",
]


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


def make_twonorm(n: int, *, seed: int) -> pd.DataFrame:
    """Draw Breiman's twonorm: N(a, I) for target 0, N(-a, I) for target 1, a = 2/sqrt(20).

    Parameters
    ----------
    n : int
        Rows; each class has the probability one half.
    seed : int
        Seed of the generator.

    Returns
    -------
    pandas.DataFrame of shape (n, 21)
        Twenty columns and ``target``.
    """
    rng = np.random.default_rng(seed)
    target = rng.integers(2, size=n)
    shift = 2.0 / np.sqrt(20.0) * (1.0 - 2.0 * target)
    return _labelled(rng.standard_normal((n, 20)) + shift[:, None], target)


def make_ringnorm(n: int, *, seed: int) -> pd.DataFrame:
    """Draw Breiman's ringnorm: N(0, 4 I) for target 0, N(a, I) for target 1, a = 2/sqrt(20).

    Parameters and result are those of :func:`make_twonorm`.
    """
    rng = np.random.default_rng(seed)
    target = rng.integers(2, size=n)
    scale = 2.0 - target
    X = scale[:, None] * rng.standard_normal((n, 20)) + (2.0 / np.sqrt(20.0) * target)[:, None]
    return _labelled(X, target)


def _labelled(X: FloatArray, target: np.ndarray) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(X, columns=[f"x{m}" for m in range(X.shape[1])]).assign(target=target)


@dataclass(frozen=True)
class FigureData:
    """One replication of the synthetic figure.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Normal inputs with a random covariance, rotated or not.
    y : ndarray of shape (n,)
        A sparse polynomial of the inputs before rotation, and noise.
    n_train : int
        The first rows, for training.
    """

    X: FloatArray
    y: FloatArray
    n_train: int


def draw_figure_data(
    p: int, seed: int, *, rotated: bool, settings: FigureSettings = FIGURE
) -> FigureData:
    """Draw y = sum_k c_k prod_m x_m^(a_km) + noise, sum_m a_km <= 4.

    The covariance is that of Wishart's distribution with p degrees of freedom, scaled to unit
    variances. A monomial has a degree drawn from 1..4 and variables drawn with replacement; each is
    scaled to variance one and gets a normal coefficient. Plain and rotated data of one
    seed have the same y.

    Parameters
    ----------
    p : int
        Variables.
    seed : int
        Of the replication.
    rotated : bool
        Whether the inputs are multiplied by a random rotation.
    settings : FigureSettings
        Rows, monomials and noise.
    """
    rng = np.random.default_rng([seed, p])
    n = settings.n_train + settings.n_test
    factor = rng.standard_normal((p, p))
    factor /= np.linalg.norm(factor, axis=1, keepdims=True)
    X = rng.standard_normal((n, p)) @ factor.T
    signal = np.zeros(n)
    for _ in range(settings.n_monomials):
        degree = int(rng.integers(1, settings.max_degree + 1))
        monomial = np.prod(X[:, rng.integers(p, size=degree)], axis=1)
        signal += rng.standard_normal() * monomial / np.std(monomial)
    y = signal + settings.noise * np.std(signal) * rng.standard_normal(n)
    if rotated:
        Q, R = np.linalg.qr(rng.standard_normal((p, p)))
        X = X @ (Q * np.sign(np.diag(R)))
    return FigureData(X, y, settings.n_train)
