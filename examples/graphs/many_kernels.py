"""
Kernels of your own
===================

A small hierarchy first: two groups of measurements of a patient, each with a smooth kernel, and
their interaction, which may enter only together with both. Then flat multiple kernel learning: a
hundred kernels without any order, of which three matter.
"""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from hikernel import HKLRegressor, HKLRegressorCV
from hikernel.graphs import KernelGraph
from hikernel.plots import plot_hull

# %%
# A hierarchy
# -----------
# A kernel is a function of two sets of rows. An edge goes from what comes first to what builds on
# it.


def blood(X, Z):
    """Return a Gaussian kernel of the first two columns."""
    return rbf_kernel(X[:, :2], Z[:, :2], gamma=0.5)


def heart(X, Z):
    """Return a Gaussian kernel of the last two columns."""
    return rbf_kernel(X[:, 2:], Z[:, 2:], gamma=0.5)


def both(X, Z):
    """Return their product: functions of all four columns."""
    return blood(X, Z) * heart(X, Z)


graph = KernelGraph(
    [("blood", "blood * heart"), ("heart", "blood * heart")],
    kernels={"blood": blood, "heart": heart, "blood * heart": both},
)

# %%
# With an additive truth the interaction stays out. With an interaction it comes in, and with it
# both of its parents.

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 4))
truths = {
    "additive truth": np.sin(X[:, 0]) + X[:, 2] ** 2,
    "interaction": np.sin(X[:, 0]) * X[:, 2],
}
for name, signal in truths.items():
    y = signal + 0.1 * rng.standard_normal(200)
    model = HKLRegressorCV(graph=graph, refit=None, rule="one_se").fit(X, y)
    print(f"{name}: {', '.join(model.terms_.query('share > 0.001')['term'])}")
plot_hull(model)  # of the second one

# %%
# No edges
# --------
# Without edges the kernels compete as equals. Features are given for all 400 items here, and X
# names the rows by number.

blocks = {f"block {k}": rng.standard_normal((400, 5)) for k in range(100)}
y = sum(blocks[f"block {k}"] @ rng.standard_normal(5) for k in (3, 14, 15))
flat = HKLRegressor(alpha=0.3, graph=KernelGraph(features=blocks)).fit(np.arange(400), y)
print(f"flat: {', '.join(flat.hull_['term'])}; certified: {flat.certificate_.certified}")
