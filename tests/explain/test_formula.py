"""The formula's numbers, and the numbers of its text, reproduce the prediction."""

import re

import numpy as np
import pandas as pd
import pytest
from explain.cases import BASES, BUMPS, POLYNOMIAL, fitted, make_model
from explain.reader import evaluate_text
from oracles.designs import design_of
from oracles.formulas import WrittenFormula

from hikernel import HKLClassifier, HKLRegressor
from hikernel.bases import AsinhPolynomial, Gaussian, OrthonormalPolynomial, Polynomial
from hikernel.bases.categorical import Categorical
from hikernel.columns import ColumnGrid
from hikernel.explain import formula

NAMES = ["age", "year of birth", "dose (mg)"]
every_basis = pytest.mark.parametrize(
    "bases", [*BASES.values(), *BUMPS.values()], ids=[*BASES, *BUMPS]
)


@every_basis
@pytest.mark.parametrize("n_outputs", [None, 3])
def test_the_numbers_reproduce_the_prediction(bases, n_outputs):
    X, _, design, model = fitted(bases, n_outputs=n_outputs, names=NAMES)
    terms = WrittenFormula(model, design)
    f = model.predict(design, X)
    np.testing.assert_allclose(terms.evaluate(X), f, rtol=0, atol=1e-12 * np.abs(f).max())
    new = X + 0.3 * X.std(axis=0)
    g = model.predict(design, new)
    np.testing.assert_allclose(terms.evaluate(new), g, rtol=0, atol=1e-11 * np.abs(g).max())
    assert terms.text().startswith("f = " if n_outputs is None else "f[0] = ")


@pytest.mark.parametrize("name", POLYNOMIAL)
@pytest.mark.parametrize("digits", [15, 8, 5])
def test_the_text_reproduces_the_prediction(name, digits):
    X, _, design, model = fitted(BASES[name], names=NAMES)
    terms = WrittenFormula(model, design)
    assert terms.exact
    text = formula(model, design, digits)
    f = model.predict(design, X)
    ours = evaluate_text(text, X, NAMES)["f"]
    tol = 10.0 ** (1 - digits) * terms.cancellation(X)
    assert tol < 10.0 ** (4 - digits)  # three digits are lost at most
    np.testing.assert_allclose(ours, f, rtol=0, atol=tol * np.abs(f).max())
    new = X + np.linspace(-4, 4, len(X))[:, None] * X.std(axis=0)
    g = model.predict(design, new)
    ours = evaluate_text(text, new, NAMES)["f"]
    tol = 10.0 ** (1 - digits) * terms.cancellation(new)
    np.testing.assert_allclose(ours, g, rtol=0, atol=tol * np.abs(g).max())


@pytest.mark.parametrize("name", ["orthonormal", "asinh", "rank"])
def test_far_outside_the_numbers_are_those_of_the_ends(name):
    X, weights, design, model = fitted(BASES[name])
    rows = X[weights > 0]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(20, 3))
    ends = np.where(signs < 0, rows.min(axis=0), rows.max(axis=0))
    f = model.predict(design, ends)
    for far in (ends + 1e-3 * signs, 1e6 * signs + ends, 1e300 * signs):
        np.testing.assert_array_equal(model.predict(design, far), f)
        ours = WrittenFormula(model, design).evaluate(far)
        np.testing.assert_allclose(ours, f, rtol=0, atol=1e-12 * np.abs(f).max())


RANGES = "  beyond its range a variable counts as the nearer end of it"


def test_the_legend_of_asinh():
    x = np.array([-1.0, 0.0, 0.0, 0.0, 1.0])
    X = np.column_stack([x, 1e6 + x])
    design = design_of(X, [AsinhPolynomial(2)] * 2, names=["age", "dose"])
    model = make_model(design, [((0, 1),), ((1, 1),)])
    unit = np.sqrt(np.pi / 2) * 0.4
    scale = np.arcsinh(1.0 / unit) * np.sqrt(0.4)
    lines = formula(model, design, digits=3).split("where\n")[1].splitlines()
    assert lines == [
        f"  z(age) = asinh(age / {unit:.3g}) / {scale:.3g}, -1 <= age <= 1",
        f"  z(dose) = asinh((dose - 1000000) / {unit:.3g}) / {scale:.3g}, "
        "999999 <= dose <= 1000001",
        RANGES,
    ]


