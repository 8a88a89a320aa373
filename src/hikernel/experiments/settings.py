"""Every choice of the reproduction that the paper leaves open, in one place.

The paper says which kernels and methods it compares, and that the best regularisation parameter of
ten half splits is reported. It does not say how inputs are scaled, how wide the Gaussian kernel
is, what the weights d_v are, or which lambdas were tried. All of that is decided here, with the
reason, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from hikernel.bases import Basis, Gaussian, Polynomial
from hikernel.engines.protocol import FloatArray
from hikernel.experiments.paper_bases import RawPolynomial, centred_gaussian

__all__ = [
    "CLASSIFICATION_ROWS",
    "CLIP",
    "CV_CRITERION",
    "CV_FOLDS",
    "FIGURE",
    "GREEDY_KERNELS",
    "GREEDY_RIDGE",
    "INDICATORS",
    "KERNELS",
    "L2_GRID",
    "LASSO_GRID",
    "LASSO_STEPS",
    "LOG_OFFSET",
    "MAX_KERNELS",
    "MKL_GRID",
    "NORM_ROWS",
    "NORM_SEED",
    "SEEDS",
    "SLOW_SPLITS",
    "FigureSettings",
    "KernelChoice",
    "kernel_for",
]

SEEDS: Final = tuple(range(10))
"""Ten half splits: permutation(n) of default_rng(seed), first half for training."""

SLOW_SPLITS: Final = {"greedy": 3, "lasso-alpha": 3, "MKL": 3}
"""Splits of the slower baselines of the first table: the first seeds."""

CLASSIFICATION_ROWS: Final = 1024
"""n in the second table: the first rows of the permutation, one half of them for training."""

NORM_ROWS: Final = 7400
NORM_SEED: Final = 0
"""Rows and seed of twonorm and ringnorm where they are drawn by their formulas: the rows of the
files in the archives."""

LOG_OFFSET: Final = {"spambase": 0.1}
"""Inputs of a set become log(offset + x): word frequencies, most of them zero."""

CLIP: Final = {"spambase": 3.0}
"""Standard deviations of the training half at which the inputs of a set are cut off. Rare words
reach 40 of them, where products of fourth powers see single rows and nothing else: with 512 rows
the hull is full at the first lambda (error 38 on spambase)."""

INDICATORS: Final = frozenset({"mushrooms"})
"""Sets of indicators, whose polynomial levels are those of 0 and 1 as they are. Standardised, a
rare category is 20 where it is present, with the same outcome."""

CV_FOLDS: Final = 3
"""Shuffled folds inside the training half, for the second, honest number. L2 regression has exact
leave-one-out in their place, which is free."""

CV_CRITERION: Final = {"regression": "squared_error", "classification": "log_loss"}
"""What the folds measure. The log loss is steadier than error rates on so few rows."""

RBF_WIDTH: Final = 0.05
RBF_WIDTHS: Final[dict[str, float]] = {
    "abalone": 0.5,
    "bank-32fh": 0.02,
    "bank-32nh": 0.02,
    "pumadyn-32fh": 0.5,
    "pumadyn-32fm": 0.15,
    "pumadyn-32nh": 0.15,
    "pumadyn-32nm": 0.15,
    "ringnorm": 0.15,
    "spambase": 0.5,
    "twonorm": 0.007,
}
"""b of exp(-b (x - z)^2), x standardised, and the sets that have another one. The paper holds
kernels fixed and does not say how. Ours are chosen among 0.02, 0.05, 0.15 and 0.5, and 0.007 or 1.5
where the best of these is an end, on splits that are not those of the tables
(``benchmarks/kernel_choice.py``)."""

WEIGHT_BASE: Final = 6.0
WEIGHT_BASES: Final[dict[str, float]] = {
    "bank-32fm": 9.0,
    "boston": 13.5,
    "pumadyn-32fh": 2.7,
    "pumadyn-32fm": 2.7,
    "pumadyn-32nh": 2.7,
    "pumadyn-32nm": 2.7,
    "mushrooms": 9.0,
    "ringnorm": 2.7,
    "twonorm": 2.7,
    "magic04": 13.5,
}
"""d_v of pol4 is this to the sum of the levels, and the sets that have another base, chosen in the
same way: among 4, 6 and 9, and 2.7 or 13.5 where the best of these is an end."""

MEHLER_WIDTH: Final = 0.02
"""b of Mehler's split, where the product over all variables is one Gaussian kernel."""

MAX_KERNELS: Final = 600
"""Q of the paper's algorithm, which it does not state. A path that fills it ends there, and its
last model stands for all smaller lambdas. Where the best parameter is that of the last model, the
page says so: more kernels might do better."""

L2_GRID: Final = np.geomspace(1.0, 1e-9, 28)
"""lambda of the full kernel over the mean of its diagonal: three a decade."""

LASSO_GRID: Final = np.geomspace(0.5, 1e-6, 24)
"""l1 penalty over the smallest that leaves nothing: four a decade."""
LASSO_STEPS: Final = 2000
"""Corners of its path at most; the last model stands for smaller penalties. The tables say where
the best is that last model."""

MKL_GRID: Final = np.geomspace(1.0, 1e-9, 28)
"""lambda of MKL; its kernels have mean one on the diagonal."""

