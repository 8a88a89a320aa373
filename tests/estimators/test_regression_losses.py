"""HKLRegressor with every regression loss."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from hikernel import HKLRegressor
from hikernel.losses import (
    REGRESSION,
    EpsilonInsensitive,
    Gamma,
    Hinge,
    Huber,
    Poisson,
    Quantile,
    SquaredError,
    Tweedie,
)

pytestmark = pytest.mark.slow

LOG_LINK = ("poisson", "gamma", "tweedie")
EVERY = pytest.mark.parametrize("loss", sorted(REGRESSION))
# Losses of targets with units: predictions follow y in location and scale.
UNITS = pytest.mark.parametrize(
    "loss",
    ["squared_error", "huber", "quantile", "epsilon_insensitive", Quantile(0.8)],
    ids=str,
)
KINKED = ("quantile", "epsilon_insensitive")


def data(n=150, p=4, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = 3.0 + X[:, 0] + 2.0 * X[:, 0] * X[:, 1] + noise * rng.standard_normal(n)
    return X, y


def counts(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    mean = np.exp(1.0 + X[:, 0] + X[:, 1] * X[:, 0])
    return X, rng.poisson(mean).astype(float), mean


def target_for(loss, X, y):
    if loss in LOG_LINK:
        return np.round(np.exp(0.3 * y)) + (0.5 if loss == "gamma" else 0.0)
    return y


@EVERY
def test_every_loss_is_fitted_and_certified(loss):
    X, y = data()
    y = target_for(loss, X, y)
    model = HKLRegressor(0.01, loss=loss).fit(X, y)
    assert isinstance(model.loss_, REGRESSION[loss])
    assert model.certificate_.certified
    assert model.certificate_.kind == "exact"
    assert "x0 * x1" in set(model.hull_["term"])
    assert isinstance(model.intercept_, float)
    assert model.dual_coef_.sum() == pytest.approx(0.0, abs=1e-6 * np.abs(model.dual_coef_).max())
    assert model.score(X, y) > 0.5


@EVERY
def test_the_objective_is_written_out_from_the_public_attributes(loss):
    X, y = data(80, p=2)
    y = target_for(loss, X, y)
    alpha = 0.02
    model = HKLRegressor(alpha, loss=loss, degree=2).fit(X, y)
    f = np.log(model.predict(X)) if loss in LOG_LINK else model.predict(X)
    norms = dict(zip(model.nodes_, model.hull_["norm"], strict=True))
    omega = sum(
        model.graph_.weight(v)
        * np.sqrt(sum(norms[w] ** 2 for w in norms if v in model.graph_.ancestors(w)))
        for v in norms
    )
    rule, spread = model.loss_, 1.0
    if loss in ("huber", "epsilon_insensitive"):
        low, high = np.quantile(y, [0.25, 0.75], method="averaged_inverted_cdf")
        spread = (high - low) / 1.349
        parameter = rule.delta if loss == "huber" else rule.epsilon
        rule = type(rule)(parameter * spread)
    # alpha does not depend on the units of y, where the loss is no square: lambda / spread.
    strength = alpha
    if loss in KINKED:
        low, high = np.quantile(y, [0.25, 0.75], method="averaged_inverted_cdf")
        strength = alpha / ((high - low) / 1.349)
    objective = np.mean(rule.value(y, f)) + 0.5 * strength * omega**2
    assert model.certificate_.objective == pytest.approx(objective, rel=1e-8)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("squared_error", SquaredError()),
        ("huber", Huber()),
        ("quantile", Quantile()),
        ("epsilon_insensitive", EpsilonInsensitive()),
        ("poisson", Poisson()),
        ("gamma", Gamma()),
        ("tweedie", Tweedie(1.5)),
    ],
)
def test_an_object_is_what_its_name_makes(name, rule):
    X, y = data(80, p=2)
    y = target_for(name, X, y)
    by_name = HKLRegressor(0.02, loss=name).fit(X, y)
    by_object = HKLRegressor(0.02, loss=rule).fit(X, y)
    np.testing.assert_array_equal(by_object.predict(X), by_name.predict(X))
    again = clone(by_object)
    assert type(again.loss) is type(rule)
    assert vars(again.loss) == vars(rule)
    copy = pickle.loads(pickle.dumps(by_object))
    np.testing.assert_array_equal(copy.predict(X), by_object.predict(X))


@pytest.mark.parametrize(
    ("rule", "other"),
    [
        (Quantile(0.1), Quantile(0.9)),
        (Huber(0.1), Huber(3.0)),
        (EpsilonInsensitive(0.0), EpsilonInsensitive(1.0)),
    ],
)
def test_parameters_of_a_loss_matter(rule, other):
    X, y = data(100, p=2, noise=1.0)
    a, b = (HKLRegressor(0.02, loss=loss).fit(X, y) for loss in (rule, other))
    assert np.max(np.abs(a.predict(X) - b.predict(X))) > 0.1 * np.std(y)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_a_quantile_covers_its_share(level):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 2))
    y = X[:, 0] + (0.5 + 0.4 * X[:, 1]) * rng.standard_normal(600)
    model = HKLRegressor(0.005, loss=Quantile(level), degree=2).fit(X[:400], y[:400])
    assert model.certificate_.certified
    # The intercept is free: the share on the training rows is exact up to the rows it passes.
    assert np.mean(y[:400] <= model.predict(X[:400])) == pytest.approx(level, abs=0.03)
    assert np.mean(y[400:] <= model.predict(X[400:])) == pytest.approx(level, abs=0.08)


@pytest.mark.parametrize("loss", ["huber", "quantile", "epsilon_insensitive"])
def test_outliers_move_the_squared_error_and_not_the_others(loss):
    X, y = data(200)
    X_test, y_test = data(200, seed=1)
    spoiled = y.copy()
    spoiled[::10] += 100.0
    robust = HKLRegressor(0.003, loss=loss).fit(X, spoiled)
    squared = HKLRegressor(0.003).fit(X, spoiled)
    assert robust.certificate_.certified
    assert robust.score(X_test, y_test) > 0.8 > squared.score(X_test, y_test)


@UNITS
def test_units_of_y_do_not_matter(loss):
    X, y = data(100, p=2)
    model = HKLRegressor(0.01, loss=loss).fit(X, y)
    # A power of two and a shift without rounding: the same problem to the last bit, or nearly.
    moved = HKLRegressor(0.01, loss=loss).fit(X, 64.0 * y + 1024.0)
    assert list(moved.hull_["term"]) == list(model.hull_["term"])
    np.testing.assert_allclose(
        moved.predict(X), 64.0 * model.predict(X) + 1024.0, atol=64.0 * 1e-3 * np.std(y)
    )
    unit = 64.0**model.loss_.degree
    assert moved.certificate_.objective == pytest.approx(
        unit * model.certificate_.objective, rel=2e-3
    )


@pytest.mark.parametrize("loss", ["huber", "quantile", "epsilon_insensitive"])
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_huge_and_tiny_targets(loss, scale):
    X, y = data(60, p=2)
    model = HKLRegressor(0.02, loss=loss, degree=2).fit(X, y)
    scaled = HKLRegressor(0.02, loss=loss, degree=2).fit(X, scale * y)
    assert scaled.certificate_.certified
    np.testing.assert_allclose(scaled.predict(X) / scale, model.predict(X), atol=0.02 * np.std(y))


@pytest.mark.parametrize("loss", ["huber", "epsilon_insensitive"])
def test_mirroring_y_mirrors_the_prediction(loss):
    X, y = data(100, p=2)
    model = HKLRegressor(0.01, loss=loss, tol=1e-4).fit(X, y)
    mirrored = HKLRegressor(0.01, loss=loss, tol=1e-4).fit(X, -y)
    np.testing.assert_allclose(mirrored.predict(X), -model.predict(X), atol=0.05 * np.std(y))


@EVERY
def test_integer_weights_equal_repeated_rows(loss):
    X, y = data(60, p=2)
    y = target_for(loss, X, y)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    settings = {"loss": loss, "degree": 2, "tol": 1e-3 if loss in KINKED else 1e-7}
    weighted = HKLRegressor(0.05, **settings).fit(X, y, sample_weight=weights)
    repeated = HKLRegressor(0.05, **settings).fit(np.repeat(X, weights, 0), np.repeat(y, weights))
    slack = weighted.certificate_.gap + repeated.certificate_.gap
    difference = weighted.certificate_.objective - repeated.certificate_.objective
    assert abs(difference) <= slack + 1e-9 * repeated.certificate_.objective
    close = 0.1 if loss in KINKED else 5e-3
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=close * np.std(y))
    assert np.all(weighted.dual_coef_[weights == 0] == 0.0)


@pytest.mark.parametrize("loss", ["huber", "quantile", "epsilon_insensitive"])
@pytest.mark.parametrize("value", [0.0, 3.7])
def test_a_constant_target_gives_that_constant(loss, value):
    X, _ = data(60)
    model = HKLRegressor(loss=loss).fit(X, np.full(60, value))
    # Within epsilon any constant costs nothing.
    np.testing.assert_allclose(model.predict(X), value, atol=0.11)
    assert model.certificate_.certified
    assert model.certificate_.objective == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("loss", ["huber", "quantile", "epsilon_insensitive"])
def test_a_target_that_is_mostly_one_value(loss):
    # The interquartile range is zero; the standard deviation stands in.
    X, _ = data(100, p=2)
    y = np.where(np.arange(100) % 10 == 0, 5.0 + X[:, 0], 1.0)
    model = HKLRegressor(0.05, loss=loss, degree=2).fit(X, y)
    assert model.certificate_.certified
    assert np.all(np.isfinite(model.predict(X)))
    assert np.median(model.predict(X)) == pytest.approx(1.0, abs=0.5)


def test_counts_have_positive_means():
    X, y, mean = counts()
    model = HKLRegressor(0.003, loss="poisson", degree=2).fit(X, y)
    predicted = model.predict(X)
    assert model.certificate_.certified
    assert np.all(predicted > 0.0)
    # The intercept is free: the mean is that of the counts.
    assert predicted.mean() == pytest.approx(y.mean(), rel=1e-6)
    assert np.mean((predicted - mean) ** 2) < 0.2 * np.mean((y - mean) ** 2)
    assert np.all(model.predict(3.0 * X) > 0.0)


def test_counts_of_any_size_are_fitted():
    X, y, _ = counts()
    large = HKLRegressor(1.0, loss="poisson", degree=2).fit(X, 1e6 * y)
    assert large.certificate_.certified
    assert large.predict(X).mean() == pytest.approx(1e6 * y.mean(), rel=1e-6)
    rare = np.zeros(len(y))
    rare[:3] = 1.0
    model = HKLRegressor(0.01, loss="poisson", degree=2).fit(X, rare)
    assert model.certificate_.certified
    assert model.predict(X).mean() == pytest.approx(0.01, rel=1e-6)


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (np.linspace(-1, 3, 40), "zero or positive, but some values are negative"),
        (np.zeros(40), "needs some y above zero"),
    ],
)
def test_what_are_no_counts_is_refused(y, sentence):
    X, _ = data(40)
    with pytest.raises(ValueError, match=sentence):
        HKLRegressor(loss="poisson").fit(X, y)


def test_only_rows_of_positive_weight_must_be_counts():
    X, y, _ = counts(60)
    weights = np.ones(60)
    y[3], weights[3] = -5.0, 0.0
    model = HKLRegressor(0.05, loss="poisson", degree=2).fit(X, y, weights)
    assert model.certificate_.certified
    with pytest.raises(ValueError, match="needs some y above zero"):
        HKLRegressor(loss="poisson").fit(X, y, (y == 0).astype(float))


def test_predicting_counts_far_outside_says_so():
    X, y, _ = counts(100)
    model = HKLRegressor(0.003, loss="poisson", degree=2, basis="polynomial").fit(X, y)
    far = 1e4 * np.ones((2, 3)) * np.sign(model.coef_[model.nodes_.index(((0, 1),))])
    with pytest.raises(ValueError, match="overflows"):
        model.predict(np.vstack([far, [[1e4, 1e4, 0.0]], [[1e4, -1e4, 0.0]]]))


@pytest.mark.parametrize("spec", ["hinge", "squared", None, Hinge(), Quantile])
def test_what_is_no_regression_loss_is_refused(spec):
    X, y = data(40)
    with pytest.raises(ValueError, match="'squared_error', 'huber'"):
        HKLRegressor(loss=spec).fit(X, y)


@EVERY
@pytest.mark.parametrize("search", ["lookahead", "paper"])
def test_both_searches_agree(loss, search):
    X, y = data(100, p=3)
    y = target_for(loss, X, y)
    model = HKLRegressor(0.02, loss=loss, degree=2, search=search).fit(X, y)
    assert model.certificate_.certified
    other = HKLRegressor(0.02, loss=loss, degree=2, basis="gaussian").fit(X, y)
    assert other.certificate_.certified
    reference = HKLRegressor(0.02, loss=loss, degree=2).fit(X, y)
    slack = model.certificate_.gap + reference.certificate_.gap
    assert abs(model.certificate_.objective - reference.certificate_.objective) <= slack


@pytest.mark.parametrize("level", [0.99, 0.01])
def test_extreme_quantiles_of_many_rows_are_fitted(level):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (3000, 3))
    y = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(3000)
    model = HKLRegressor(0.001, loss=Quantile(level), certify="none").fit(X, y)
    assert len(model.nodes_) > 1
    assert abs(np.mean(y <= model.predict(X)) - level) < 0.01


def test_a_row_that_carries_the_objective_is_named():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(200)
    y[17] = 1e6
    with pytest.warns(UserWarning, match="Row 17 carries more than half"):
        HKLRegressor(0.003, loss="huber").fit(X, y)
