"""Pictures of models that were fitted, not of summaries made by hand."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from plots.looking import readable, visible_texts
from sklearn.datasets import load_diabetes, load_iris

import hikernel
from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV, stability_selection
from hikernel.datasets import make_motifs
from hikernel.graphs import SubstringGraph
from hikernel.plots import (
    plot_certificate,
    plot_effect,
    plot_effects,
    plot_hull,
    plot_importance,
    plot_path,
    plot_prediction,
    plot_stability,
)

pytestmark = pytest.mark.slow


def mixed_table():
    """Numbers, ordered and other categories, booleans, missing values, jumps, hostile names."""
    rng = np.random.default_rng(0)
    n = 400
    X = pd.DataFrame(
        {
            "size $": pd.Categorical(
                rng.choice(["S", "M", "L", "XL"], n), ["S", "M", "L", "XL"], ordered=True
            ),
            "town_": rng.choice(["Oslo", "Rome", "$Lima$"], n, p=[0.5, 0.3, 0.2]),
            "a very long name of a column, as people have them in their tables": rng.normal(size=n),
            "x\n%": rng.lognormal(sigma=2.0, size=n),
            "yes": rng.random(n) > 0.5,
            "count": rng.integers(0, 4, n).astype(float),
        }
    )
    z = X.iloc[:, 2].to_numpy(copy=True)
    y = X["size $"].cat.codes * np.where(X["town_"] == "Rome", 1.0, 0.2) + (z > 0.3) * (1.0 + z)
    y = y + np.log(X["x\n%"]) + X["yes"] * X["count"] + z * (X["count"] > 1)
    X.iloc[::9, 2] = np.nan
    return X, (y + 0.1 * rng.normal(size=n)).rename("price $")


def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


def fit_mixed():
    return HKLRegressor(alpha=3e-3, basis="auto+steps", certify="none").fit(*mixed_table())


def fit_iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    return HKLClassifier(alpha=0.003).fit(X, pd.Series(names[y], name="kind"))


def fit_counts():
    X, y = diabetes()
    return HKLRegressor(alpha=0.05, loss="poisson", certify="none").fit(X, y)


def fit_two_classes():
    X, y = diabetes()
    return HKLClassifier(alpha=0.01, certify="none").fit(X, np.where(y > 150, "high", "low"))


def fit_graph():
    data = make_motifs(150, 40, {"GATTACA": 1.0}, noise=0.1, seed=0)
    return HKLRegressor(0.05, graph=SubstringGraph(7, weight_base=1.0)).fit(data.X, data.y)


MODELS = {
    "diabetes": lambda: HKLRegressor().fit(*diabetes()),
    "cross-validated": lambda: HKLRegressorCV(cv=3, n_alphas=8, basis={}).fit(*diabetes()),
    "mixed": fit_mixed,
    "classes": fit_iris,
    "two classes": fit_two_classes,
    "counts": fit_counts,
    "graph": fit_graph,
    "constant": lambda: HKLRegressor(alpha=1e3, certify="none").fit(*diabetes()),
}


@cache
def fitted(name):
    """A model that all tests share."""
    return MODELS[name]()


@pytest.mark.parametrize("name", ["cross-validated", "mixed", "classes", "graph", "constant"])
def test_the_overview_and_the_parts_that_it_has(name):
    model = fitted(name)
    readable(model.plot())
    summary = json.loads(json.dumps(model.summary()))
    readable(plot_hull(summary))
    readable(plot_certificate(summary))
    if summary["path"]:
        readable(plot_path(summary))
    else:
        with pytest.raises(ValueError, match="no path over alpha"):
            plot_path(summary)
    if not summary["effects"]:
        with pytest.raises(ValueError, match="predicts a constant"):
            plot_importance(summary)
        return
    readable(plot_importance(summary))
    if not summary["variables"]:
        return
    readable(plot_importance(summary, by="variable"))
    readable(plot_effects(summary, max_effects=6))
    several = [k for k, e in enumerate(summary["effects"]) if len(e["view"]["axes"]) == 3]
    for k in {0, 1, *several[:1]}:
        panels = plot_effect(summary, k)
        assert k not in several or len(panels) > 1
        readable(panels)


def test_the_curve_of_a_model_is_its_effect():
    X, y = diabetes()
    model = HKLRegressor(alpha=0.05, certify="none").fit(X, y)
    ax = plot_effect(model, "bmi")
    x, height = next(line.get_data() for line in ax.lines if len(line.get_xdata()) > 10)
    rows = pd.concat([X.iloc[[0]]] * len(x), ignore_index=True).assign(bmi=x)
    np.testing.assert_allclose(height, model.effects(rows)["bmi"], atol=1e-9)


def test_a_loaded_model_has_the_same_picture(tmp_path):
    model = fitted("diabetes")
    model.save(tmp_path / "model.hik")
    said = [
        sorted(text.get_text() for text, _ in visible_texts(one.plot()))
        for one in (model, hikernel.load(tmp_path / "model.hik"))
    ]
    assert said[0] == said[1]


@pytest.mark.parametrize("name", ["diabetes", "mixed", "classes", "two classes", "counts", "graph"])
def test_a_prediction_adds_up(name):
    model = fitted(name)
    if name == "graph":
        X = make_motifs(150, 40, {"GATTACA": 1.0}, noise=0.1, seed=0).X[:1]
    elif name == "mixed":
        X = mixed_table()[0].iloc[[0]]
    else:
        X = (load_iris if name == "classes" else load_diabetes)(as_frame=True).data.iloc[[0]]
    explanation = model.explain(X)
    ax = plot_prediction(model, explanation, max_effects=4)
    bars = ax.containers[0]
    end = bars[-1].get_x() + bars[-1].get_width()
    assert bars[0].get_x() == pytest.approx(explanation.intercept[0])
    assert end == pytest.approx(explanation.f[0])
    assert ax.get_title(loc="left").startswith("prediction: ")
    readable(ax)


def test_a_row_of_effects_is_an_explanation():
    X, y = diabetes()
    model = HKLRegressor(alpha=0.05, certify="none").fit(X, y)
    bars = plot_prediction(model, model.effects(X.iloc[[3]]).iloc[0]).containers[0]
    end = bars[-1].get_x() + bars[-1].get_width()
    assert end == pytest.approx(model.predict(X.iloc[[3]])[0])


def test_frequencies_of_stability_selection():
    X, y = diabetes()
    found = stability_selection(HKLRegressor(alpha=0.05), X, y, n_subsamples=6)
    for by, table in (("term", found.terms), ("variable", found.variables)):
        ax = plot_stability(found, by=by)
        drawn = [label.get_text() for label in ax.get_yticklabels()]
        frequent = dict(zip(table[by], table["frequency"], strict=True))
        assert {
            name: bar.get_width() for name, bar in zip(drawn, ax.containers[0], strict=True)
        } == {name: share for name, share in frequent.items() if share > 0}
        readable(ax)
