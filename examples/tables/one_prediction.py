"""
Why this prediction?
====================

The model is a sum of effects, so that a prediction is a sum, too: a constant, the intercept, plus
what each effect adds or takes away.
"""

from sklearn.datasets import load_diabetes

from hikernel import HKLRegressorCV
from hikernel.plots import plot_prediction

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = HKLRegressorCV().fit(X, y)

# %%
# One patient, in words and numbers.

patient = X.iloc[[10]]
reasons = model.explain(patient)
print(reasons)

# %%
# The same as a picture: from the intercept to the prediction, the largest effects first.

plot_prediction(model, reasons)

# %%
# The columns of ``effects`` add up to the prediction, for as many rows as one likes.

parts = model.effects(X.head(3))
print(parts.sum(axis=1).round(2).tolist())
print(model.predict(X.head(3)).round(2).tolist())