def test_the_centre_of_asinh_is_written_where_it_is_not_zero():
    x = np.random.default_rng(0).lognormal(size=101)
    design = design_of(x[:, None], [AsinhPolynomial(1)], names=["age"])
    text = formula(make_model(design, [((0, 1),)]), design, digits=4)
    unit = np.sqrt(np.pi / 2) * np.mean(np.abs(x - np.median(x)))
    t = np.arcsinh((x - np.median(x)) / unit)
    assert text.splitlines()[3] == (
        f"  z(age) = (asinh((age - {np.median(x):.4g}) / {unit:.4g}) - {t.mean():.4g}) / "
        f"{t.std():.4g}, {x.min():.4g} <= age <= {x.max():.5g}"
    )


def test_ends_of_a_range_are_written_to_the_digits_of_the_scale():
    x = np.array([0.0, 0.1, 0.2, 0.7])
    X = np.column_stack([x, 2000.0 + x])
    bases = [OrthonormalPolynomial(2), AsinhPolynomial(2)]
    design = design_of(X, bases, names=["age", "year"])
    text = formula(make_model(design, [((0, 1),), ((1, 1),)]), design, digits=3)
    assert ", 0 <= age <= 0.7\n" in text
    assert ", 2000 <= year <= 2000.7\n" in text


def test_ranges_are_explained_where_there_are_some():
    x = np.linspace(0.0, 1.0, 9) ** 2
    bases = [Polynomial(2), OrthonormalPolynomial(2)]
    design = design_of(np.column_stack([x, x]), bases, names=["a <= b", "c"])
    assert RANGES not in formula(make_model(design, [((0, 1),)]), design)
    assert formula(make_model(design, [((1, 1),)]), design).endswith(RANGES)


def test_an_estimator_on_data_written_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [10, 4, 1] + [40, 1990, 0]
    y = X[:, 0] + 0.1 * X[:, 0] * (X[:, 1] - 1990) + 0.1 * rng.normal(size=300)
    table = pd.DataFrame(X, columns=NAMES)
    model = HKLRegressor(alpha=1e-3).fit(table, y)
    text = formula(model._model, model._design, digits=12)
    np.testing.assert_allclose(evaluate_text(text, X, NAMES)["f"], model.predict(table), rtol=1e-9)
    assert "z(year of birth) = (year of birth - 19" in text
    # Four digits of the scale, 4 years: the centre needs seven digits, 1990 would be wrong.
    short = formula(model._model, model._design, digits=4)
    center = float(re.search(r"year of birth - (\S+)\)", short)[1])
    assert abs(center - X[:, 1].mean()) < 1e-3
    assert max(map(len, short.splitlines())) <= 100


def test_a_formula_per_class():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 3))
    y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.3, 0.3])]
    table = pd.DataFrame(X, columns=NAMES)
    model = HKLClassifier(alpha=1e-2).fit(table, y)
    text = formula(model._model, model._design, 12, model.classes_)
    values = evaluate_text(text, X, NAMES)
    assert list(values) == [f"f[{label}]" for label in model.classes_]
    f = model.decision_function(table)
    for k, label in enumerate(model.classes_):
        np.testing.assert_allclose(values[f"f[{label}]"], f[:, k], rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="3 outputs"):
        formula(model._model, model._design, outputs=["one"])


def test_symmetric_columns_have_no_odd_powers():
    x = np.repeat(np.linspace(-1, 1, 9), 3)
    X = np.column_stack([x, x])
    design = design_of(X, [OrthonormalPolynomial(4)] * 2)
    model = make_model(design, [((0, 2),), ((1, 4),)])
    powers = {f.power for product in WrittenFormula(model, design).products for f in product}
    assert powers == {2, 4}


