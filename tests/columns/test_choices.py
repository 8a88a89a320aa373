"""What basis="auto" gives to a column of numbers, and why; far outside the training range."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from columns.tables import fit_table
from scipy.stats import kurtosis, norm, skew

from hikernel import HKLClassifier, HKLRegressor, hkl_path
from hikernel.bases import AsinhPolynomial, OrthonormalPolynomial, Polynomial, RankPolynomial
from hikernel.columns.choices import choose_bases

N = 1000
QUANTILES = norm.ppf((np.arange(N) + 0.5) / N)
RNG = np.random.default_rng(0)
TWO = "number with two values: one bounded level"

COLUMNS = {
    "normal": (QUANTILES, OrthonormalPolynomial(4)),
    "uniform": (np.linspace(0.0, 5.0, N), OrthonormalPolynomial(4)),
    "three values": (np.arange(N) % 3.0, OrthonormalPolynomial(4)),
    "one sample of normal values": (RNG.standard_normal(N), OrthonormalPolynomial(4)),
    "with an offset": (1e9 + QUANTILES, OrthonormalPolynomial(4)),
    "lognormal": (np.exp(QUANTILES), AsinhPolynomial(4)),
    "lognormal downwards": (-np.exp(QUANTILES), AsinhPolynomial(4)),
    "exponential": (RNG.exponential(size=N), AsinhPolynomial(4)),
    "symmetric with tails": (np.sinh(QUANTILES), AsinhPolynomial(4)),
    "symmetric with heavy tails": (QUANTILES**3, RankPolynomial(4)),
    "three values, one common": (np.repeat([0.0, 1.0, 2.0], [700, 200, 100]), AsinhPolynomial(4)),
    "zero-inflated": (np.repeat([0.0, 1.0, 2.0], [950, 30, 20]), RankPolynomial(4)),
    "a wild value": (np.append(QUANTILES, 1e6), RankPolynomial(4)),
    "0/1": (np.arange(N) % 2.0, RankPolynomial(1)),
    "rare 0/1": (np.append(np.zeros(N), 1.0), RankPolynomial(1)),
}


def auto(x, weights=None, degree=4):
    """The choice for a table of this column alone, and not for the mark of missing values."""
    X = np.asarray(x, dtype=float)[:, None]
    table = fit_table(X)
    weights = np.ones(len(X)) if weights is None else weights
    return choose_bases("auto", degree, table, table.transform(X), weights)[0]


@pytest.mark.parametrize("name", COLUMNS)
def test_the_distribution_of_a_column_decides(name):
    x, basis = COLUMNS[name]
    assert auto(x).basis == basis
    # Units do not matter, and neither do rows without a value.
    assert auto(1e-12 * x).basis == basis
    assert auto(np.append(x, np.full(2 * N, np.nan))).basis == basis


@pytest.mark.parametrize("name", COLUMNS)
def test_the_degree_is_the_one_asked_for(name):
    x, basis = COLUMNS[name]
    assert auto(x, degree=7).basis.degree == (1 if basis.degree == 1 else 7)


def test_the_reasons_have_the_numbers():
    x = np.exp(QUANTILES)
    numbers = f"skewness {skew(x):.1f}, excess kurtosis {kurtosis(x):.1f}"
    assert auto(QUANTILES).why == "number: polynomials"
    assert auto(x).why == f"number with tails ({numbers}): asinh first"
    assert auto(COLUMNS["0/1"][0]).why == TWO
    x = COLUMNS["zero-inflated"][0]
    numbers = f"skewness {skew(x):.1f}, excess kurtosis {kurtosis(x):.1f}"
    assert auto(x).why == (
        f"number, mostly one value or very heavy tails ({numbers}): bounded functions of the rank"
    )


@pytest.mark.parametrize(
    ("statistic", "limit", "bend"),
    [
        (lambda x: abs(skew(x)), 0.5, lambda c: np.exp(c * QUANTILES)),
        (lambda x: abs(skew(x)), 0.5, lambda c: -np.exp(c * QUANTILES)),
        (kurtosis, 1.0, lambda c: np.sinh(4.0 * c * QUANTILES)),
    ],
)
def test_the_limits_of_skewness_and_kurtosis(statistic, limit, bend):
    columns = [bend(c) for c in np.linspace(0.01, 0.4, 40)]
    beyond = [statistic(x) > limit for x in columns]
    assert any(beyond)
    assert not all(beyond)
    assert [not isinstance(auto(x).basis, OrthonormalPolynomial) for x in columns] == beyond


def test_the_limit_of_the_kurtosis_after_asinh():
    bases = {}
    for rare in range(20, 200, 5):
        x = np.repeat([0.0, 1.0, 2.0], [N - rare, rare - rare // 3, rare // 3])
        t = np.arcsinh(x / (np.sqrt(np.pi / 2.0) * x.mean()))
        bases[rare] = auto(x).basis.name
        assert bases[rare] == ("rank" if kurtosis(t) > 3.0 else "asinh"), rare
    assert set(bases.values()) == {"rank", "asinh"}


def test_weights_count_as_repeated_rows():
    counts = np.random.default_rng(1).integers(0, 4, N)
    for x, _ in COLUMNS.values():
        assert auto(x[:N], counts.astype(float)) == auto(np.repeat(x[:N], counts))
    three = np.array([0.0, 1.0, 2.0])
    assert isinstance(auto(three).basis, OrthonormalPolynomial)
    assert isinstance(auto(three, np.array([950.0, 30.0, 20.0])).basis, RankPolynomial)


def test_rows_of_zero_weight_do_not_decide():
    wild = np.append(QUANTILES, [1e6, -1e300])
    weights = np.append(np.ones(N), [0.0, 0.0])
    assert auto(wild, weights) == auto(QUANTILES)
    assert isinstance(auto(wild).basis, RankPolynomial)
    third = np.append(np.arange(N) % 2.0, 7.0)
    assert auto(third, weights[:-1]).why == TWO
    assert auto(third).why != TWO


@pytest.mark.parametrize("value", [3.0, 0.0, np.nan, 1e300])
def test_columns_that_do_not_vary_are_left_out(value):
    X = np.column_stack([QUANTILES, np.full(N, value)])
    model = HKLRegressor(0.1).fit(X, QUANTILES)
    row = model.bases_.iloc[1]
    assert row["levels"] == 0
    assert row["why"] == "constant: left out"


def test_values_that_are_one_but_for_rounding_are_constant():
    x = 1.0 + 2.0**-52 * (np.arange(N) % 3)
    assert auto(x).basis.fit(x).max_level == 0


def frame():
    rng = np.random.default_rng(0)
    x = {name: rng.permutation(values[:N]) for name, (values, _) in COLUMNS.items()}
    chosen = ["normal", "lognormal", "zero-inflated", "0/1", "three values"]
    X = pd.DataFrame({name: x[name] for name in chosen})
    X.loc[::7, "lognormal"] = np.nan
    signal = X["normal"] + np.log1p(X["lognormal"].fillna(0.0)) + X["zero-inflated"] * X["0/1"]
    return X, (signal + 0.1 * rng.standard_normal(N)).to_numpy()


def test_a_fitted_model_says_which_and_why():
    X, y = frame()
    model = HKLRegressor(0.01, degree=3).fit(X, y)
    seen = X["lognormal"].dropna()
    tails = f"skewness {skew(seen):.1f}, excess kurtosis {kurtosis(seen):.1f}"
    rare = X["zero-inflated"]
    spikes = f"skewness {skew(rare):.1f}, excess kurtosis {kurtosis(rare):.1f}"
    assert model.bases_[["column", "basis", "levels", "why"]].to_numpy().tolist() == [
        ["normal", "orthonormal", 3, "number: polynomials"],
        ["lognormal", "asinh", 3, f"number with tails ({tails}): asinh first"],
        [
            "zero-inflated",
            "rank",
            2,
            f"number, mostly one value or very heavy tails ({spikes}): "
            "bounded functions of the rank",
        ],
        ["0/1", "rank", 1, TWO],
        ["three values", "orthonormal", 2, "number: polynomials"],
        ["lognormal is missing", "rank", 1, "marks missing values: one bounded level"],
    ]
    assert model.score(X, y) > 0.9


def test_a_path_makes_the_same_choices():
    X, y = frame()
    weights = np.random.default_rng(1).integers(0, 3, N)
    model = HKLRegressor(0.03).fit(X, y, weights)
    path = hkl_path(X, y, alphas=[0.03], sample_weight=weights)
    assert [type(basis) for basis in path.design.bases] == [
        type(basis) for basis in model._design.bases
    ]
    for m, basis in enumerate(path.design.bases):
        points = model.columns_.transform(X)[:, m]
        ours, theirs = basis.transform(points), model._design.bases[m].transform(points)
        np.testing.assert_array_equal(np.hstack(ours), np.hstack(theirs))


def test_a_mapping_overrides_the_distribution():
    X, y = frame()
    spec = {"lognormal": "orthonormal", "0/1": Polynomial(2), "normal": "asinh", 2: "auto"}
    choices = HKLRegressor(0.1, basis=spec).fit(X, y).bases_
    names = ["asinh", "orthonormal", "rank", "polynomial", "orthonormal", "rank"]
    assert choices["basis"].tolist() == names
    given = [True, True, False, True, False, False]
    assert (choices["why"] == "given by basis=").tolist() == given
    fixed = HKLRegressor(0.1, basis="asinh", degree=2).fit(X, y).bases_
    assert fixed["basis"].tolist() == ["asinh"] * 5 + ["rank"]
    assert fixed["why"][3] == "given by basis="


def corners(X):
    """Rows at ends of the range of every column, all combinations of them."""
    ends = np.stack([X.min(axis=0), X.max(axis=0)])
    grid = np.meshgrid(*[[0, 1]] * X.shape[1], indexing="ij")
    which = np.stack([side.ravel() for side in grid], axis=1)
    return which, ends[which, np.arange(X.shape[1])]


@pytest.mark.parametrize("factor", [1.0, 1e6, 1e300])
def test_far_outside_the_range_predictions_are_those_of_its_ends(factor):
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.standard_normal(300),
            rng.lognormal(sigma=1.5, size=300),
            np.where(rng.random(300) < 0.95, 0.0, rng.exponential(size=300)),
        ]
    )
    y = X[:, 0] ** 2 + np.log1p(X[:, 1]) * (1.0 + X[:, 0]) + X[:, 2] + rng.standard_normal(300)
    model = HKLRegressor(0.001).fit(X, y)
    assert model.bases_["basis"].tolist() == ["orthonormal", "asinh", "rank"]
    which, rows = corners(X)
    far = np.where(which == 1, 1.0, -1.0) * factor * np.abs(X).max(axis=0)
    far = np.where(which == 1, np.maximum(far, rows), np.minimum(far, rows))
    np.testing.assert_array_equal(model.predict(far), model.predict(rows))
    middle = X[:8].copy()
    middle[:, 0] = far[0, 0]
    inside = middle.copy()
    inside[:, 0] = X[:, 0].min()
    np.testing.assert_array_equal(model.predict(middle), model.predict(inside))


def test_far_outside_a_classifier_is_as_sure_as_at_the_ends():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(200) > 0
    model = HKLClassifier(0.001).fit(X, y)
    which, rows = corners(X)
    far = 1e6 * np.where(which == 1, 1.0, -1.0)
    np.testing.assert_array_equal(model.predict_proba(far), model.predict_proba(rows))


def test_powers_still_overflow_and_say_so():
    X = np.random.default_rng(0).standard_normal((100, 2))
    model = HKLRegressor(0.001, basis="polynomial").fit(X, X[:, 0] ** 2 + X[:, 1])
    far = X[:3].copy()
    far[2, 0] = 1e200
    with pytest.raises(ValueError, match=r"Row 2 .* overflows"):
        model.predict(far)
