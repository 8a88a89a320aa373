"""
How stable is the selection?
============================

On other rows, would the same terms have been selected? *Stability selection* fits the model to
many random halves of the rows and counts. What is selected on nearly all of them can be relied on;
what comes and goes cannot.
"""

import numpy as np
import pandas as pd

from hikernel import HKLRegressor, stability_selection
from hikernel.plots import plot_stability

rng = np.random.default_rng(0)
names = ["dose", "age", "weight", "pulse", "sugar", *(f"noise {i}" for i in range(1, 16))]
X = pd.DataFrame(rng.standard_normal((400, 20)), columns=names)
X["weight"] = 0.7 * X["age"] + 0.7 * X["weight"]  # a correlated column that does not matter
y = X["dose"] + 0.8 * X["age"] * X["pulse"] + 0.5 * X["sugar"] ** 2 + rng.normal(0, 0.7, 400)

# %%
# Fifty halves of 200 rows each. A term counts as selected if it is found on nine of ten.

result = stability_selection(HKLRegressor(alpha=0.003), X, y, threshold=0.9)
print(result.terms.head(10).to_string(index=False))

# %%
# The threshold divides what counts as selected from what does not.

plot_stability(result)

# %%
# A bound on how many of the selected variables are expected to be false. It assumes nothing about
# how columns depend on each other, and is far from tight.

print(result.variables.query("selected").to_string(index=False))
print(f"at most {result.false_variables:.1f} false variables expected")