GREEDY_KERNELS: Final = 60
"""Kernels that forward selection may take; each number up to this is a point of its path."""
GREEDY_RIDGE: Final = 1e-4
"""Penalty of its refits; features have unit mean square."""


@dataclass(frozen=True)
class KernelChoice:
    """One kernel of the tables and what HKL and the full-kernel baselines do with it.

    Attributes
    ----------
    name : str
        As in the paper's column k.
    levels : int
        Kernels per variable, so that there are levels^p vertices.
    basis : callable or None
        Makes the one-variable decomposition; None is the default of the estimators, chosen per
        column, on the table as it is and not on indicator columns.
    weight_base : float
        d_v = weight_base^(sum of levels); the root has weight one.
    alphas : ndarray of shape (k,)
        lambda of HKL, largest first: one grid for all splits, so that they can be averaged. y is
        standardised by the estimators, which makes lambda comparable between data sets.
    share, decay : float
        c and t of the full kernel of L2 and lasso-alpha, the product over variables of
        k_m0 + c sum_{j >= 1} t^(j-1) k_mj, the sum scaled to mean one.
    """

    name: str
    levels: int
    basis: Callable[[], Basis] | None
    weight_base: float
    alphas: FloatArray
    share: float | None = 0.1
    decay: float = 1.0

    def make_basis(self) -> Any:
        """Return what ``hkl_path`` takes as ``basis``."""
        return "auto" if self.basis is None else self.basis()


def _grid(first: float, last: float, per_decade: int = 4) -> FloatArray:
    decades = np.log10(first / last)
    return np.geomspace(first, last, round(per_decade * decades) + 1)


KERNELS: Final[dict[str, KernelChoice]] = {
    # sqrt(binom(4, j)) x^j on standardised inputs. The powers are not normalised (x^4 has a
    # standard deviation near 10, in the tails far more), so that weights must outgrow them: at
    # base 2 hulls fill with products of powers at the first lambda on the skewed columns of bank,
    # boston and abalone; from 5 on they do not. The toolbox suggests 4.
    # The full kernel prod (1 + x z)^4 of 32 standardised variables is the identity matrix in
    # floating point (L2 error 100 on all sets, which is not what the paper's L2 column shows), so
    # that its levels are damped.
    "pol4": KernelChoice(
        name="pol4",
        levels=5,
        basis=lambda: Polynomial(degree=4),
        weight_base=WEIGHT_BASE,
        alphas=_grid(1.0, 1e-8),
        share=0.01,
        decay=0.03,
    ),
    # exp(-b (x - z)^2), split by kernel PCA: a constant, seven directions, the remainder. The paper
    # names this split beside Mehler's and saw no significant differences. The constant is our
    # choice: without it (see "mehler") the full kernel is the isotropic Gaussian of 32 variables,
    # whose L2 error on pumadyn-32nm is 80 at any width, where the paper's L2 column has 15.7; with
    # it, and a small share of each variable, L2 comes to 16.6. b is in `RBF_WIDTHS`.
    "rbf": KernelChoice(
        name="rbf",
        levels=9,
        basis=lambda: centred_gaussian(RBF_WIDTH),
        weight_base=1.3,
        alphas=_grid(1.0, 1e-9),
        share=0.01,
    ),
    # Mehler's split as printed: level 0 is a bump, every term contains all variables.
    "mehler": KernelChoice(
        name="mehler",
        levels=9,
        basis=lambda: Gaussian(degree=8, b=MEHLER_WIDTH),
        weight_base=1.3,
        alphas=_grid(0.1, 1e-10, 2),
        share=None,
    ),
    "default": KernelChoice(
        name="default",
        levels=5,
        basis=None,
        weight_base=2.0,
        alphas=_grid(10.0, 1e-6),
    ),
}


def kernel_for(data: str, name: str) -> KernelChoice:
    """Return a kernel of the tables as a data set gets it."""
    kernel = KERNELS[name]
    if name == "rbf" and data in RBF_WIDTHS:
        kernel = replace(kernel, basis=lambda: centred_gaussian(RBF_WIDTHS[data]))
    if name == "pol4" and data in WEIGHT_BASES:
        kernel = replace(kernel, weight_base=WEIGHT_BASES[data])
    if name == "pol4" and data in INDICATORS:
        kernel = replace(kernel, basis=lambda: RawPolynomial(degree=4))
    return kernel


@dataclass(frozen=True)
class FigureSettings:
    """How the data of the synthetic figure are drawn.

    Attributes
    ----------
    n_train : int
        n of the paper, all of it for training.
    n_test : int
        Fresh rows for the error.
    variables : tuple of int
        2^2 .. 2^7.
    n_monomials : int
        "Constant number of monomials".
    max_degree : int
        Of a monomial: fourth order.
    noise : float
        Standard deviation of the noise over that of the polynomial.
    replications : int
        Draws per number of variables.
    """

    n_train: int = 1024
    n_test: int = 1024
    variables: tuple[int, ...] = (4, 8, 16, 32, 64, 128)
    n_monomials: int = 4
    max_degree: int = 4
    noise: float = 0.1
    replications: int = 40


FIGURE: Final = FigureSettings()
