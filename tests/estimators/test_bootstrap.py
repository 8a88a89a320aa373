"""The bootstrap: draws by weight, the same for a seed, intervals by hand, classes, bad input."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV, bootstrap

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.uniform(-1, 1, size=(80, 3)), columns=list("abc"))
Y = X["a"] + 2 * X["b"] * X["c"] + 0.2 * RNG.standard_normal(80)
LABELS = np.array(["no", "maybe", "yes"])[np.digitize(Y, [-0.5, 0.5])]
MODEL = HKLRegressor(0.02, refit="ridge", certify="none")


@pytest.fixture(scope="module")
def found():
    return bootstrap(MODEL, X, Y, n_bootstraps=6)


def test_a_fit_is_that_of_repeated_rows(found):
    rng = np.random.RandomState(0)
    draws = [rng.randint(80, size=80) for _ in range(6)]
    for rows, model in zip(draws[:2], found.estimators, strict=False):
        # The refit leaves out a row with all its copies, so the penalty is not that of copies.
        plain = HKLRegressor(0.02, certify="none").fit(X.iloc[rows], Y.iloc[rows])
        again = HKLRegressor(0.02, certify="none").fit(X, Y, np.bincount(rows, minlength=80))
        np.testing.assert_allclose(plain.predict(X), again.predict(X), atol=2e-3)
        np.testing.assert_allclose(model._selected.coef, again._selected.coef, atol=1e-6)


def test_a_seed_gives_the_same(found):
    same, other = (bootstrap(MODEL, X, Y, n_bootstraps=2, random_state=seed) for seed in (0, 1))
    for model, twin in zip(found.estimators, same.estimators, strict=False):
        np.testing.assert_array_equal(model.predict(X), twin.predict(X))
    assert np.any(same.interval(X) != other.interval(X))


@pytest.mark.slow
def test_processes_give_the_same(found):
    np.testing.assert_array_equal(
        bootstrap(MODEL, X, Y, n_bootstraps=6, n_jobs=2).interval(X), found.interval(X)
    )


def test_intervals_are_quantiles_over_the_fits(found):
    values = np.array([model.predict(X) for model in found.estimators])
    low, high = found.interval(X, 0.5).T
    np.testing.assert_allclose(low, np.quantile(values, 0.25, axis=0))
    np.testing.assert_allclose(high, np.quantile(values, 0.75, axis=0))
    np.testing.assert_allclose(found.std(X), np.std(values, axis=0))


def test_effects_that_a_fit_does_not_have_are_zero_in_it(found):
    table = found.effects.set_index("effect")
    assert table.loc["b * c", "frequency"] == 1.0
    assert {"a", "b", "c"} <= set(table.index)
    has = [
        name in set(model.effects_["effect"]) for model in found.estimators for name in table.index
    ]
    np.testing.assert_allclose(table["frequency"], np.mean(np.reshape(has, (6, -1)), axis=0))
    low, high = found.effects_interval(X, 0.9)
    assert list(low.columns) == ["intercept", *table.index]
    assert low.index.equals(X.index)
    assert np.all(low.to_numpy() <= high.to_numpy())
    values = [model.effects(X).get("a * c", np.zeros(80)) for model in found.estimators]
    if "a * c" in low:
        np.testing.assert_allclose(low["a * c"], np.quantile(values, 0.05, axis=0))
    np.testing.assert_allclose(
        high["a"], np.quantile([model.effects(X)["a"] for model in found.estimators], 0.95, axis=0)
    )


def test_classes_keep_their_numbers_and_have_intervals_of_probabilities():
    model = HKLClassifier(0.05, certify="none", max_order=1)
    found = bootstrap(model, X, LABELS, n_bootstraps=3)
    ends = found.interval(X)
    assert ends.shape == (80, 3, 2)
    assert np.all(ends[..., 0] >= 0)
    assert np.all(ends[..., 0] <= ends[..., 1])
    assert np.all(ends[..., 1] <= 1)
    low, high = found.effects_interval(X)
    assert low.columns.equals(high.columns)
    assert set(low.columns.get_level_values(0)) == {"no", "maybe", "yes"}
    two = bootstrap(model.set_params(loss="hinge"), X, LABELS == "yes", n_bootstraps=2)
    assert two.interval(X).shape == (80, 2)


def test_rows_without_weight_are_not_drawn():
    weights = np.r_[np.zeros(20), np.ones(60)]
    y = Y.copy()
    y[:20] = 1e6
    found = bootstrap(MODEL, X, y, sample_weight=weights, n_bootstraps=2)
    assert np.max(found.interval(X)) < 10.0


def test_rows_keep_their_offset_and_exposure():
    rng = np.random.default_rng(1)
    exposure = rng.uniform(0.1, 50.0, 80)
    y = rng.poisson(exposure * np.exp(X["a"]))
    model = HKLRegressor(0.02, loss="poisson", certify="none")
    rates = bootstrap(model, X, y, exposure=exposure, n_bootstraps=3)
    logs = bootstrap(model, X, y, offset=np.log(exposure), n_bootstraps=3)
    for fit, twin in zip(rates.estimators, logs.estimators, strict=True):
        np.testing.assert_allclose(fit.predict(X), twin.predict(X), rtol=1e-6)
        assert np.corrcoef(np.log(fit.predict(X)), X["a"])[0, 1] > 0.9
    mean = rates.interval(X, exposure=exposure)
    np.testing.assert_allclose(mean, exposure[:, None] * rates.interval(X))
    np.testing.assert_allclose(rates.std(X, exposure=exposure), exposure * rates.std(X))
    with pytest.raises(ValueError, match="HKLClassifier takes no exposure; leave it out"):
        bootstrap(HKLClassifier(0.02), X, LABELS, exposure=exposure)


def test_cross_validated_estimators_choose_again_and_warnings_are_counted():
    model = HKLRegressorCV(alphas=[0.3, 0.1], cv=2, refit=None)
    with pytest.warns(UserWarning, match="2 of 2 fits warned, the first: The chosen alpha"):
        found = bootstrap(model, X, Y, n_bootstraps=2)
    assert not hasattr(found.estimators[0], "path_")
    assert found.interval(X).shape == (80, 2)


def test_bad_input_is_said(found):
    with pytest.raises(TypeError, match="bootstrap needs an estimator of hikernel"):
        bootstrap(LinearRegression(), X, Y)
    with pytest.raises(ValueError, match="n_bootstraps must be an integer >= 2"):
        bootstrap(MODEL, X, Y, n_bootstraps=1)
    with pytest.raises(ValueError, match=r"confidence_level .* between 0 and 1"):
        found.interval(X, 95)
    with pytest.raises(ValueError, match="refit must be one of"):
        bootstrap(HKLRegressor(refit="best"), X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bootstrap(MODEL, X, Y, n_bootstraps=2).estimators[0].verbose == 0
