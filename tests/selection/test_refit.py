"""Refits on data with a known truth."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from losses.cases import CASES
from oracles.designs import training_problem
from sklearn.linear_model import LinearRegression

from hikernel.bases import Categorical, Gaussian, OrthonormalPolynomial, Polynomial, Spline
from hikernel.losses import Huber, LogLoss, Multinomial, Poisson, SquaredError, SquaredHinge
from hikernel.search import SearchSettings
from hikernel.selection import refit, refit_is_possible
from hikernel.selection.refit import REFITS, selected_variables, variables_key
from hikernel.selection.ridge import fit_ridge

SETTINGS = SearchSettings(certify="none")
SMOOTH = [SquaredError(), Huber(), LogLoss(), Poisson(), SquaredHinge()]


@pytest.fixture
def one_pass(monkeypatch):
    """Let no refit drop effects in a second pass."""
    monkeypatch.setattr(import_module("hikernel.selection.refit"), "_DROPPED_SHARES", ())


def signal(X):
    return X[:, 0] + 1.5 * X[:, 0] * X[:, 1]


def target(f, loss, rng):
    if isinstance(loss, Poisson):
        return rng.poisson(np.exp(0.7 * f)).astype(float)
    if isinstance(loss, (LogLoss, SquaredHinge)):
        return np.where(f + 0.5 * rng.standard_normal(len(f)) > 0.0, 1.0, -1.0)
    return 5.0 + 10.0 * f + 3.0 * rng.standard_normal(len(f))


def make(loss=None, basis=None, n=300, p=5, seed=0, weights=None, truth=signal, **settings):
    loss = SquaredError() if loss is None else loss
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, p))
    y = target(truth(X), loss, rng)
    basis = "orthonormal" if basis is None else basis
    return training_problem(X, y, basis, loss, weights, **settings), X, y


def loss_of(problem, fitted, X, y):
    f = fitted.model.predict(fitted.design, X)
    return float(np.mean(problem.loss.value((y - problem.center) / problem.scale, (f - problem.center) / problem.scale)))  # fmt: skip  # noqa: E501


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
@pytest.mark.parametrize("name", sorted(REFITS))
def test_a_refit_undoes_the_shrinkage(name, loss):
    problem, _, _ = make(loss)
    _, X_new, y_new = make(loss, n=2000, seed=1)
    model = problem.solve(0.02, SETTINGS)
    assert ((0, 1), (1, 1)) in model.nodes
    plain = refit(None, problem, model)
    assert plain.model is model
    assert plain.refit is None
    fitted = refit(name, problem, model)
    assert fitted.refit == name
    assert loss_of(problem, fitted, X_new, y_new) < 0.95 * loss_of(problem, plain, X_new, y_new)


@pytest.mark.parametrize("name", sorted(REFITS))
def test_the_model_of_a_refit_describes_what_predicts(name):
    problem, X, _ = make(weights=np.random.default_rng(5).integers(0, 3, 300).astype(float))
    model = problem.solve(0.02, SETTINGS)
    fitted = refit(name, problem, model)
    new = fitted.model
    assert (
        len(new.coef)
        == new.widths.sum()
        == fitted.design.engine(X, np.ones(300)).features(new.nodes).shape[1]
    )
    f = fitted.design.engine(X, np.ones(300)).apply(new.nodes, new.coef) + new.intercept
    np.testing.assert_allclose(new.predict(fitted.design, X), f, atol=1e-9)
    assert new.shares.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(new.norms, [np.linalg.norm(b) for b in np.split(new.coef, np.cumsum(new.widths)[:-1])])  # fmt: skip  # noqa: E501
    frame = new.frame(fitted.design)
    assert {"x0", "x0 * x1"} <= set(frame.sort_values("share").tail(2)["term"])
    # What is about the convex problem stays.
    assert new.certificate == replace(model.certificate, refit=name)
    assert "predictions come from a refit" in str(new.certificate)
    assert "refit" not in str(model.certificate)
    assert new.lam == model.lam
    assert new.dual_coef is model.dual_coef
    assert (fitted.mu > 0.0) == (name != "unpenalised")
    if name == "variables":
        variables = {m for node in new.nodes for m, _ in node}
        assert variables == set(selected_variables(model))
        assert max(level for node in new.nodes for _, level in node) > 4
        known = {node: i for i, node in enumerate(model.nodes)}
        for i, node in enumerate(new.nodes):
            assert (new.eta[i] == 0.0) == (node not in known)
    else:
        assert new.nodes == [v for v, norm in zip(model.nodes, model.norms, strict=True) if norm]
        assert fitted.design is problem.design


def test_unpenalised_is_least_squares():
    # Powers that are not scaled: columns of very different size.
    problem, X, y = make(basis=Polynomial(4))
    model = problem.solve(0.02, SETTINGS)
    fitted = refit("unpenalised", problem, model)
    features = problem.engine.features(fitted.model.nodes)
    expected = LinearRegression().fit(features, y)
    np.testing.assert_allclose(
        fitted.model.predict(fitted.design, X), expected.predict(features), rtol=1e-6
    )


def test_ridge_is_in_the_metric_of_zeta():
    problem, X, y = make()
    model = problem.solve(0.01, SETTINGS)
    fitted = refit("ridge", problem, model)
    kept = model.norms > 0.0
    zeta = model.zeta[kept]
    features = problem.engine.features(fitted.model.nodes)
    scaled = features * np.sqrt(zeta / zeta.max())
    standard = (y - problem.center) / problem.scale
    direct = fit_ridge(scaled.copy(), standard, np.full(300, 1 / 300), SquaredError())
    assert fitted.mu == pytest.approx(direct.mu)
    np.testing.assert_allclose(
        fitted.model.predict(fitted.design, X),
        problem.center + problem.scale * (scaled @ direct.coef + direct.intercept),
        rtol=1e-8,
    )


def test_the_variables_refit_finds_what_the_graph_could_not_hold():
    """The truth is of degree six in one variable; the graph ends at four."""
    problem, X, y = make(truth=lambda X: np.cos(4.0 * X[:, 0]), n=400)
    model = problem.solve(3e-3, SETTINGS)
    fitted = refit("variables", problem, model)
    f = fitted.model.predict(fitted.design, X)
    shrunk = model.predict(problem.design, X)
    assert np.mean((y - f) ** 2) < 0.6 * np.mean((y - shrunk) ** 2)


@pytest.mark.parametrize("degree", [2, 3, 4, 5])
def test_the_variables_refit_goes_two_degrees_further_whatever_the_degree(degree):
    problem, _, _ = make(degree=degree)
    model = problem.solve(0.02, SETTINGS)
    nodes = refit("variables", problem, model).model.nodes
    assert max(level for node in nodes for _, level in node) == degree + 2
    assert max(sum(level for _, level in node) for node in nodes) == degree + 2


def test_a_basis_object_keeps_its_degree_in_the_variables_refit():
    for degree in (3, 4):
        problem, _, _ = make(basis=OrthonormalPolynomial(degree))
        model = problem.solve(0.02, SETTINGS)
        nodes = refit("variables", problem, model).model.nodes
        assert max(level for node in nodes for _, level in node) == degree


def effect_shares(fitted):
    """The share of every set of variables in the variance of all terms."""
    found = {}
    for node, share in zip(fitted.model.nodes, fitted.model.shares, strict=True):
        variables = tuple(m for m, _ in node)
        found[variables] = found.get(variables, 0.0) + share
    return found


@pytest.mark.parametrize("loss", [SquaredError(), LogLoss()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("name", ["sparse", "variables"])
def test_a_second_pass_drops_the_effects_that_nobody_misses(name, loss, monkeypatch):
    problem, _, _ = make(loss, n=400, p=4)
    model = problem.solve(3e-4, SETTINGS)
    with monkeypatch.context() as patch:
        patch.setattr(import_module("hikernel.selection.refit"), "_DROPPED_SHARES", ())
        whole = refit(name, problem, model)
    fitted = refit(name, problem, model)
    before, after = effect_shares(whole), effect_shares(fitted)
    assert set(after) < set(before)
    assert {(0,), (0, 1)} <= set(after)
    # Whole effects are dropped, those of the least share.
    kept = {node for node in whole.model.nodes if tuple(m for m, _ in node) in after}
    assert set(fitted.model.nodes) == kept
    least_kept = min(before[variables] for variables in after)
    most_dropped = max(share for variables, share in before.items() if variables not in after)
    assert most_dropped < least_kept
    assert most_dropped < 3e-2
    # What is left predicts as well on new rows.
    _, X_new, y_new = make(loss, n=4000, p=4, seed=1)
    assert loss_of(problem, fitted, X_new, y_new) < 1.03 * loss_of(problem, whole, X_new, y_new)
    assert fitted.refit == name
    assert fitted.model.certificate.refit == name


def test_effects_that_matter_are_not_dropped(one_pass):
    problem, _, _ = make(n=400, p=3, truth=lambda X: X[:, 0] + X[:, 1] + X[:, 2])
    model = problem.solve(0.01, SETTINGS)
    ridge, sparse = (refit(name, problem, model) for name in ("ridge", "sparse"))
    # Without a second pass they are the same fit.
    assert sparse.model.nodes == ridge.model.nodes
    np.testing.assert_allclose(sparse.model.coef, ridge.model.coef, rtol=1e-9)


def test_a_weak_effect_stays_if_it_is_missed():
    # 2 % of the variance, without noise: dropping it would raise the error by far.
    problem, _, _ = make(n=400, p=3, truth=lambda X: 10.0 * X[:, 0] + 1.5 * X[:, 1])
    model = problem.solve(1e-4, SETTINGS)
    shares = effect_shares(refit("ridge", problem, model))
    assert 0.01 < shares[(1,)] < 0.03
    assert (1,) in effect_shares(refit("sparse", problem, model))


@pytest.mark.parametrize("max_order", [1, 2])
def test_the_variables_refit_keeps_to_max_order(max_order, one_pass):
    problem, _, _ = make(truth=lambda X: X[:, 0] + X[:, 1] + X[:, 2], max_order=max_order)
    model = problem.solve(0.001, SETTINGS)
    nodes = refit("variables", problem, model).model.nodes
    assert max(len(node) for node in nodes) == max_order


def test_many_variables_lower_the_degree(one_pass):
    problem, _, _ = make(p=11, truth=lambda X: X.sum(axis=1), n=400)
    model = problem.solve(0.001, SETTINGS)
    assert len(selected_variables(model)) == 11
    new = refit("variables", problem, model).model
    degrees = [sum(level for _, level in node) for node in new.nodes]
    assert max(degrees) == 3
    assert len(new.nodes) == 363  # 11 + 66 + 286
    problem, _, _ = make(p=12, truth=lambda X: X.sum(axis=1), n=400)
    assert refit("variables", problem, problem.solve(0.001, SETTINGS)) is None


@pytest.mark.parametrize(("p", "many"), [(13, False), (14, True)])  # 377 and 469 products
def test_too_many_variables_are_told_before_any_basis_is_fitted(p, many, monkeypatch):
    problem, _, _ = make(p=p, truth=lambda X: X.sum(axis=1), n=400)
    model = problem.solve(0.001, SETTINGS)
    assert len(selected_variables(model)) == p
    fitted = []
    richer = type(problem.design).richer
    monkeypatch.setattr(
        type(problem.design), "richer", lambda *args: fitted.append(1) or richer(*args)
    )
    assert refit("variables", problem, model) is None
    assert bool(fitted) is not many


@pytest.mark.parametrize(
    "basis",
    [Spline(), Gaussian(constant_level=True), Gaussian(), Categorical()],
    ids=["spline", "gaussian", "bumps", "categorical"],
)
@pytest.mark.parametrize("name", sorted(REFITS))
@pytest.mark.filterwarnings("ignore::hikernel.bases.LowRankWarning")
def test_bases_with_several_columns(name, basis):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (200, 3)).astype(float)
    y = X[:, 0] - 2.0 * (X[:, 1] == 2.0) + 0.3 * rng.standard_normal(200)
    problem = training_problem(X, y, [basis] * 3)
    model = problem.solve(0.01, SETTINGS)
    fitted = refit(name, problem, model)
    if fitted is None:
        assert name != "ridge"
        return
    new = fitted.model
    assert len(new.coef) == new.widths.sum()
    f = new.predict(fitted.design, X)
    assert np.mean((y - f) ** 2) <= np.mean((y - model.predict(problem.design, X)) ** 2)
    engine = fitted.design.engine(X, np.ones(200))
    np.testing.assert_allclose(engine.apply(new.nodes, new.coef) + new.intercept, f, atol=1e-9)


@pytest.mark.parametrize("name", sorted(REFITS))
def test_a_hull_without_terms_is_refitted_by_its_constant(name):
    problem, X, y = make()
    model = problem.solve(1e9, SETTINGS)
    fitted = refit(name, problem, model)
    assert fitted.refit == name
    np.testing.assert_allclose(fitted.model.predict(fitted.design, X), y.mean(), rtol=1e-5)


def test_a_refit_without_penalty_needs_rows():
    problem, _, _ = make(n=40)
    model = problem.solve(1e-5, SETTINGS)
    assert 3 * model.widths[model.norms > 0.0].sum() > 40
    assert refit("unpenalised", problem, model) is None
    assert refit("ridge", problem, model) is not None


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_losses_with_kinks_have_none(case):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2))
    f = X[:, 0] if case.outputs is None else np.column_stack([X, X[:, 0] - X[:, 1]])
    y = case.target(f, rng)
    problem = training_problem(X, y, "orthonormal", case.loss, degree=2)
    assert refit_is_possible(problem) == case.loss.smooth
    model = problem.solve(0.01, SETTINGS)
    for name in REFITS:
        fitted = refit(name, problem, model)
        assert (fitted is not None) == case.loss.smooth
        if fitted is not None:
            assert fitted.model.coef.shape[1:] == fitted.model.intercept.shape == y.shape[1:]
    assert refit(None, problem, model).model is model


def make_classes(n=300, p=4, seed=0, k=3, basis=None):
    """Classes by the largest of k noisy signals, the second of them a product."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, p))
    signals = [2.0 * X[:, 0], 2.0 * X[:, 0] * X[:, 1], *np.zeros((k - 2, n))]
    f = np.transpose(signals) + 0.5 * rng.gumbel(size=(n, k))
    y = np.eye(k)[np.argmax(f, axis=1)]
    basis = "orthonormal" if basis is None else basis
    return training_problem(X, y, basis, Multinomial()), X, y


