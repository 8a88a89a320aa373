"""Stability selection: frequencies of terms over subsamples."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Lasso

import hikernel
from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV, stability_selection
from hikernel.columns import column_grid
from hikernel.estimators.stability import _pairs

pytestmark = pytest.mark.slow

TRUE_TERMS = {"x0", "x1", "x2", "x1 * x2"}


def data(n=300, p=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, p))
    y = X[:, 0] + 2.0 * X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)
    return X, y


def test_true_terms_are_stable_and_noise_is_not():
    X, y = data()
    found = stability_selection(HKLRegressor(0.02), X, y, n_subsamples=20)
    frequency = found.terms.set_index("term")["frequency"]
    assert frequency[sorted(TRUE_TERMS)].min() > 0.95
    assert frequency.drop(sorted(TRUE_TERMS)).max() < 0.4
    assert set(found.terms.query("selected")["term"]) == TRUE_TERMS
    assert found.variables["selected"].tolist() == [True] * 3 + [False] * 5
    assert "1" not in frequency.index


def test_the_result_is_complete_and_frozen():
    X, y = data(101, 4)
    found = stability_selection(HKLRegressor(0.02), X, y, n_subsamples=6, threshold=0.7)
    assert list(found.terms.columns) == ["term", "order", "degree", "frequency", "selected"]
    assert list(found.variables.columns) == ["variable", "frequency", "selected"]
    assert found.variables["variable"].tolist() == ["x0", "x1", "x2", "x3"]
    assert found.terms["frequency"].is_monotonic_decreasing
    assert found.terms["frequency"].between(1 / 6, 1.0).all()
    assert (found.terms["selected"] == (found.terms["frequency"] >= 0.7)).all()
    pair = found.terms.set_index("term").loc["x1 * x2"]
    assert (pair["order"], pair["degree"]) == (2, 2)
    assert (found.threshold, found.n_subsamples, found.subsample_size) == (0.7, 6, 50)
    assert found.mean_terms == pytest.approx(found.terms["frequency"].sum())
    q = found.variables["frequency"].sum()
    assert found.mean_variables == pytest.approx(q)
    assert found.false_variables == pytest.approx(q**2 / (0.4 * 4))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.threshold = 0.1


def test_frequencies_are_those_of_fits_by_hand():
    X, y = data(80, 3)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 80)
    found = stability_selection(HKLRegressor(0.05), X, y, sample_weight=weights, n_subsamples=4)
    counts: dict[str, int] = {}
    for rows in _pairs(None, weights, 4, 0.5, 0):
        model = HKLRegressor(0.05, certify="none").fit(X[rows], y[rows], weights[rows])
        for term in model.hull_.query("norm > 0 and degree > 0")["term"]:
            counts[term] = counts.get(term, 0) + 1
    assert found.terms.set_index("term")["frequency"].to_dict() == {
        term: count / 4 for term, count in counts.items()
    }


def test_the_table_is_read_once_and_the_bases_are_those_of_each_subsample(monkeypatch):
    """As fits by hand, with categories and missing values that some subsamples do not have."""
    X, y = data(80, 3)
    rng = np.random.default_rng(2)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table["town"] = rng.choice(["Oslo", "Rome", "Bergen", "Paris"], 80, p=[0.5, 0.4, 0.08, 0.02])
    table.loc[:1, "b"] = np.nan
    y = y + 2.0 * (table["town"] == "Oslo")
    counts: dict[str, int] = {}
    for rows in _pairs(None, np.ones(80), 6, 0.5, 0):
        terms = set()
        for alpha in (0.05, 0.01):
            model = HKLRegressor(alpha, certify="none").fit(table.iloc[rows], y[rows])
            terms |= set(model.hull_.query("norm > 0 and degree > 0")["term"])
        for term in terms:
            counts[term] = counts.get(term, 0) + 1
    reads = []
    original = column_grid.read_table
    monkeypatch.setattr(column_grid, "read_table", lambda X: reads.append(X) or original(X))
    found = stability_selection(HKLRegressor(), table, y, alphas=[0.05, 0.01], n_subsamples=6)
    assert len(reads) == 1
    frequency = found.terms.set_index("term")["frequency"].to_dict()
    assert frequency == pytest.approx({t: count / 6 for t, count in counts.items()}, abs=1e-12)


def test_pairs_share_no_row():
    weights = np.r_[np.ones(41), np.zeros(9)]
    draws = _pairs(None, weights, 6, 0.5, 0)
    assert len(draws) == 6
    for first, second in zip(draws[::2], draws[1::2], strict=True):
        assert len(first) == len(second) == 20
        assert not set(first) & set(second)
        assert max(*first, *second) < 41
    assert len({tuple(rows) for rows in draws}) == 6
    assert [len(rows) for rows in _pairs(None, weights, 2, 0.25, 0)] == [10, 10]
    labels = np.r_[np.zeros(34), np.ones(16)]
    for rows in _pairs(labels, np.ones(50), 4, 0.5, 0):
        assert np.bincount(labels[rows].astype(int)).tolist() == [17, 8]


def test_processes_and_seeds():
    X, y = data(120, 5)
    settings = {"n_subsamples": 6}
    alone = stability_selection(HKLRegressor(0.01), X, y, **settings)
    both = stability_selection(HKLRegressor(0.01), X, y, n_jobs=2, **settings)
    pd.testing.assert_frame_equal(alone.terms, both.terms)
    pd.testing.assert_frame_equal(alone.variables, both.variables)
    other = stability_selection(HKLRegressor(0.01), X, y, random_state=1, **settings)
    assert not alone.terms.equals(other.terms)


def test_sample_weights_reach_the_fits():
    """Two populations: which of them has weight decides which variable is found."""
    X, _ = data(200, 4)
    y = np.where(np.arange(200) < 100, X[:, 0], X[:, 3])
    first = np.where(np.arange(200) < 100, 1.0, 1e-3)
    settings = {"n_subsamples": 6}
    found = stability_selection(HKLRegressor(0.05), X, y, sample_weight=first, **settings)
    assert found.variables["frequency"].tolist()[0] == 1.0
    assert found.variables["frequency"].tolist()[3] < 0.5
    zero = np.where(np.arange(200) < 100, 0.0, 1.0)
    found = stability_selection(HKLRegressor(0.05), X, y, sample_weight=zero, **settings)
    assert found.variables["frequency"].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert found.subsample_size == 50


def test_several_alphas_count_together():
    X, y = data(100, 5)
    settings = {"n_subsamples": 6}
    large = stability_selection(HKLRegressor(3.0), X, y, **settings)
    small = stability_selection(HKLRegressor(0.003), X, y, **settings)
    either = stability_selection(HKLRegressor(3.0), X, y, alphas=[3.0, 0.003], **settings)
    together = either.terms.set_index("term")["frequency"]
    for one in (large, small):
        for term, frequency in one.terms.set_index("term")["frequency"].items():
            assert together[term] >= frequency
    assert either.mean_terms <= large.mean_terms + small.mean_terms


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames(kind):
    X, y = data(150, 4)
    table = {name: X[:, m] for m, name in enumerate(["age", "size", "cost", "noise"])}
    table["kind"] = np.where(np.arange(150) % 3 == 0, "a", "b")
    y = y + 1.0 * (table["kind"] == "a")
    found = stability_selection(HKLRegressor(0.01), kind(table), y, n_subsamples=6)
    assert {"age", "kind", "size * cost"} <= set(found.terms.query("selected")["term"])
    assert found.variables["variable"].tolist() == ["age", "size", "cost", "noise", "kind"]
    series = stability_selection(HKLRegressor(0.01), kind(table), pd.Series(y), n_subsamples=6)
    pd.testing.assert_frame_equal(found.terms, series.terms)


def test_missing_values_that_some_subsamples_do_not_have():
    X, y = data(100, 3)
    X[0, 1] = np.nan
    found = stability_selection(HKLRegressor(0.02), X, y, n_subsamples=6)
    frequency = found.terms.set_index("term")["frequency"]
    assert frequency["x0"] == 1.0
    assert set(found.variables["variable"]) >= {"x0", "x1", "x2"}


def test_terms_of_equal_names_are_counted_apart():
    X, _ = data(200, 4)
    table = pd.DataFrame(X, columns=["a", "b", "c", "b * c"])
    y = X[:, 1] * X[:, 2] + 0.05 * np.random.default_rng(0).standard_normal(200)
    found = stability_selection(HKLRegressor(0.02, degree=1), table, y, n_subsamples=6)
    shapes = found.terms.set_index("term")
    assert shapes.index.is_unique
    assert (shapes.loc["b * c", "order"], shapes.loc["b * c", "frequency"]) == (2, 1.0)
    assert shapes["frequency"].get("'b * c'", 0.0) < 1.0
    y = y + X[:, 3]
    both = stability_selection(HKLRegressor(0.02, degree=1), table, y, n_subsamples=6)
    frequency = both.terms.set_index("term")["frequency"]
    assert frequency["b * c"] == frequency["'b * c'"] == 1.0


def test_a_classifier():
    X, _ = data(300, 5)
    noise = 0.2 * np.random.default_rng(0).standard_normal(300)
    y = np.where(X[:, 0] * X[:, 1] + noise > 0.25, "rare", "usual")
    found = stability_selection(HKLClassifier(0.01), X, y, n_subsamples=8)
    assert found.terms.set_index("term").loc["x0 * x1", "frequency"] == 1.0
    assert found.variables["selected"].tolist() == [True, True, False, False, False]


def test_the_bound_is_given_only_where_it_holds():
    X, y = data(100, 3)
    settings = {"n_subsamples": 2}
    model = HKLRegressor(0.1)
    assert stability_selection(model, X, y, fraction=0.4, **settings).false_variables is None
    assert stability_selection(model, X, y, threshold=0.5, **settings).false_variables is None
    assert stability_selection(model, X, y, **settings).false_variables is not None


def test_the_estimator_is_left_alone():
    X, y = data(80, 3)
    model = HKLRegressor(0.1, certify="exact")
    stability_selection(model, X, y, n_subsamples=2, alphas=[0.5])
    assert model.certify == "exact"
    assert model.alpha == 0.1
    assert not hasattr(model, "hull_")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_subsamples": 3}, "even"),
        ({"n_subsamples": 0}, "n_subsamples"),
        ({"fraction": 0.0}, "fraction"),
        ({"fraction": 0.7}, "fraction must be 0.5 at most"),
        ({"threshold": 0.0}, "threshold"),
        ({"threshold": 1.5}, "threshold must be 1 at most"),
        ({"alphas": []}, "alphas is empty"),
        ({"alphas": [0.1, -1.0]}, "every alpha"),
        ({"fraction": 0.01}, "too few"),
        ({"sample_weight": np.r_[np.ones(3), np.zeros(57)]}, "too few"),
    ],
)
def test_bad_settings(settings, message):
    X, y = data(60, 3)
    with pytest.raises(ValueError, match=message):
        stability_selection(HKLRegressor(0.01), X, y, **settings)


def test_bad_estimators_and_data():
    X, y = data(60, 3)
    with pytest.raises(TypeError, match="HKLRegressorCV chooses its own"):
        stability_selection(HKLRegressorCV(), X, y)
    with pytest.raises(TypeError, match="needs an HKLRegressor"):
        stability_selection(Lasso(), X, y)
    with pytest.raises(ValueError):
        stability_selection(HKLRegressor(0.01), X, y[:-1])
    with pytest.raises(ValueError, match="rows of a class"):
        stability_selection(HKLClassifier(0.01), X, np.r_[np.zeros(59), 1.0])


def test_an_alpha_that_every_subsample_would_choose_is_refused():
    X, y = data(60, 3)
    for estimator in (HKLRegressor(), HKLClassifier()):
        with pytest.raises(ValueError, match=r"alpha='auto' would choose another .* alphas="):
            stability_selection(estimator, X, y)
    found = stability_selection(HKLRegressor(), X, y, alphas=[0.05], n_subsamples=2)
    same = stability_selection(HKLRegressor(0.05), X, y, n_subsamples=2)
    assert found.terms.equals(same.terms)
    assert found.variables.equals(same.variables)


def test_it_is_public():
    assert hikernel.stability_selection is stability_selection
    assert "stability_selection" in hikernel.__all__
