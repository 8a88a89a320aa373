"""
Main effects and interactions
=============================

Rents of flats, made up so that the truth is known. The rent grows with the area, faster in the
centre than in the south: an interaction of a number and a category. It falls with the distance to
the next station, and is lowest for flats of the 1960s. The floor does not matter.
"""

import numpy as np
import pandas as pd

from hikernel import HKLRegressorCV
from hikernel.plots import plot_effect, plot_effects, plot_importance

rng = np.random.default_rng(0)
n = 400
X = pd.DataFrame(
    {
        "area": rng.gamma(8, 9, n).round(),
        "year": rng.integers(1900, 2024, n),
        "distance": rng.gamma(2, 2.5, n).round(1),
        "district": rng.choice(["Centre", "Harbour", "North", "South"], n, p=[0.3, 0.2, 0.3, 0.2]),
        "floor": rng.integers(0, 6, n),
        "balcony": rng.random(n) < 0.4,
    }
)
per_area = X["district"].map({"Centre": 14.0, "Harbour": 11.0, "North": 8.5, "South": 7.0})
rent = 250 + per_area * X["area"] - 35 * X["distance"] + 0.03 * (X["year"] - 1965) ** 2
y = (rent + 60 * X["balcony"] + rng.normal(0, 60, n)).rename("rent")

# %%
# The cross-validated estimator needs no setting. An *effect* is all that a set of variables does
# together; its *share* is the variance of its terms, divided by the sum of the variances of all
# terms. Effects can cancel each other: these are not shares of the variance of the prediction.

model = HKLRegressorCV().fit(X, y)
print(model.effects_[["effect", "order", "share", "shape"]].round(3).to_string(index=False))

# %%
# The largest effects side by side. Below a curve is the density of the data: where there are few
# rows, a curve is a guess.

plot_effects(model)

# %%
# The interaction alone: what the area adds or takes away in each district, beyond what both do
# alone.

plot_effect(model, "area * district")

# %%
# How much each effect matters.

plot_importance(model)