@pytest.mark.parametrize("basis", [None, Spline()], ids=["polynomial", "spline"])
@pytest.mark.parametrize("name", sorted(REFITS))
def test_several_classes_are_refitted(name, basis):
    problem, X, y = make_classes(basis=basis)
    _, X_new, y_new = make_classes(2000, seed=1)
    model = problem.solve(0.03, SETTINGS)
    fitted = refit(name, problem, model)
    if fitted is None:
        assert (name, basis is not None) == ("unpenalised", True)
        return
    assert loss_of(problem, fitted, X_new, y_new) < 0.95 * loss_of(problem, refit(None, problem, model), X_new, y_new)  # fmt: skip  # noqa: E501
    new = fitted.model
    assert new.coef.shape == (new.widths.sum(), 3)
    assert new.intercept.shape == (3,)
    np.testing.assert_allclose(new.coef.sum(axis=1), 0.0, atol=1e-9)
    engine = fitted.design.engine(X, np.ones(300))
    f = engine.apply(new.nodes, new.coef) + new.intercept
    np.testing.assert_allclose(new.predict(fitted.design, X), f, atol=1e-9)
    blocks = np.split(new.coef, np.cumsum(new.widths)[:-1])
    np.testing.assert_allclose(new.norms, [np.linalg.norm(block) for block in blocks])
    parts = [engine.apply([node], block) for node, block in zip(new.nodes, blocks, strict=True)]
    variances = np.array([np.sum(np.var(part, axis=0)) for part in parts])
    np.testing.assert_allclose(new.shares, variances / variances.sum(), atol=1e-9)
    # The minimiser: stationary in every class, the intercepts without a penalty.
    if name != "unpenalised":
        return
    slope = Multinomial().gradient(y, f)
    np.testing.assert_allclose(engine.correlate(new.nodes, slope) / 300, 0.0, atol=1e-5)
    np.testing.assert_allclose(slope.mean(axis=0), 0.0, atol=1e-7)


