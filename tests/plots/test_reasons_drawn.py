"""``plot_prediction`` draws what ``explain`` of an estimator returns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from hikernel import HKLClassifier, HKLRegressor
from hikernel.plots import plot_prediction

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def _no_screen():
    matplotlib.use("agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def widths(ax):
    return [bar.get_width() for bar in ax.patches]


def test_the_bars_are_the_reasons():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = HKLRegressor(alpha=0.01).fit(X, y)
    reasons = model.explain(X.iloc[[3]])
    ax = plot_prediction(model, reasons)
    parts = [reason.contributions[0] for reason in reasons.reasons]
    np.testing.assert_allclose(sorted(widths(ax), key=abs), sorted(parts, key=abs))
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert any(label.startswith("bmi = ") for label in labels)


def test_a_class_of_three():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    model = HKLClassifier(alpha=0.01).fit(X, names[y])
    row = X.iloc[[100]]
    only = model.explain(row)
    ax = plot_prediction(model, only)
    parts = [reason.contributions[0] for reason in only.reasons]
    np.testing.assert_allclose(sorted(widths(ax), key=abs), sorted(parts, key=abs))
    other = next(label for label in names if label not in only.classes)
    with pytest.raises(ValueError, match="not about"):
        plot_prediction(model, only, output=other)
    every = model.explain(row, classes=model.classes_)
    ax = plot_prediction(model, every, output=other)
    which = list(model.classes_).index(other)
    parts = [reason.contributions[which] for reason in every.reasons]
    np.testing.assert_allclose(sorted(widths(ax), key=abs), sorted(parts, key=abs))
