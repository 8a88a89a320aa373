"""Small models with chosen terms on small data, for every kind of basis."""

import itertools
from dataclasses import dataclass, fields

import numpy as np
from oracles.designs import design_of

from hikernel.bases import (
    Anova,
    AsinhPolynomial,
    Basis,
    FittedBasis,
    Gaussian,
    Hermite,
    KernelPCA,
    OrthonormalPolynomial,
    Polynomial,
    RankPolynomial,
    Spline,
)
from hikernel.bases.categorical import Categorical
from hikernel.selection import TermModel


@dataclass(frozen=True)
class Indicators(Basis):
    """A constant, then the indicators of the values as one block, not centred: of mean > 0."""

    name = "indicators"

    def _fit(self, column, scaler):
        return FittedIndicators(scaler, True, column.values)


@dataclass(frozen=True, eq=False)
class FittedIndicators(FittedBasis):
    values: np.ndarray

    @property
    def widths(self):
        return (1, len(self.values))

    def _levels(self, z):
        return [np.ones((z.size, 1)), (z[:, None] == self.values).astype(float)]


BASES = {
    "orthonormal": [OrthonormalPolynomial(3)] * 3,
    "asinh": [AsinhPolynomial(3)] * 3,
    "polynomial": [Polynomial(3)] * 3,
    "hermite": [Hermite(3)] * 3,
    "rank": [RankPolynomial(3)] * 3,
    "gaussian": [Gaussian(3, constant_level=True)] * 3,
    "gaussian-cut": [Gaussian(3, constant_level=True, remainder=False)] * 3,
    "kernel_pca": [KernelPCA(degree=3, constant_level=True)] * 3,
    "anova": [Anova()] * 3,
    "spline": [Spline(tol=1e-8)] * 3,
    "indicators": [Indicators()] * 3,
    "categorical": [Categorical()] * 3,
    "mixed": [Indicators(), Spline(tol=1e-8), OrthonormalPolynomial(3)],
    "mixed-polynomials": [Polynomial(2), Hermite(3), OrthonormalPolynomial(3)],
    "mixed with asinh": [AsinhPolynomial(3), OrthonormalPolynomial(3), Hermite(2)],
    "mixed with ranks": [RankPolynomial(2), Hermite(3), OrthonormalPolynomial(3)],
}
BUMPS = {
    "bumps": [Gaussian(2)] * 3,
    "single bumps": [Gaussian(2, remainder=False)] * 3,
    "some bumps": [Gaussian(2, remainder=False), Polynomial(2), OrthonormalPolynomial(2)],
}
POLYNOMIAL = [
    "orthonormal",
    "asinh",
    "polynomial",
    "hermite",
    "mixed-polynomials",
    "mixed with asinh",
]


def small_data(seed=0):
    """Rows with 4, 3 and 5 distinct values, unevenly spread, and weights, one of them zero."""
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=4), 2000.0 + rng.normal(size=3), 0.01 * rng.exponential(size=5)]
    X = np.column_stack([rng.choice(v, 40, p=rng.dirichlet(3 + 0 * v)) for v in values])
    X[:5] = np.column_stack([np.resize(v, 5) for v in values])
    weights = rng.integers(1, 4, 40).astype(float)
    weights[-1] = 0.0
    return X, weights


def make_model(design, nodes, seed=0, n_outputs=None, empty=()):
    """A model with random coefficients at the nodes; the nodes in ``empty`` have none."""
    rng = np.random.default_rng(seed)
    outputs = () if n_outputs is None else (n_outputs,)
    everywhere = [m for m, basis in enumerate(design.bases) if not basis.constant_level]
    widths, blocks = [], []
    for node in nodes:
        levels = dict(node)
        pairs = [(m, levels.get(m, 0)) for m in {*levels, *everywhere}]
        widths.append(
            int(np.prod([design.bases[m].widths[level] for m, level in pairs], dtype=int))
        )
        blocks.append(rng.normal(size=(widths[-1], *outputs)) * (node not in empty))
    norms = np.array([np.linalg.norm(block) for block in blocks])
    values = dict.fromkeys(field.name for field in fields(TermModel))
    values |= {
        "nodes": list(nodes),
        "widths": np.array(widths),
        "coef": np.concatenate(blocks) if blocks else np.empty((0, *outputs)),
        "intercept": rng.normal(size=outputs) if outputs else np.float64(0.7),
        "norms": norms,
        "shares": norms / max(norms.sum(), 1e-300),
    }
    return TermModel(**values)


def fitted(bases, seed=0, n_outputs=None, max_terms=14, names=None):
    """Data, design and a model with terms of orders 0 to 3, an empty one among them."""
    X, weights = small_data(seed)
    design = design_of(X, bases, weights, names=names)
    grid = itertools.product(*(range(basis.max_level + 1) for basis in design.bases))
    nodes = [tuple((m, level) for m, level in enumerate(levels) if level) for levels in grid]
    rng = np.random.default_rng(seed)
    chosen = sorted(rng.choice(len(nodes), min(max_terms, len(nodes)), replace=False))
    nodes = [nodes[i] for i in chosen]
    model = make_model(design, nodes, seed, n_outputs, empty=nodes[3:4])
    return X, weights, design, model
