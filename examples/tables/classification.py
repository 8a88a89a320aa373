"""
Two classes, with probabilities
===============================

Tumours of the breast, benign or malignant, by thirty measurements of cell nuclei (a table of
scikit-learn). The model is an additive score and a logistic curve: what raises the score, raises
the probability.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hikernel import HKLClassifier
from hikernel.plots import plot_effects, plot_importance

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)

# %%
# ``alpha`` is chosen along the path, without folds, which takes a second. The refit estimates the
# selected terms once more and drops those that nobody misses.

model = HKLClassifier(refit="sparse").fit(X_train, y_train)
print(model.effects_[["effect", "share", "shape"]].round(3).to_string(index=False))

# %%
# Beside a logistic regression on all thirty columns, on rows that neither has seen. This table is
# nearly linear, and the regression is a little better; the model needs twelve of the columns.

linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X_train, y_train)
for name, fitted in {"hikernel": model, "logistic regression": linear}.items():
    wrong = (fitted.predict(X_test) != y_test).sum()
    loss = log_loss(y_test, fitted.predict_proba(X_test))
    print(f"{name:20} {wrong} of {len(y_test)} wrong, log loss {loss:.3f}")

# %%
# The effects are on the scale of the score f, where P(malignant) = 1 / (1 + exp(-f)).

plot_effects(model)

# %%
# And how much each matters.

plot_importance(model)
