"""
The path and the curve of cross-validation
==========================================

``alpha`` says how much a term must explain to come in. The *path* is the sequence of models for
decreasing ``alpha``. This script looks at a path, and at how cross-validation chooses a point of
it.
"""

from sklearn.datasets import load_diabetes

from hikernel import HKLRegressorCV, hkl_path
from hikernel.plots import plot_path

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)

# %%
# The path alone takes a fraction of a second. Each row is a model: how many terms it has, which
# part of the variance it explains on the training rows, and an estimate of its error on new ones
# that needs no folds.

path = hkl_path(X, y)
table = path.table()[["alpha", "terms", "explained", "error"]]
print(table.iloc[::3].to_string(index=False))

# %%
# Any of them predicts.

print(path.predict(X.head(3), alpha=path.alphas[8]).round(1))

# %%
# Cross-validation solves the path on every fold, too, and compares each model as it is and after
# *refits*, which estimate the selected terms once more. The default rule takes the fewest effects
# among the models that are about as good as the best.

model = HKLRegressorCV().fit(X, y)
print(f"alpha {model.alpha_:.2g}, refit {model.refit_}, {len(model.effects_)} effects")
plot_path(model)
