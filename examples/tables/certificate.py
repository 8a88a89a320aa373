"""
What a certificate says
=======================

A model is chosen among millions of candidate terms, most of which nobody has looked at. The
*certificate* bounds what all of them together could still gain. It comes in three kinds: exact,
statistical, and none.
"""

import warnings

import numpy as np

from hikernel import HKLRegressor
from hikernel.errors import CertificateWarning
from hikernel.plots import plot_certificate

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(600, 12))
y = X[:, 0] + 2 * X[:, 1] * X[:, 2] - X[:, 3] ** 2 + 0.3 * rng.standard_normal(600)

# %%
# Exact: every one of the 244 million products is covered.

model = HKLRegressor(alpha=0.01).fit(X, y)
print(model.certificate_)

# %%
# The gap against the work. The default search proves once, at the end. The search of the paper
# proves on the way, so that one sees the gap fall below the tolerance.

paper = HKLRegressor(alpha=1e-4, search="paper").fit(X, y)
plot_certificate(paper)

# %%
# Statistical: random signs estimate the bound, in time that is linear in the rows. It holds with 95
# % confidence over these draws. By default it takes the place of the exact one where there are many
# rows.

sampled = HKLRegressor(alpha=0.01, certify="statistical").fit(X, y)
print(sampled.certificate_)

# %%
# None: the model is the same, and nothing is known about what it left out.

quick = HKLRegressor(alpha=0.01, certify="none").fit(X, y)
print(quick.certificate_)

# %%
# Not reached: a very small ``alpha`` lets many terms in, and here the problem may hold only 60 of
# them. The model warns, and its certificate says how much is proven and what to do.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    HKLRegressor(alpha=1e-5, max_kernels=60).fit(X, y)
print(next(str(item.message) for item in caught if item.category is CertificateWarning))
