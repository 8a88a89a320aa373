"""Each baseline against what it says it solves."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from hikernel import experiments
from hikernel.bases import Gaussian, Polynomial
from hikernel.experiments.greedy import GreedyClassifier, GreedyRegressor
from hikernel.experiments.l2 import L2Classifier, L2Regressor
from hikernel.experiments.lasso_alpha import LassoAlphaRegressor
from hikernel.experiments.logistic import logistic_path
from hikernel.experiments.mkl import MKLRegressor
from hikernel.experiments.paper_bases import CentredGaussian, centred_gaussian
from hikernel.experiments.product_kernel import KernelMap, ProductKernel

pytestmark = pytest.mark.slow

BASES = [Polynomial(3), centred_gaussian(0.2, levels=4), Gaussian(degree=2, b=0.3)]


def explicit_kernel(kernel, X, Z):
    """Sum over all vertices, one by one."""
    total = np.zeros((len(X), len(Z)))
    levels = [
        (basis.transform(x), basis.transform(z))
        for basis, x, z in zip(kernel.bases, X.T, Z.T, strict=True)
    ]
    for vertex in itertools.product(*(range(len(left)) for left, _ in levels)):
        block = np.ones_like(total)
        for m, j in enumerate(vertex):
            share = 1.0 if kernel.share is None else kernel.share / kernel.sizes[m]
            weight = share * kernel.decay ** (j - 1) if j else 1.0
            block *= weight * (levels[m][0][j] @ levels[m][1][j].T)
        total += block
    return total


@pytest.mark.parametrize("share", [0.3, None])
@pytest.mark.parametrize("basis", BASES, ids=lambda b: b.name)
def test_the_full_kernel_is_the_sum_over_all_vertices(data, basis, share):
    X, _ = data
    kernel = ProductKernel.fit(X, basis, share=share, decay=0.5)
    np.testing.assert_allclose(
        kernel.matrix(X[:7], X), explicit_kernel(kernel, X[:7], X), rtol=1e-10, atol=1e-12
    )


def test_a_constant_column_changes_nothing(data):
    X, _ = data
    with_constant = np.column_stack([X, np.ones(len(X))])
    one, two = (ProductKernel.fit(Z, Polynomial(2)).matrix(Z, Z) for Z in (X, with_constant))
    np.testing.assert_allclose(one, two)


def test_the_map_reproduces_the_centred_kernel(data):
    X, _ = data
    kernel = ProductKernel.fit(X, Polynomial(2))
    found = KernelMap.fit(kernel, X)
    C = np.eye(len(X)) - 1.0 / len(X)
    K = C @ kernel.matrix(X, X) @ C
    np.testing.assert_allclose(found.features @ found.features.T, K, atol=1e-9)
    np.testing.assert_allclose(found.transform(X), found.features, atol=1e-6)
    assert found.mean_square == pytest.approx(np.trace(K) / len(X))


def test_l2_is_kernel_ridge_with_an_intercept(data):
    X, y = data
    model = L2Regressor(0.02, basis=Polynomial(3), share=0.4).fit(X, y)
    K = model.map_.kernel.matrix(X, X)
    C = np.eye(len(X)) - 1.0 / len(X)
    centred = C @ K @ C
    ridge = KernelRidge(alpha=0.02 * np.trace(centred), kernel="precomputed")
    ridge.fit(centred, y - y.mean())
    new = np.random.default_rng(1).standard_normal((20, 3))
    cross = (model.map_.kernel.matrix(new, X) - K.mean(axis=0)) @ C
    np.testing.assert_allclose(model.predict(new), ridge.predict(cross) + y.mean(), atol=1e-8)


def test_l2_leaves_one_out_exactly(data):
    X, y = data
    alphas = np.array([0.3, 0.01])
    model = L2Regressor(basis=Polynomial(2), share=0.3).fit(X, y)
    found = model.leave_one_out(alphas)
    F = model.map_.features
    for i in (0, 17, 59):
        kept = np.arange(len(X)) != i
        for k, alpha in enumerate(alphas):
            ridge = Ridge(alpha * len(X) * model.map_.mean_square).fit(F[kept], y[kept])
            assert found[i, k] == pytest.approx(y[i] - ridge.predict(F[[i]])[0], abs=1e-7)


def test_l2_paths_pass_through_single_fits(data):
    X, y = data
    alphas = np.array([1e-1, 1e-3])
    path = L2Regressor(basis=Polynomial(2)).fit(X, y).predict_path(X, alphas)
    for k, alpha in enumerate(alphas):
        single = L2Regressor(alpha, basis=Polynomial(2)).fit(X, y).predict(X)
        np.testing.assert_allclose(path[:, k], single, atol=1e-10)


def test_l2_classifier_is_logistic_regression_in_the_features(data):
    X, y = data
    labels = np.where(y > 0, "up", "down")
    model = L2Classifier(0.01, basis=Polynomial(2), share=0.3).fit(X, labels)
    strength = 0.01 * model.map_.mean_square
    peer = LogisticRegression(C=1.0 / (strength * len(X)), tol=1e-10, max_iter=10_000)
    peer.fit(model.map_.features, labels)
    np.testing.assert_allclose(
        model.decision_function(X), peer.decision_function(model.map_.features), atol=2e-3
    )
    assert set(model.predict(X)) <= {"up", "down"}
    np.testing.assert_allclose(
        model.decision_path(X, np.array([0.01]))[:, 0], model.decision_function(X)
    )
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        L2Classifier().fit(X, np.arange(len(X)) % 3)


def test_the_logistic_path_is_stationary():
    rng = np.random.default_rng(3)
    F, signs = rng.standard_normal((80, 5)), rng.choice([-1.0, 1.0], 80)
    strengths = np.array([1.0, 1e-3, 1e-1])
    coef, intercept = logistic_path(F, signs, strengths)
    for k, strength in enumerate(strengths):
        wrong = 1.0 / (1.0 + np.exp(signs * (F @ coef[:, k] + intercept[k])))
        gradient = strength * coef[:, k] - F.T @ (signs * wrong) / 80
        assert np.abs(gradient).max() < 1e-6
        assert abs(np.mean(signs * wrong)) < 1e-6


def test_separated_classes_do_not_break_the_logistic_path():
    x = np.linspace(-1, 1, 40)[:, None]
    coef, _ = logistic_path(x, np.sign(x[:, 0] + 1e-9), np.array([1e-1, 1e-8]))
    assert np.all(np.isfinite(coef))
    assert coef[0, 1] > coef[0, 0] > 0


def test_greedy_finds_the_terms_one_after_the_other():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 5))
    y = 3 * X[:, 2] + X[:, 0] + 2 * X[:, 0] * X[:, 2]
    model = GreedyRegressor(3, basis=Polynomial(2), ridge=1e-9).fit(X, y)
    assert model.nodes_[0] == ((2, 1),)
    assert set(model.nodes_) == {((2, 1),), ((0, 1),), ((0, 1), (2, 1))}
    assert model.score(X, y) > 0.999
    assert model.predict_path(X).shape == (400, 4)
    np.testing.assert_allclose(model.predict_path(X)[:, 0], y.mean())


def test_greedy_takes_the_best_candidate_by_brute_force(data):
    X, y = data
    model = GreedyRegressor(6, basis=Polynomial(2)).fit(X, y)
    chosen = []
    for step, node in enumerate(model.nodes_):
        residual = y - model.predict_path(X)[:, step]
        scores = {}
        for levels in itertools.product(range(3), repeat=3):
            w = tuple((m, j) for m, j in enumerate(levels) if j)
            parents = [(*levels[:m], j - 1, *levels[m + 1 :]) for m, j in enumerate(levels) if j]
            named = [tuple((m, j) for m, j in enumerate(parent) if j) for parent in parents]
            if not w or w in chosen or not all(p in [*chosen, ()] for p in named):
                continue
            column = np.ones(len(X))
            for m, j in w:
                column = column * model.bases_[m].transform(X[:, m])[j][:, 0]
            column -= column.mean()
            scores[w] = (residual @ column) ** 2 / (column @ column)
        assert node == max(scores, key=scores.get)
        chosen.append(node)


def test_greedy_ends_when_the_graph_does():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 1))
    model = GreedyRegressor(20, basis=Polynomial(3)).fit(X, X[:, 0] ** 2)
    assert len(model.nodes_) == 3
    # Without a constant level the root is a kernel too.
    bumps = GreedyRegressor(20, basis=Gaussian(degree=2, b=0.3)).fit(X, X[:, 0] ** 2)
    assert bumps.nodes_[0] == ()
    assert len(bumps.nodes_) == 3


def test_greedy_classifier_separates_and_names_its_classes():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(200, 4))
    labels = np.where(X[:, 3] + 0.5 * X[:, 1] > 0, "b", "a")
    model = GreedyClassifier(2, basis=Polynomial(1)).fit(X, labels)
    assert model.nodes_ == [((3, 1),), ((1, 1),)]
    assert model.score(X, labels) > 0.97
    assert model.decision_function(X).shape == (200,)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        GreedyClassifier().fit(X, np.arange(200) % 3)


def test_mkl_selects_variables_and_reaches_its_optimum():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(120, 4))
    y = X[:, 1] ** 3 + X[:, 2] + 0.05 * rng.standard_normal(120)
    model = MKLRegressor(0.1, basis=Polynomial(2)).fit(X, y)
    assert set(model.variables_) <= {1, 2}
    # The objective against a smooth minimiser over all coefficients, y standardised as inside.
    z = (y - y.mean()) / y.std()
    blocks = []
    for m in range(4):
        levels = np.hstack(Polynomial(2).fit(X[:, m]).transform(X[:, m])[1:])
        blocks.append(levels / np.sqrt(np.mean(np.sum(levels**2, axis=1))))
    F = np.hstack(blocks)
    F -= F.mean(axis=0)

    def objective(beta):
        norms = np.sqrt(np.sum(beta.reshape(4, 2) ** 2, axis=1) + 1e-14)
        return 0.5 * np.mean((z - F @ beta) ** 2) + 0.05 * norms.sum() ** 2

    best = minimize(
        objective, np.full(8, 0.1), method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}
    )
    f = (model.predict(X) - y.mean()) / y.std()
    np.testing.assert_allclose(f, F @ best.x, atol=5e-3)
    path = MKLRegressor(basis=Polynomial(2)).fit_path(X, y, np.array([1.0, 0.1]))
    np.testing.assert_allclose(path.predict_path(X)[:, 1], model.predict(X), atol=2e-3)


def test_mkl_takes_alphas_in_any_order_and_needs_a_constant(data):
    X, y = data
    falling, rising = (
        MKLRegressor(basis=Polynomial(2)).fit_path(X, y, np.array(alphas))
        for alphas in ([1.0, 0.1, 0.01], [0.01, 0.1, 1.0])
    )
    np.testing.assert_allclose(rising.predict_path(X), falling.predict_path(X)[:, ::-1], atol=1e-12)
    single = MKLRegressor(1.0, basis=Polynomial(2)).fit(X, y)
    np.testing.assert_allclose(rising.predict(X), single.predict(X), atol=2e-3)
    assert rising.variables_ == single.variables_
    with pytest.raises(ValueError, match="no constant level"):
        MKLRegressor(basis=Gaussian(degree=2, b=0.3)).fit(X, y)


def test_the_gaussian_of_the_tables_has_nine_kernels():
    x = np.random.default_rng(0).standard_normal(500)
    fitted = centred_gaussian(0.5).fit(x)
    assert len(fitted.widths) == 9
    assert fitted.widths[:8] == (1,) * 8
    levels = fitted.transform(x)
    z = fitted.scaler.transform(x)
    np.testing.assert_allclose(
        sum(level @ level.T for level in levels[1:]), CentredGaussian(0.5)(z, z), atol=1e-6
    )
    assert np.all(levels[0] == 1.0)


BASELINES = [
    L2Regressor(),
    L2Classifier(),
    GreedyRegressor(5),
    GreedyClassifier(5),
    LassoAlphaRegressor(),
    MKLRegressor(),
]


@parametrize_with_checks(BASELINES)
def test_scikit_learn_takes_them_for_estimators(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_the_package_has_them_all():
    assert {type(model).__name__ for model in BASELINES} == set(experiments.__all__)
    for model in BASELINES:
        assert getattr(experiments, type(model).__name__) is type(model)
    with pytest.raises(AttributeError, match="has no attribute 'SVM'"):
        experiments.SVM  # noqa: B018


def test_probabilities_are_those_of_the_decision(data):
    X, y = data
    labels = np.where(y > 0, "b", "a")
    for model in (L2Classifier(), GreedyClassifier(3)):
        model.fit(X, labels)
        P = model.predict_proba(X)
        np.testing.assert_allclose(P.sum(axis=1), 1.0)
        np.testing.assert_allclose(np.log(P[:, 1] / P[:, 0]), model.decision_function(X))
        assert np.all(model.classes_[P.argmax(axis=1)] == model.predict(X))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (L2Regressor(-1), "alpha must be a positive number, got -1"),
        (L2Regressor(float("nan")), "alpha must be a positive number, got nan"),
        (L2Regressor("0.1"), "alpha must be a positive number, got '0.1'"),
        (L2Regressor(share=-1), "share must be a positive number, got -1"),
        (L2Regressor(decay=0), "decay must be a positive number, got 0"),
        (L2Regressor(basis="auto"), "the baselines have one for all"),
        (L2Classifier(0), "alpha must be a positive number, got 0"),
        (GreedyRegressor(0), "n_kernels must be a whole number from 1 on, got 0"),
        (GreedyRegressor(2.5), "n_kernels must be a whole number from 1 on, got 2.5"),
        (GreedyRegressor(ridge=-1), "ridge must be a positive number, got -1"),
        (GreedyClassifier(basis="auto"), "the baselines have one for all"),
        (LassoAlphaRegressor(0), "alpha must be a positive number, got 0"),
        (LassoAlphaRegressor(max_steps=0), "max_steps must be a whole number from 1 on, got 0"),
        (LassoAlphaRegressor(tol=-1), "tol must be a positive number, got -1"),
        (MKLRegressor(-1), "alpha must be a positive number, got -1"),
        (MKLRegressor(basis="auto"), "the baselines have one for all"),
    ],
    ids=str,
)
def test_parameters_that_make_no_sense_are_named(data, model, message):
    X, y = data
    with pytest.raises(ValueError, match=message):
        model.fit(X, y > 0 if isinstance(model, L2Classifier | GreedyClassifier) else y)


@pytest.mark.parametrize("model", [LassoAlphaRegressor(), MKLRegressor()], ids=str)
def test_paths_need_alphas(data, model):
    X, y = data
    with pytest.raises(ValueError, match="alphas must be a list of positive numbers"):
        model.fit_path(X, y, np.array([]))
    with pytest.raises(ValueError, match="alpha must be a positive number, got -1"):
        model.fit_path(X, y, np.array([0.1, -1.0]))


def test_mkl_says_where_there_is_no_kernel():
    with pytest.raises(ValueError, match="Every column of X is constant"):
        MKLRegressor().fit(np.ones((5, 2)), np.arange(5.0))
