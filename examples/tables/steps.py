"""
Where functions jump: steps
===========================

Some things do not change smoothly. Customers leave after the fourth call to the service, unless
they are on the right plan; prices jump at round numbers. Smooth functions must bend around a jump.
``basis="auto+steps"`` gives columns of numbers a second family of functions, steps with cuts where
y jumps, and the model takes whichever fits.
"""

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from hikernel import HKLRegressor
from hikernel.plots import plot_effect

rng = np.random.default_rng(0)
n = 2000
X = pd.DataFrame(
    {
        "calls": rng.poisson(2.0, n),
        "minutes": rng.gamma(9.0, 20.0, n),
        "plan": rng.choice(["basic", "plus"], n, p=[0.7, 0.3]),
    }
)
many = X["calls"] > 3
y = 0.4 * many * (X["plan"] == "basic") + 0.5 * (X["minutes"] > 250) + 0.001 * X["minutes"]
y = (y + rng.normal(0, 0.1, n)).rename("complaints")
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# The same model without and with steps. Cross-validated estimators try them by themselves, and keep
# them where they pay.

smooth = HKLRegressor(refit="sparse").fit(X_train, y_train)
steps = HKLRegressor(refit="sparse", basis="auto+steps").fit(X_train, y_train)
for name, fitted in {"smooth": smooth, "with steps": steps}.items():
    print(f"{name:11} R^2 on new rows {fitted.score(X_test, y_test):.3f}")

# %%
# Terms with a step are named by their cuts.

print(steps.terms_[["term", "share"]].head(6).round(3).to_string(index=False))

# %%
# The effect of the minutes, smooth and with steps.

plot_effect(smooth, "minutes")

# %%

plot_effect(steps, "minutes")
