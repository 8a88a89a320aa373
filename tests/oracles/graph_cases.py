"""A small graph given as features, kernels, Gram matrices and all of them mixed."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from hikernel import (
    HKLClassifier,
    HKLRegressor,
)
from hikernel.graphs import KernelGraph
from hikernel.losses import Quantile

N = 40
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 4))
NEW = RNG.standard_normal((7, 4))
SIGNAL = X[:, 0] + X[:, 1] * X[:, 2]
NUMBERS = SIGNAL + 0.1 * RNG.standard_normal(N)
COUNTS = np.round(np.exp(SIGNAL / 2))
SIGNS = np.where(SIGNAL + 0.3 * RNG.standard_normal(N) > 0, "yes", "no")
CLASSES = np.array(list("abc"))[np.digitize(SIGNAL, [-0.7, 0.7])]
EDGES = {"both": ["left", "right"], "cube": ["left"]}


def left(X):
    return X[:, :2]


def right(X):
    return X[:, 2:]


def both(X):
    return np.einsum("ni,nj->nij", X[:, :2], X[:, 2:]).reshape(len(X), -1)


def cube(X):
    return X[:, 0] ** 3


MAPS = {"left": left, "right": right, "both": both, "cube": cube}


class Kernel:
    """The kernel of a feature map; a class, for pickle."""

    def __init__(self, phi):
        self.phi = phi

    def __call__(self, A, B):
        return self.phi(A).reshape(len(A), -1) @ self.phi(B).reshape(len(B), -1).T


KERNELS = {node: Kernel(phi) for node, phi in MAPS.items()}


def make_graph(kind, dtype=None):
    """The same kernels, given in different ways; "blocks" and "grams" take row numbers."""
    if kind == "features":
        return KernelGraph(EDGES, features=MAPS)
    if kind == "kernels":
        return KernelGraph(EDGES, kernels=KERNELS, dtype=dtype)
    if kind == "mixed":
        some = {"left", "both"}
        return KernelGraph(
            EDGES,
            features={node: phi for node, phi in MAPS.items() if node in some},
            kernels={node: k for node, k in KERNELS.items() if node not in some},
        )
    every = np.vstack([X, NEW])
    if kind == "blocks":
        return KernelGraph(EDGES, features={node: phi(every) for node, phi in MAPS.items()})
    return KernelGraph(EDGES, grams={node: k(every, every) for node, k in KERNELS.items()})


def rows_of(kind):
    """Training and new rows, as the graph takes them."""
    if kind in ("blocks", "grams"):
        return np.arange(N), N + np.arange(len(NEW))
    return X, NEW


KINDS = ["features", "kernels", "mixed", "blocks", "grams"]
OTHER_KINDS = KINDS[1:]
ESTIMATORS = {
    "squared_error": (HKLRegressor(0.01), NUMBERS),
    "quantile": (HKLRegressor(0.01, loss=Quantile(0.7)), NUMBERS),
    "huber": (HKLRegressor(0.01, loss="huber"), NUMBERS),
    "poisson": (HKLRegressor(0.01, loss="poisson"), COUNTS),
    "log_loss": (HKLClassifier(0.01), SIGNS),
    "hinge": (HKLClassifier(0.01, loss="hinge"), SIGNS),
    "multinomial": (HKLClassifier(0.01), CLASSES),
    "one-vs-rest": (HKLClassifier(0.01, loss="squared_hinge"), CLASSES),
}


def fitted(kind, name="squared_error", sample_weight=None, **parameters):
    estimator, y = ESTIMATORS[name]
    model = clone(estimator).set_params(graph=make_graph(kind), **parameters)
    return model.fit(rows_of(kind)[0], y, sample_weight)
