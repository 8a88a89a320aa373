"""Named functions are told in the legend: the text alone reproduces the prediction."""

import numpy as np
import pandas as pd
import pytest
from explain.cases import BASES, fitted, make_model
from explain.reader import evaluate_text
from oracles.designs import design_of
from oracles.formulas import WrittenFormula

from hikernel.bases import OrthonormalPolynomial, RankPolynomial
from hikernel.columns import ColumnGrid
from hikernel.explain import formula

NAMES = ["age", "flag (0/1)", "town"]
TOWNS = {2: {0.0: "Bergen", 1.0: "Oslo", 2.0: "Vik"}}


def table(missing=False):
    """A number, a 0/1 column and three categories; some values are missing on request."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(40, 9, 90), rng.random(90) < 0.2, rng.integers(0, 3, 90)])
    if missing:
        X[::5, 0] = X[::7, 1] = X[::11, 2] = np.nan
    frame = pd.DataFrame(X, columns=NAMES)
    return frame.assign(town=frame["town"].map(TOWNS[2]))


def mixed(missing=False, n_outputs=None):
    frame = table(missing)
    grid = ColumnGrid(basis={"age": OrthonormalPolynomial(3), "flag (0/1)": RankPolynomial(1)})
    rows = grid.read(frame)
    design = grid.fit(rows, np.ones(len(rows)))
    nodes = [((0, 2),), ((1, 1),), ((0, 1), (1, 1)), ((2, 1),), ((0, 2), (2, 1))]
    nodes += [((0, 3), (1, 1), (2, 1))]
    return rows.matrix, design, make_model(design, nodes, n_outputs=n_outputs)


def test_columns_of_two_values_are_written_out():
    X = np.column_stack([[0.0, 0.0, 0.0, 1.0, 1.0], [3.0, 3.0, 3.0, 3.0, -5.0]])
    design = design_of(X, [RankPolynomial(1), RankPolynomial(4)], names=["flag", "side"])
    model = make_model(design, [((0, 1),), ((1, 1),), ((0, 1), (1, 1))])
    assert WrittenFormula(model, design).exact
    text = formula(model, design, 15)
    assert "z(flag) = (flag - 0.4) / 0.489897948556636, 0 <= flag <= 1\n" in text
    assert ", -5 <= side <= 3\n" in text
    new = np.vstack([X, [[0.3, 1.0], [-7.0, 1e300], [1e300, -1e300]]])
    f = model.predict(design, new)
    np.testing.assert_allclose(evaluate_text(text, new, ["flag", "side"])["f"], f, atol=1e-12)
    np.testing.assert_allclose(WrittenFormula(model, design).evaluate(new), f, atol=1e-13)


def test_functions_of_the_rank_with_few_knots_are_told_in_full():
    names = ["a", "b", "c"]
    X, _, design, model = fitted(BASES["mixed with ranks"], names=names)
    text = formula(model, design, 15)
    assert "q1(a): " in text
    assert "about" not in text
    new = X + np.linspace(-4, 4, len(X))[:, None] * X.std(axis=0)
    for rows in (X, new):
        f = model.predict(design, rows)
        ours = evaluate_text(text, rows, names)["f"]
        np.testing.assert_allclose(ours, f, rtol=0, atol=1e-9 * np.abs(f).max())


@pytest.mark.parametrize("level", [1, 2, 3])
def test_functions_of_the_rank_with_many_knots_are_told_about(level):
    rng = np.random.default_rng(0)
    x = np.where(rng.random(500) < 0.7, 0.0, rng.lognormal(sigma=2.0, size=500))
    design = design_of(x[:, None], [RankPolynomial(3)], names=["x"])
    model = make_model(design, [((0, level),)])
    text = formula(model, design, 12)
    line = text.split("where\n")[1].replace("\n      ", " ").splitlines()[0]
    assert line.startswith("  f(x): about ")
    points = np.array([float(part.split(" at ")[1]) for part in line.split(";")[0].split(", ")])
    assert len(points) == 9
    assert points[0] == 0.0
    assert points[-1] == pytest.approx(x.max(), rel=1e-10)
    at_points = evaluate_text(text, points[:, None], ["x"])["f"]
    np.testing.assert_allclose(at_points, model.predict(design, points[:, None]), atol=1e-9)
    # Between them the text is near (an eighth of the bound), the jump after the zeros included.
    error = evaluate_text(text, x[:, None], ["x"])["f"] - model.predict(design, x[:, None])
    assert np.abs(error).max() < 0.25 * abs(model.coef[0])


@pytest.mark.parametrize("n_outputs", [None, 3])
def test_categories_times_other_levels_are_tables(n_outputs):
    X, design, model = mixed(n_outputs=n_outputs)
    outputs = None if n_outputs is None else ["low", "high", "none"]
    text = formula(model, design, 15, outputs)
    rows = np.vstack([X, [[41.0, 1.0, -1.0]]])  # a category not seen
    f = model.predict(design, rows).reshape(len(rows), -1)
    ours = np.column_stack(list(evaluate_text(text, rows, NAMES, TOWNS).values()))
    np.testing.assert_allclose(ours, f, rtol=0, atol=1e-10 * np.abs(f).max())
    assert "columns" not in text.replace("column k", "")
    if n_outputs is None:
        assert "\n  f(age, flag (0/1), town)\n    town" in text
    else:
        assert "town = 'Oslo': z(age)*z(flag (0/1))" in text


@pytest.mark.parametrize("n_outputs", [None, 2])
def test_missing_values_in_the_text(n_outputs):
    X, design, model = mixed(missing=True, n_outputs=n_outputs)
    f = model.predict(design, X)
    terms = WrittenFormula(model, design)
    np.testing.assert_allclose(terms.evaluate(X), f, rtol=0, atol=1e-12 * np.abs(f).max())
    text = terms.text(15)
    ours = np.column_stack(list(evaluate_text(text, X, NAMES, TOWNS).values()))
    np.testing.assert_allclose(ours, f.reshape(ours.shape), rtol=0, atol=1e-10 * np.abs(f).max())
    assert "  an effect is 0 where one of its variables is missing or a category that is " in text
    assert np.isfinite(terms.cancellation(X))


def test_effects_of_a_variable_that_may_be_missing():
    X = np.array([[-1.0], [0.0], [1.0], [np.nan]])
    design = design_of(X, [OrthonormalPolynomial(2)], names=["age"])
    model = make_model(design, [((0, 1),), ((0, 2),)])
    text = formula(model, design, 15)
    assert text.splitlines()[4:] == [
        "  z(age) = age / 0.816496580927726, -1 <= age <= 1",
        "  beyond its range a variable counts as the nearer end of it",
        "  an effect is 0 where one of its variables is missing",
    ]
    values = evaluate_text(text, X, ["age"])["f"]
    np.testing.assert_allclose(values, model.predict(design, X), atol=1e-13)
    assert values[3] == model.intercept
    assert WrittenFormula(model, design).exact


@pytest.mark.parametrize("name", ["orthonormal", "mixed", "mixed with asinh", "gaussian-cut"])
def test_values_missing_where_none_was_expected(name):
    X, _, design, model = fitted(BASES[name])
    X = X.copy()
    X[::3, 0] = X[::4, 1] = X[1::5, 2] = np.nan
    f = model.predict(design, X)
    terms = WrittenFormula(model, design)
    np.testing.assert_allclose(terms.evaluate(X), f, rtol=0, atol=1e-11 * np.abs(f).max())
    assert np.isfinite(terms.cancellation(X))
