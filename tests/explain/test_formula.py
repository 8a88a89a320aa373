"""The formula's numbers, and the numbers of its text, reproduce the prediction."""

import re
from importlib import import_module

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
from hikernel.explain import effects_summary, formula, formula_terms
from hikernel.explain.effects import effect_values

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
    assert terms.text().startswith("f = " if n_outputs is None else "f[k] is the sum of column k")
    # An effect of the formula has the values that effects(X) tells.
    _, values = effect_values(model, design, new)
    values = values.reshape(len(X), -1, terms.terms.n_outputs)
    effects = [effect for effect in terms.terms.effects if effect.variables]
    assert len(effects) == values.shape[1]
    for i, effect in enumerate(effects):
        ours = terms.effect(effect, new)
        np.testing.assert_allclose(ours, values[:, i], rtol=0, atol=1e-11 * np.abs(g).max())


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
    assert sorted(lines[:2]) + lines[2:] == [
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
    line = " ".join(text.split("where\n")[1].replace("\n      ", " ").split("\n")[0].split())
    assert line == (
        f"z(age) = (asinh((age - {np.median(x):.4g}) / {unit:.4g}) - {t.mean():.4g}) / "
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
    assert list(values) == ["'high'", "'low'", "'middle'"]
    f = model.decision_function(table)
    for k, value in enumerate(values.values()):
        np.testing.assert_allclose(value, f[:, k], rtol=0, atol=1e-9)
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
    model = make_model(design, nodes)
    text = formula(model, design)
    assert "\n    + f(age) " in text
    assert "\n    + f(age, year of birth) " in text
    assert "z(year of birth)*z(dose (mg))^2" in text
    kinds = "of the basis Indicators; smooth part of a cubic spline"
    columns = int(np.prod([design.bases[0].widths[1], design.bases[1].widths[2]]))
    assert (
        f"  f(age, year of birth)\n    not written out: {columns} columns ({kinds}); effects(X) has"
    ) in text
    # A function of one variable is told at some points.
    entry = text.split("  f(year of birth)\n")[1].split("\n  f(")[0].split("\n  z(")[0]
    entry = " ".join(entry.split())
    assert entry.endswith("; a curve between (smooth part of a cubic spline)")
    pairs = [pair.split(" at ") for pair in entry.removeprefix("about ").split(";")[0].split(", ")]
    heights, points = np.array(pairs, dtype=float).T
    block = model.kept().blocks[3]
    np.testing.assert_allclose(design.bases[1].transform(points)[2] @ block, heights, rtol=2e-3)
    assert not WrittenFormula(model, design).exact


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
    assert "*g1(age) " in text
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


def categories(n=60):
    """Three colours, a 0/1 column taken as categories, a boolean and a number."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "colour": COLOURS[rng.integers(0, 3, n)],
            "sex": rng.integers(0, 2, n),
            "owner": rng.random(n) < 0.4,
            "age": rng.normal(40, 9, n),
        }
    )
    grid = ColumnGrid(basis={"sex": Categorical(), "age": Polynomial(2)})
    rows = grid.read(table)
    return rows.matrix, grid.fit(rows, np.ones(n))


COLOURS = np.array(["any other", "green", "red"])
LABELS = {0: dict(enumerate(COLOURS.tolist()))}
FOUR = ["colour", "sex", "owner", "age"]


def test_functions_of_categories_are_tables():
    X, design = categories()
    model = make_model(design, [((0, 1),), ((1, 1),), ((2, 1),)])
    text = formula(model, design, 9)
    coefs = model.kept().blocks[0]
    line = next(line for line in text.splitlines() if line.startswith("  f(colour): "))
    for code, label in enumerate(COLOURS):
        value = float(re.search(rf"'{label}': (\S+),", line)[1])
        expected = design.bases[0].transform([float(code)])[1][0] @ coefs
        np.testing.assert_allclose(value, expected, rtol=1e-8)
    # The names are in quotes, and what is none of them is not.
    assert line.endswith(", any other: 0")
    values = [float(value) for value in re.findall(r"': (\S+),", line)]
    assert values == sorted(values, reverse=True)
    assert re.search(r"  f\(sex\): 0: \S+, 1: \S+, any other: 0\n", text)
    assert re.search(r"  f\(owner\): False: \S+, True: \S+\n", text)
    ours = evaluate_text(text, X, FOUR, LABELS)["f"]
    np.testing.assert_allclose(ours, model.predict(design, X), atol=1e-7)


@pytest.mark.parametrize("n_outputs", [None, 3])
@pytest.mark.parametrize(
    "nodes",
    [
        [((0, 1), (1, 1))],
        [((0, 1), (2, 1)), ((0, 1),)],
        [((0, 1), (3, 1)), ((0, 1), (3, 2))],
        [((2, 1), (3, 2)), ((2, 1),), ((3, 1),)],
        [((0, 1), (1, 1), (2, 1)), ((0, 1), (1, 1), (3, 1))],
    ],
    ids=["categories", "boolean", "number", "boolean and number", "three"],
)
def test_products_with_categories_are_tables(nodes, n_outputs):
    X, design = categories()
    model = make_model(design, nodes, n_outputs=n_outputs)
    X = np.vstack([X, [[-1.0, 0.0, 1.0, 41.0], [0.0, 7.0, 1.0, 41.0]]])  # categories not seen
    text = formula(model, design, 15)
    f = model.predict(design, X).reshape(len(X), -1)
    ours = np.column_stack(list(evaluate_text(text, X, FOUR, LABELS).values()))
    np.testing.assert_allclose(ours, f, rtol=0, atol=1e-10 * np.abs(f).max())
    assert "columns" not in text.split("where")[1].replace("head of its column", "")
    assert max(map(len, text.splitlines())) <= 100


def test_tables_of_many_categories_are_told_in_full():
    rng = np.random.default_rng(0)
    towns = np.array([f"the town of number {i}" for i in range(60)])
    table = pd.DataFrame({"a": np.tile(towns, 4), "b": rng.choice(towns[:9], 240)})
    grid = ColumnGrid()
    rows = grid.read(table)
    design = grid.fit(rows, np.ones(240))
    model = make_model(design, [((0, 1),), ((0, 1), (1, 1))])
    text = formula(model, design, 12)
    assert max(map(len, text.splitlines())) <= 96
    labels = {m: dict(enumerate(design.table.categories[m])) for m in (0, 1)}
    ours = evaluate_text(text, rows.matrix, ["a", "b"], labels)["f"]
    np.testing.assert_allclose(ours, model.predict(design, rows.matrix), atol=1e-8)


def test_the_largest_effects_come_first_and_the_rest_may_be_left_out():
    _, _, design, model = fitted(BASES["mixed-polynomials"], names=NAMES)
    terms = formula_terms(model, design)
    shares = [effect.share for effect in terms.effects]
    assert shares == sorted(shares, reverse=True)
    assert len(terms.effects) > 3
    assert [effect.name for effect in terms.effects] == effects_summary(model, design)[
        "effect"
    ].tolist()
    whole = formula(model, design)
    assert "left out" not in whole
    assert formula(model, design, max_terms=len(shares)) == whole
    short = formula(model, design, max_terms=2)
    lines = [line for line in short.split("\n\n")[0].splitlines() if line.endswith("%")]
    assert len(lines) == 3
    assert lines[2].split() == [
        *f"+ {len(shares) - 2} more effects, left out".split(),
        *f"{100 * sum(shares[2:]):.1f} %".split(),
    ]
    assert whole.startswith(short.partition("\n    + 4 more")[0][:30])
    one = formula(model, design, max_terms=len(shares) - 1)
    assert "+ 1 more effect, left out" in one
    for wrong in (0, -1, 2.5, "all"):
        with pytest.raises(ValueError, match="max_terms must be an integer >= 1"):
            formula(model, design, max_terms=wrong)


def test_left_out_effects_of_several_outputs():
    _, _, design, model = fitted(BASES["orthonormal"], n_outputs=3, names=NAMES)
    text = formula(model, design, max_terms=1)
    assert re.search(r"\n\d+ more effects, left out +[\d.]+ %\n", text)


def test_names_that_could_be_read_as_something_else_are_quoted():
    X, weights, _, _ = fitted(BASES["polynomial"])
    names = ["a", "b\nc", "a * b"]
    design = design_of(X, [Polynomial(2)] * 3, weights, names=names)
    text = formula(make_model(design, [((0, 1), (1, 1)), ((2, 1),)]), design)
    assert "z(a)*z('b\\nc')" in text
    assert "z('a * b')" in text
    assert all(line[:1] in ("f", " ", "", "w") for line in text.splitlines())
    for names in (["", " ", "z(a)"], ["3", "a, b", "x = 1"], ["b: c", " b", "f(b)"]):
        design = design_of(X, [Polynomial(2)] * 3, weights, names=names)
        text = formula(make_model(design, [((m, 1),) for m in range(3)]), design)
        assert all(f"z({name!r})" in text for name in names)


def test_large_numbers_are_written_out():
    x = 2e5 + 1e4 * np.arange(9.0)
    design = design_of(x[:, None], [OrthonormalPolynomial(1)], names=["pay"])
    model = make_model(design, [((0, 1),)])
    model.coef[:] = 82345.6
    text = formula(model, design)
    assert "+ 82350*z(pay)" in text
    assert "200000 <= pay <= 280000" in text


@pytest.mark.parametrize("n_outputs", [None, 2])
def test_huge_tables_are_only_named(n_outputs, monkeypatch):
    X, design = categories()
    model = make_model(design, [((0, 1), (1, 1)), ((0, 1), (2, 1))], n_outputs=n_outputs)
    f = model.predict(design, X)
    monkeypatch.setattr("hikernel.explain.formula_text._MOST_NUMBERS", 5)
    text = formula(model, design)
    size = 6 * (n_outputs or 1)
    assert f"\n    a table of {size} numbers, not written out; effects(X) has the values" in text
    assert "'green'" not in text
    np.testing.assert_allclose(WrittenFormula(model, design).evaluate(X), f, atol=1e-12)
    # Beyond some number of cells there is no table at all.
    module = import_module("hikernel.explain.formula")
    monkeypatch.setattr(module, "_MOST_CELLS", 5)
    text = formula(model, design)
    assert "not written out: 2 columns (" in text
    assert all(effect.rest for effect in formula_terms(model, design).effects)
    np.testing.assert_allclose(WrittenFormula(model, design).evaluate(X), f, atol=1e-12)