def test_many_classes_lower_the_number_of_columns(monkeypatch):
    problem, _, _ = make_classes()
    model = problem.solve(0.01, SETTINGS)
    assert refit("ridge", problem, model) is not None
    rich = refit("variables", problem, model).model
    width = int(model.widths[model.norms > 0.0].sum())
    limits = refit.__globals__
    monkeypatch.setitem(limits, "_MOST_HULL_FEATURES", 3 * width - 1)
    assert refit("ridge", problem, model) is None
    assert refit("unpenalised", problem, model) is None
    # The products contain the hull, for which there is no room.
    assert refit("variables", problem, model) is None
    monkeypatch.setitem(limits, "_MOST_HULL_FEATURES", 3 * len(rich.coef) - 1)
    fewer = refit("variables", problem, model).model
    assert width < len(fewer.coef) < len(rich.coef)


def test_a_part_of_the_rows_is_the_problem_of_these_rows():
    """TrainingProblem.subset: same bases and units, other rows."""
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 300)
    problem, X, y = make(weights=weights)
    rows = np.arange(0, 300, 2)
    part = problem.subset(rows)
    np.testing.assert_allclose(part.engine.row_weights, weights[rows] / weights[rows].sum())
    np.testing.assert_array_equal(part.rows, X[rows])
    np.testing.assert_allclose(part.y * part.scale + part.center, y[rows])
    model = part.solve(0.01, SETTINGS)
    assert len(model.dual_coef) == len(rows)
    engine = problem.design.engine(X[rows], weights[rows])
    np.testing.assert_allclose(
        part.engine.features(model.nodes), engine.features(model.nodes), atol=1e-12
    )
    # Its model is the minimiser over these rows: no dual variable of another row takes part.
    scores = part.engine.correlate(model.nodes, model.dual_coef)
    np.testing.assert_allclose(model.zeta * scores, model.coef, atol=1e-6)


