"""HKLRegressor as a user meets it."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from hikernel import HKLRegressor
from hikernel.bases import BASES, Anova, Gaussian, Polynomial
from hikernel.errors import CertificateWarning, ConvergenceWarning


def data(n=150, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = 3.0 + X[:, 0] + 2.0 * X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, y


UNLIKE_REPEATED_ROWS = dict.fromkeys(
    [
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ],
    "the estimated error counts rows by how unequal their weights are, and weights have no unit",
)
"""What alpha="auto" does not promise."""


# On its data of pure noise with p > n nothing can be proven, and the model rightly says so.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hikernel.errors.CertificateWarning")
@parametrize_with_checks(
    [HKLRegressor()], expected_failed_checks=lambda model: UNLIKE_REPEATED_ROWS
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        (estimator, check)
        for estimator, check in estimator_checks_generator(HKLRegressor(alpha=0.01))
        if check.func.__name__ in UNLIKE_REPEATED_ROWS
    ],
)
def test_weights_are_repeated_rows_at_a_given_alpha(estimator, check):
    check(estimator)


def test_fitted_attributes_fit_together():
    X, y = data()
    model = HKLRegressor(0.005).fit(X, y)
    certificate = model.certificate_
    assert certificate.certified
    assert certificate.n_vertices == 5**4
    assert isinstance(certificate.n_vertices, int)
    assert model.n_iter_ == len(model.history_) >= 2
    assert list(model.hull_.columns) == [
        "term", "order", "degree", "width", "eta", "zeta", "norm", "share",
    ]  # fmt: skip
    assert "x0 * x1" in set(model.hull_["term"])
    assert model.hull_["share"].sum() == pytest.approx(1.0)
    assert len(model.coef_) == model.hull_["width"].sum()
    assert model.graph_.is_hull(model.nodes_)
    weights = model.graph_.weights(model.nodes_)
    assert weights**2 @ model.hull_["eta"] == pytest.approx(1.0)
    # The objective, written out from the public attributes alone.
    levels = [basis.transform(X[:, m]) for m, basis in enumerate(model._design.bases)]
    features = [
        np.prod([levels[m][j][:, 0] for m, j in node], axis=0) * np.ones(len(y))
        for node in model.nodes_
    ]
    prediction = np.column_stack(features) @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(X), prediction, atol=1e-10)
    norms = dict(zip(model.nodes_, model.hull_["norm"], strict=True))
    omega = sum(
        model.graph_.weight(v)
        * np.sqrt(sum(norms[w] ** 2 for w in norms if v in model.graph_.ancestors(w)))
        for v in norms
    )
    objective = 0.5 * np.mean((y - prediction) ** 2) + 0.5 * 0.005 * omega**2
    assert certificate.objective == pytest.approx(objective, rel=1e-9)
    # The dual variables give the coefficients back, and sum to zero.
    scores = np.column_stack(features).T @ model.dual_coef_
    np.testing.assert_allclose(model.hull_["zeta"] * scores, model.coef_, atol=1e-8)
    assert model.dual_coef_.sum() == pytest.approx(0.0, abs=1e-10)


def test_it_beats_ridge_where_there_is_an_interaction():
    X, y = data(400)
    X_test, y_test = data(400, seed=1)
    model = HKLRegressor(0.001).fit(X, y)
    ridge = make_pipeline(StandardScaler(), RidgeCV()).fit(X, y)
    assert model.score(X_test, y_test) > 0.9 > ridge.score(X_test, y_test)


def test_units_of_x_and_y_do_not_matter():
    X, y = data()
    model = HKLRegressor(0.01).fit(X, y)
    moved = HKLRegressor(0.01).fit(1e3 * X - 7.0, 50.0 * y + 1e4)
    assert list(moved.hull_["term"]) == list(model.hull_["term"])
    np.testing.assert_allclose(
        moved.predict(1e3 * X - 7.0), 50.0 * model.predict(X) + 1e4, rtol=1e-6
    )
    assert moved.certificate_.relative_gap == pytest.approx(
        model.certificate_.relative_gap, abs=1e-6
    )


@pytest.mark.parametrize("basis", sorted(BASES))
def test_integer_weights_equal_repeated_rows(basis):
    X, y = data(40, p=2)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    settings = {"basis": basis, "degree": 2, "tol": 1e-7}
    weighted = HKLRegressor(0.05, **settings).fit(X, y, sample_weight=weights)
    repeated = HKLRegressor(0.05, **settings).fit(np.repeat(X, weights, 0), np.repeat(y, weights))
    assert weighted.certificate_.objective == pytest.approx(
        repeated.certificate_.objective, rel=1e-6
    )
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=2e-3)
    assert np.all(weighted.dual_coef_[weights == 0] == 0.0)


def test_permuting_columns_permutes_terms():
    X, y = data()
    order = [2, 0, 3, 1]
    model = HKLRegressor(0.01, tol=1e-6).fit(X, y)
    permuted = HKLRegressor(0.01, tol=1e-6).fit(X[:, order], y)
    back = {tuple(sorted((order[m], level) for m, level in node)) for node in permuted.nodes_}
    assert back == set(model.nodes_)
    np.testing.assert_allclose(permuted.predict(X[:, order]), model.predict(X), atol=1e-4)


def test_names_of_a_data_frame_become_terms():
    X, y = data()
    frame = pd.DataFrame(X, columns=["age", "income", "c", "d"])
    model = HKLRegressor(0.005, basis={"c": "spline", "income": Polynomial(2)}).fit(frame, y)
    assert "age * income" in set(model.hull_["term"])
    assert model._design.bases[1].max_level == 2
    assert model._design.bases[2].max_level == 2
    assert model._design.bases[0].max_level == 4
    by_position = HKLRegressor(0.005, basis={2: "spline", 1: Polynomial(2)}).fit(X, y)
    np.testing.assert_allclose(by_position.predict(X), model.predict(frame))


def test_it_works_in_a_pipeline_and_a_grid_search():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:150, :4], y[:150]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), HKLRegressor(degree=2)),
        {"hklregressor__alpha": [0.1, 0.01]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.2
    copy = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(copy.predict(X), search.predict(X))
    assert clone(HKLRegressor(0.3)).alpha == 0.3


def test_more_columns_than_rows():
    X, y = data(30, p=50)
    with pytest.warns(CertificateWarning, match="10\\^35 kernels.*stopped at max_kernels"):
        model = HKLRegressor(0.1, search="paper", weight_base=2.0, max_kernels=30).fit(X, y)
    assert model.certificate_.n_vertices == 5**50
    assert np.all(np.isfinite(model.predict(X)))
    model = HKLRegressor(0.1, certify="none").fit(X, y)
    assert np.all(np.isfinite(model.predict(X)))


@pytest.mark.slow
def test_hundreds_of_variables_are_certified_with_max_order():
    X, y = data(300, p=300)
    model = HKLRegressor(0.05, max_order=2, weight_base=2.0).fit(X, y)
    assert model.certificate_.certified
    assert model.certificate_.n_vertices == 1 + 1200 + 16 * 300 * 299 // 2
    assert "x0 * x1" in set(model.hull_["term"])
    with pytest.raises(ValueError, match="constant level 0"):
        HKLRegressor(0.05, max_order=2, basis=Gaussian()).fit(X, y)


def test_wide_levels_use_the_dual_form():
    X, y = data(25, p=2)
    model = HKLRegressor(0.001, basis=Anova(b=2.0), weight_base=1.0).fit(X, y)
    assert model.hull_["width"].sum() > len(y)
    assert model.certificate_.certified
    assert model.score(X, y) > 0.9


def test_an_unproven_model_warns_and_says_why():
    X, y = data(200)
    with pytest.warns(CertificateWarning, match="stopped at max_kernels"):
        model = HKLRegressor(1e-4, max_kernels=3).fit(X, y)
    assert not model.certificate_.certified
    assert len(model.hull_) <= 3
    assert np.all(np.isfinite(model.predict(X)))


def test_asking_for_no_proof_is_silent():
    X, y = data(200)
    model = HKLRegressor(0.01, certify="none").fit(X, y)
    assert model.certificate_.kind == "none"
    proven = HKLRegressor(0.01).fit(X, y)
    # The proof adds nodes without weight: the models agree to the tolerance, 1e-3 of the objective.
    distance = np.mean((model.predict(X) - proven.predict(X)) ** 2)
    assert distance <= 4 * 1e-3 * proven.certificate_.objective


def test_verbose_shows_a_bar(capsys):
    X, y = data(60)
    HKLRegressor(0.01, verbose=True).fit(X, y)
    assert "search" in capsys.readouterr().err
    HKLRegressor(0.01).fit(X, y)
    assert capsys.readouterr().err == ""


def test_a_solver_that_does_not_converge_warns(monkeypatch):
    from hikernel.reduced import working_set
    from hikernel.reduced.newton import solve_reduced

    monkeypatch.setattr(
        working_set,
        "solve_reduced",
        lambda *args, tol, **kwargs: solve_reduced(*args, tol=1e-30, max_iter=1, **kwargs),
    )
    monkeypatch.setattr(
        working_set,
        "solve_from",
        lambda *args, tol, **kwargs: solve_reduced(*args, tol=1e-30, max_iter=1, **kwargs),
    )
    X, y = data(60)
    with (
        pytest.warns(ConvergenceWarning, match="raise tol"),
        pytest.warns(CertificateWarning, match="raise tol"),
    ):
        HKLRegressor(0.01).fit(X, y)


def test_threads_and_chunks_predict_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(300)
    model = HKLRegressor(0.01, certify="none").fit(X, y)
    alone = model.predict(X)
    monkeypatch.setattr("hikernel.columns.column_design._CHUNK_NUMBERS", 200)
    in_chunks = model.predict(X)
    monkeypatch.setattr("hikernel.engines.machine.n_threads", lambda: 3)
    started = []
    pool = "hikernel.engines.machine.ThreadPoolExecutor"
    monkeypatch.setattr(pool, lambda n: started.append(n) or ThreadPoolExecutor(n))
    np.testing.assert_array_equal(model.predict(X), in_chunks)
    np.testing.assert_allclose(in_chunks, alone, rtol=1e-12)
    assert started == [3]
    X[250] = 1e300
    with pytest.raises(ValueError, match="Row 250 of X"):
        HKLRegressor(0.01, basis="polynomial", certify="none").fit(X[:200], y[:200]).predict(X)