@pytest.mark.parametrize("degree", [1, 2, 4, 8])
@pytest.mark.parametrize("wild", [5.0, 1e4, 1e6])
def test_wild_values(degree, wild):
    x = np.append(np.random.default_rng(0).normal(size=999), wild)
    X = np.column_stack([x, x[::-1]])
    design = design_of(X, [OrthonormalPolynomial(degree)] * 2, names=NAMES[:2])
    top = design.grid.max_level(0)
    model = make_model(design, [((0, j),) for j in range(1, top + 1)] + [((0, top), (1, 1))])
    f = model.predict(design, X)
    terms = WrittenFormula(model, design)
    # A sum of powers would lose all digits from degree 4 on with the wildest value.
    assert terms.cancellation(X) < 1e7
    assert terms.exact == (wild == 5.0 or degree == 1 or (degree, wild) == (2, 1e4))
    assert ("p2(age): level 2, polynomial" in terms.text()) == (wild == 1e6 and degree > 1)
    tol = 1e-14 * terms.cancellation(X)
    np.testing.assert_allclose(terms.evaluate(X), f, rtol=0, atol=tol * np.abs(f).max())


def test_other_levels_are_named_and_explained():
    _, _, design, _ = fitted(BASES["mixed"], names=NAMES)
    nodes = [((0, 1),), ((0, 1), (1, 2)), ((1, 1), (2, 2)), ((1, 2),)]
    text = formula(make_model(design, nodes), design)
    assert "*h1(age)" in text
    assert "*h2(age, year of birth)" in text
    assert "z(year of birth)*z(dose (mg))^2" in text
    assert "h1: the term age, 4 columns with coefficients of norm one" in text
    assert "(of the basis Indicators; smooth part of a cubic spline)" in text
    assert not WrittenFormula(make_model(design, nodes), design).exact


def test_single_levels_of_kernels_are_named():
    _, _, design, _ = fitted(BASES["gaussian-cut"], names=NAMES)
    text = formula(make_model(design, [((0, 1),), ((0, 2), (1, 1))]), design)
    assert "*g2(age)*g1(year of birth)" in text
    assert "g2(age): level 2, Mehler function of the Gaussian kernel" in text


def test_bumps_are_said_once():
    X, weights, _, _ = fitted(BASES["polynomial"])
    bump = Gaussian(2, remainder=False)
    design = design_of(X, [bump] * 3, weights, names=NAMES)
    text = formula(make_model(design, [(), ((0, 1),)]), design)
    assert "*bumps" in text
    assert "*g1(age)\n" in text
    assert text.endswith("of each variable that it does not name")
    some = design_of(X, [bump, Polynomial(2), Polynomial(2)], weights, names=NAMES)
    text = formula(make_model(some, [((1, 1),)]), some)
    assert text.endswith("does not name among age")


def test_constant_models_and_bad_digits():
    _, _, design, _ = fitted(BASES["orthonormal"])
    model = make_model(design, [()], empty=[()])
    assert formula(model, design) == "f = 0.7"
    with pytest.raises(ValueError, match="digits"):
        formula(model, design, digits=0)


def test_functions_of_categories_are_tables():
    rng = np.random.default_rng(0)
    colours = np.array(["blue", "green", "red"])
    table = pd.DataFrame({"colour": colours[rng.integers(0, 3, 60)], "sex": rng.integers(0, 2, 60)})
    grid = ColumnGrid(basis={"sex": Categorical()})
    design = grid.fit(grid.read(table), np.ones(60))
    model = make_model(design, [((0, 1),), ((1, 1),), ((0, 1), (1, 1))])
    text = formula(model, design, 12)
    number = float(re.search(r"(\S+)\*h1\(colour\)", text)[1])
    coefs = model.coef[:2]
    for code, label in enumerate(colours):
        value = float(re.search(rf"(\S+) for {label}", text)[1])
        expected = design.bases[0].transform([float(code)])[1][0] @ coefs
        np.testing.assert_allclose(number * value, expected, rtol=1e-10)
    assert re.search(r"c1\(sex\): \S+ for 0, \S+ for 1, 0 for others", text)
    assert "*h2(colour)*c1(sex)" in text