def test_the_key_of_the_refit_on_variables_tells_its_terms():
    def truth(X):
        return X[:, 0] + X[:, 0] ** 3 * X[:, 1] ** 2 + 0.3 * X[:, 0] ** 2 * X[:, 1] ** 4

    problem, _, _ = make(truth=truth, p=3, degree=3)
    models = [problem.solve(lam, SETTINGS) for lam in np.geomspace(0.05, 5e-5, 25)]
    found: dict[object, set] = {}
    reused = 0
    for model in models:
        nodes = refit("variables", problem, model).model.nodes
        key = variables_key(model, problem.design)
        reused += key in found
        assert found.setdefault(key, nodes) == nodes
    assert reused > 2
    assert len(found) > len({selected_variables(model) for model in models})


def test_the_first_pass_of_sparse_may_come_from_ridge():
    problem, _, _ = make(p=3)
    model = problem.solve(1e-3, SETTINGS)
    ridge = refit("ridge", problem, model)
    alone, shared = refit("sparse", problem, model), refit("sparse", problem, model, ridge)
    assert shared.model.nodes == alone.model.nodes
    np.testing.assert_allclose(shared.model.coef, alone.model.coef, rtol=1e-9)
    calls = []
    module = import_module("hikernel.selection.refit")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "fit_ridge", lambda *args: calls.append(1) or fit_ridge(*args))
        refit("sparse", problem, model)
        n_alone = len(calls)
        refit("sparse", problem, model, ridge)
    assert len(calls) - n_alone == n_alone - 1
