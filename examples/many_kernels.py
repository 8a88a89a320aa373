"""Kernels of your own: a small hierarchy, and flat multiple kernel learning.

Two measurements of a patient, each with a smooth kernel, and their interaction, which may enter
only with both. Then a hundred kernels without any edges, of which three matter.
"""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from hikernel import HKLRegressor, HKLRegressorCV
from hikernel.graphs import KernelGraph


def blood(X, Z):
    """Return a Gaussian kernel of the first two columns."""
    return rbf_kernel(X[:, :2], Z[:, :2], gamma=0.5)


def heart(X, Z):
    """Return a Gaussian kernel of the last two columns."""
    return rbf_kernel(X[:, 2:], Z[:, 2:], gamma=0.5)


def both(X, Z):
    """Return their product: functions of all four columns."""
    return blood(X, Z) * heart(X, Z)


def main() -> None:
    """Fit both, and print what was selected."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    edges = [("blood", "blood * heart"), ("heart", "blood * heart")]
    kernels = {"blood": blood, "heart": heart, "blood * heart": both}
    graph = KernelGraph(edges, kernels=kernels)

    for name, y in {
        "additive truth": np.sin(X[:, 0]) + X[:, 2] ** 2,
        "interaction": np.sin(X[:, 0]) * X[:, 2],
    }.items():
        noisy = y + 0.1 * rng.standard_normal(400)
        model = HKLRegressorCV(graph=graph, refit=None, rule="one_se").fit(X, noisy)
        print(f"{name}: {', '.join(model.terms_.query('share > 0.001')['term'])}")

    blocks = {f"block {k}": rng.standard_normal((400, 5)) for k in range(100)}
    y = sum(blocks[f"block {k}"] @ rng.standard_normal(5) for k in (3, 14, 15))
    rows = np.arange(400)
    flat = HKLRegressor(alpha=0.3, graph=KernelGraph(features=blocks)).fit(rows, y)
    print(f"flat: {', '.join(flat.hull_['term'])}; certified: {flat.certificate_.certified}")


if __name__ == "__main__":
    main()
