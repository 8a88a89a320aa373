"""HKLRegressorCV and HKLClassifierCV as a user meets them."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeCV
from sklearn.metrics import get_scorer, make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hikernel import HKLClassifierCV, HKLRegressor, HKLRegressorCV, hkl_path
from hikernel.errors import CertificateWarning, ConvergenceWarning
from hikernel.estimators import comparison
from hikernel.search import tail_proof

pytestmark = pytest.mark.slow

QUICK = {"n_alphas": 5, "eps": 1e-5, "degree": 2, "cv": 3, "certify": "none", "basis": {}}
"""Smooth bases alone: ``test_steps`` is about the others."""


def data(n=150, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, p))
    y = 3.0 + X[:, 0] + 2.0 * X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, y


def labels_of(X, seed=0):
    noise = 0.3 * np.random.default_rng(seed).standard_normal(len(X))
    return np.where(X[:, 0] * X[:, 1] + noise > 0.0, "yes", "no")


def rows_of(model, refit):
    results = pd.DataFrame({k: list(v) for k, v in model.cv_results_.items()})
    return results[results["refit"] == str(refit)].reset_index(drop=True)


def test_scores_are_those_of_hkl_path_by_hand():
    """Bases and units of y come from all rows, so those are fixed here; the rest is by hand."""
    X, y = data()
    folds = list(KFold(3, shuffle=True, random_state=1).split(X))
    alphas = [0.3, 0.003, 1e-4, 1e-5]
    model = HKLRegressorCV(
        alphas=alphas, cv=folds, refit=None, scoring="neg_mean_squared_error", basis="spline",
        certify="none",
    ).fit(X, y)  # fmt: skip
    table = rows_of(model, None)
    assert table["alpha"].tolist() == alphas
    problem_scale = np.std(y)
    for k, (train, test) in enumerate(folds):
        path = hkl_path(X[train], y[train], alphas=alphas, basis="spline")
        own = [-np.mean((y[test] - path.predict(X[test], a)) ** 2) for a in alphas]
        # Other bases (those of the training rows), the same thing measured.
        np.testing.assert_allclose(table[f"split{k}_test_score"], own, atol=0.1 * problem_scale**2)
        assert np.argmax(own) == np.argmax(table[f"split{k}_test_score"])


def test_scores_equal_those_of_hkl_path_where_the_bases_agree():
    """Every fold holds each row three times over: its bases are those of all rows."""
    X, y = data(60)
    X, y = np.tile(X, (3, 1)), np.tile(y, 3)
    part = np.repeat(np.arange(3), 60)
    folds = [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(3)]
    alphas = [0.3, 0.03, 0.003]
    model = HKLRegressorCV(alphas=alphas, cv=folds, refit=None, certify="none", tol=1e-6)
    # The test rows are in the training rows, too: the smallest alpha is the best.
    with pytest.warns(ConvergenceWarning, match="alpha is the smallest that was tried.*All alphas"):
        model.set_params(scoring="r2").fit(X, y)
    for k, (train, test) in enumerate(folds):
        path = hkl_path(X[train], y[train], alphas=alphas, tol=1e-6)
        for j, alpha in enumerate(alphas):
            rest = np.sum((y[test] - path.predict(X[test], alpha)) ** 2)
            r2 = 1.0 - rest / np.sum((y[test] - y[test].mean()) ** 2)
            assert model.cv_results_[f"split{k}_test_score"][j] == pytest.approx(r2, abs=1e-4)


@pytest.mark.parametrize("refit", ["auto", None, "ridge", "sparse", "unpenalised", "variables"])
def test_results_and_choice_agree(refit):
    X, y = data()
    model = HKLRegressorCV(refit=refit, rule="best", **QUICK).fit(X, y)
    results = model.cv_results_
    tried = [None, "ridge", "sparse", "variables"] if refit == "auto" else [refit]
    n = len(results["alpha"])
    assert n % len(tried) == 0
    assert {len(column) for column in results.values()} == {n}
    assert set(results["refit"]) == {str(name) for name in tried}
    splits = np.column_stack([results[f"split{k}_test_score"] for k in range(model.n_splits_)])
    np.testing.assert_allclose(results["mean_test_score"], splits.mean(axis=1))
    np.testing.assert_allclose(results["std_test_score"], splits.std(axis=1))
    best = int(np.flatnonzero(results["rank_test_score"] == 1)[0])
    assert results["alpha"][best] == model.alpha_
    assert results["refit"][best] == str(model.refit_)
    assert model.best_score_ == results["mean_test_score"][best]
    # Scores that differ by rounding only are ties.
    assert model.best_score_ == pytest.approx(np.nanmax(results["mean_test_score"]), rel=1e-9)
    assert model.refit_ in tried
    assert model.alpha_ in model.path_.alphas
    assert model.score(X, y) > 0.9


def test_a_refit_predicts_better_than_the_shrunken_model():
    X, y = data()
    X_new, y_new = data(1000, seed=1)
    scores = {
        refit: HKLRegressorCV(refit=refit, **QUICK).fit(X, y).score(X_new, y_new)
        for refit in (None, "ridge", "auto")
    }
    assert scores["ridge"] > scores[None]
    assert scores["auto"] > scores[None] > RidgeCV().fit(X, y).score(X_new, y_new)


def test_one_standard_error_is_the_sparser_model():
    X, y = load_diabetes(return_X_y=True)
    settings = {**QUICK, "n_alphas": 8, "eps": 1e-4, "refit": None, "cv": 5, "degree": 2}
    best = HKLRegressorCV(rule="best", **settings).fit(X, y)
    sparse = HKLRegressorCV(rule="one_se", **settings).fit(X, y)
    np.testing.assert_array_equal(
        best.cv_results_["mean_test_score"], sparse.cv_results_["mean_test_score"]
    )
    table = rows_of(best, None)
    i = int(table["rank_test_score"].argmin())
    error = table.loc[i, "std_test_score"] * np.sqrt(5 / 4) / np.sqrt(5)
    enough = table["mean_test_score"] >= table.loc[i, "mean_test_score"] - error
    assert sparse.alpha_ == table.loc[enough, "alpha"].max()
    assert sparse.alpha_ > best.alpha_
    assert (sparse.hull_["norm"] > 0).sum() < (best.hull_["norm"] > 0).sum()


def test_certificate_and_hull_are_of_the_convex_problem_and_the_terms_of_what_predicts():
    X, y = data()
    model = HKLRegressorCV(refit="variables", n_alphas=6, eps=1e-4, cv=3, degree=2).fit(X, y)
    convex = HKLRegressor(model.alpha_, degree=2).fit(X, y)
    assert model.refit_ == "variables"
    assert model.certificate_.certified
    assert model.certificate_.objective == pytest.approx(convex.certificate_.objective, rel=1e-3)
    assert model.certificate_.n_vertices == convex.certificate_.n_vertices == 3**4
    # The hull is a hull, with root and ancestors; terms_ lists what predicts.
    assert set(model.hull_["term"]) == {"1", "x0", "x1", "x0 * x1"} == set(convex.hull_["term"])
    np.testing.assert_allclose(model.hull_["eta"], convex.hull_["eta"], atol=0.05)
    assert len(model.terms_) == len(model.nodes_) > len(convex.hull_)
    # f can be written out from the public attributes.
    levels = [basis.transform(X[:, m]) for m, basis in enumerate(model._design.bases)]
    features = np.column_stack(
        [np.prod([levels[m][j][:, 0] for m, j in node], axis=0) for node in model.nodes_]
    )
    np.testing.assert_allclose(
        model.predict(X), features @ model.coef_ + model.intercept_, atol=1e-9
    )
    assert max(model.terms_["degree"]) > 2
    assert model.terms_["share"].sum() == pytest.approx(1.0)
    assert model.terms_["term"].tolist()[:2] == ["x0 * x1", "x0"]


def test_alphas_are_tried_largest_first_and_checked():
    X, y = data(80)
    model = HKLRegressorCV(alphas=[1e-5, 1.0, 1e-3], refit=None, cv=3, certify="none").fit(X, y)
    assert model.cv_results_["alpha"].tolist() == [1.0, 1e-3, 1e-5]
    with pytest.raises(ValueError, match="every alpha"):
        HKLRegressorCV(alphas=[0.1, 0.0]).fit(X, y)
    with pytest.raises(ValueError, match="rule must be"):
        HKLRegressorCV(rule="median").fit(X, y)
    with pytest.raises(ValueError, match="needs a smooth loss"):
        HKLRegressorCV(loss="quantile", refit="ridge").fit(X, y)


def test_splitters_iterables_and_groups():
    X, y = data(90)
    given = [(np.arange(30, 90), np.arange(30)), (np.arange(60), np.arange(60, 90))]
    for cv, n_splits in (
        (given, 2),
        (iter(given), 2),
        (ShuffleSplit(2, test_size=0.3, random_state=0), 2),
        (KFold(4), 4),
        (3, 3),
    ):
        model = HKLRegressorCV(**{**QUICK, "cv": cv}, refit=None).fit(X, y)
        assert model.n_splits_ == n_splits
        assert f"split{n_splits - 1}_test_score" in model.cv_results_
        assert f"split{n_splits}_test_score" not in model.cv_results_
    groups = np.arange(90) % 3
    folds = list(GroupKFold(3).split(X, y, groups))
    grouped = HKLRegressorCV(**{**QUICK, "cv": GroupKFold(3)}, refit=None).fit(X, y, groups=groups)
    listed = HKLRegressorCV(**{**QUICK, "cv": folds}, refit=None).fit(X, y)
    np.testing.assert_array_equal(
        grouped.cv_results_["mean_test_score"], listed.cv_results_["mean_test_score"]
    )
    with pytest.raises(ValueError, match="group"):
        HKLRegressorCV(**{**QUICK, "cv": GroupKFold(3)}).fit(X, y)


def test_folds_are_shuffled_by_the_seed():
    X, y = data(90)
    order = np.argsort(y)  # rows in the order of y: folds in a row would be hopeless
    scores = [
        HKLRegressorCV(**QUICK, random_state=seed).fit(X[order], y[order]).best_score_
        for seed in (0, 0, 1)
    ]
    assert scores[0] == scores[1] != scores[2]
    assert scores[0] > -0.1  # of variance one


def test_rows_of_no_weight_count_nowhere():
    X, y = data(90)
    weights = np.r_[np.ones(60), np.zeros(30)]
    folds = [(np.r_[0:40, 60:80], np.r_[40:60, 80:90]), (np.r_[20:90], np.r_[0:20])]
    kept = [(a[a < 60], b[b < 60]) for a, b in folds]
    spoilt = np.where(weights > 0, y, 1e6)
    for scoring in (None, "r2"):
        with_zeros = HKLRegressorCV(alphas=[0.1, 0.01], cv=folds, scoring=scoring, certify="none")
        without = clone(with_zeros).set_params(cv=kept)
        with_zeros.fit(X, spoilt, sample_weight=weights)
        without.fit(X[:60], y[:60])
        for name, column in with_zeros.cv_results_.items():
            if name != "refit":
                np.testing.assert_allclose(column, without.cv_results_[name], rtol=1e-8)
    empty = [(np.arange(60), np.arange(60, 90))]
    with pytest.raises(ValueError, match="Fold 0 of cv has no test rows of positive weight"):
        HKLRegressorCV(cv=empty, certify="none").fit(X, y, sample_weight=weights)


def test_the_default_score_is_weighted():
    X, y = data(90)
    weights = np.random.default_rng(0).integers(1, 4, 90)
    folds = [(np.arange(60), np.arange(60, 90))]
    rows = np.repeat(np.arange(90), weights)
    repeated = [(np.flatnonzero(rows < 60), np.flatnonzero(rows >= 60))]
    settings = {"alphas": [0.1, 1e-3, 1e-5], "refit": None, "certify": "none", "tol": 1e-7}
    one = HKLRegressorCV(cv=folds, **settings).fit(X, y, sample_weight=weights)
    two = HKLRegressorCV(cv=repeated, **settings).fit(X[rows], y[rows])
    np.testing.assert_allclose(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"], rtol=1e-3
    )


def test_scorers():
    X, y = data(90)
    by_loss = HKLRegressorCV(**QUICK).fit(X, y)
    by_error = HKLRegressorCV(scoring="neg_mean_squared_error", **QUICK).fit(X, y)
    # The default is half the squared error, of y with variance one.
    np.testing.assert_allclose(
        by_error.cv_results_["mean_test_score"],
        2.0 * np.var(y) * by_loss.cv_results_["mean_test_score"],
        rtol=1e-6,
    )
    assert (by_error.alpha_, by_error.refit_) == (by_loss.alpha_, by_loss.refit_)
    r2 = HKLRegressorCV(scoring="r2", **QUICK).fit(X, y)
    assert 0.5 < r2.best_score_ <= 1.0
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    own = HKLRegressorCV(scoring=scorer, **QUICK).fit(X, y)
    named = HKLRegressorCV(scoring="neg_mean_absolute_error", **QUICK).fit(X, y)
    assert own.best_score_ == named.best_score_
    plain = HKLRegressorCV(scoring=lambda model, X, y: model.score(X, y), **QUICK).fit(X, y)
    assert plain.best_score_ == r2.best_score_
    with pytest.raises(ValueError, match="scoring returned NaN"):
        HKLRegressorCV(scoring=lambda model, X, y: np.nan, **QUICK).fit(X, y)


@pytest.mark.parametrize("refit", [None, "ridge", "sparse", "variables"])
def test_a_scorer_sees_the_hull_of_the_convex_problem(refit):
    X, y = data(90)
    seen = []

    def scorer(model, X, y):
        found = list(model.hull_["term"])
        assert found == list(model._design.terms(model._selected.nodes)["term"])
        seen.append(model.graph_.is_hull(model._selected.nodes) and "1" in found)
        assert len(model.terms_) == np.count_nonzero(model._model.norms)
        return model.score(X, y)

    HKLRegressorCV(scoring=scorer, refit=refit, **QUICK).fit(X, y)
    assert all(seen)
    assert len(seen) > 3


def test_scorers_of_a_classifier():
    X, _ = data(150)
    y = labels_of(X)
    model = HKLClassifierCV(scoring="neg_log_loss", **QUICK).fit(X, y)
    plain = HKLClassifierCV(**QUICK).fit(X, y)
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], rtol=1e-6
    )
    hits = HKLClassifierCV(scoring="accuracy", **QUICK).fit(X, y)
    assert hits.best_score_ > 0.8
    auc = HKLClassifierCV(scoring="roc_auc", **QUICK).fit(X, y)
    assert auc.best_score_ == pytest.approx(get_scorer("roc_auc")(auc, X, y), abs=0.1)


def test_a_frame_keeps_its_names_through_the_folds():
    X, y = data(90)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = HKLRegressorCV(scoring="r2", **QUICK).fit(frame, y)
    assert {"a", "a * b"} <= set(model.hull_["term"])
    same = HKLRegressorCV(scoring="r2", **QUICK).fit(X, y)
    np.testing.assert_array_equal(model.predict(frame), same.predict(X))


@pytest.mark.parametrize("loss", ["huber", "poisson", "quantile", "epsilon_insensitive"])
def test_other_losses(loss):
    X, y = data(120)
    y = np.round(np.exp(y / 3.0))
    model = HKLRegressorCV(loss=loss, **QUICK).fit(X, y)
    smooth = loss in ("huber", "poisson")
    assert set(model.cv_results_["refit"]) == (
        {"None", "ridge", "sparse", "variables"} if smooth else {"None"}
    )
    assert model.score(X, y) > 0.6


def test_several_classes_are_refitted_where_the_loss_is_smooth():
    X, y = load_iris(return_X_y=True)
    model = HKLClassifierCV(refit="ridge", **QUICK).fit(X, y)
    assert model.refit_ == "ridge"
    assert model.score(X, y) > 0.95
    with pytest.raises(ValueError, match="needs a smooth loss"):
        HKLClassifierCV(loss="hinge", refit="ridge", **QUICK).fit(X, y)


def test_folds_without_a_class_are_explained():
    X, _ = data(60)
    y = np.repeat([0, 1], 30)
    with pytest.raises(ValueError, match="stratified"):
        HKLClassifierCV(**{**QUICK, "cv": KFold(2)}).fit(X, y)
    HKLClassifierCV(**QUICK).fit(X, y)


def test_processes_and_threads_change_nothing():
    X, y = data(120)
    alone = HKLRegressorCV(**QUICK).fit(X, y)
    both = HKLRegressorCV(scoring="r2", n_jobs=2, **QUICK).fit(X, y)
    assert both.nodes_ == alone.nodes_
    # Not equal to the last bit: sums of some BLAS kernels depend on where arrays lie in memory.
    np.testing.assert_allclose(alone.predict(X), both.predict(X), rtol=0, atol=1e-9)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        threads = HKLRegressorCV(**QUICK).fit(X, y)
    for name, column in alone.cv_results_.items():
        if name == "refit":
            np.testing.assert_array_equal(column, threads.cv_results_[name])
        else:
            np.testing.assert_allclose(column, threads.cv_results_[name], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(alone.predict(X), threads.predict(X), rtol=0, atol=1e-9)


# Its schedulers and workers leave sockets and loops to the garbage collector.
@pytest.mark.filterwarnings("ignore")
def test_the_dask_backend():
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    X, y = data(90)
    alone = HKLRegressorCV(**QUICK).fit(X, y)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        spread = HKLRegressorCV(**QUICK).fit(X, y)
    for name, column in alone.cv_results_.items():
        np.testing.assert_array_equal(column, spread.cv_results_[name])
    np.testing.assert_array_equal(alone.predict(X), spread.predict(X))


def test_it_works_where_scikit_learn_works():
    X, y = data(90)
    model = HKLRegressorCV(**QUICK)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    assert pipeline.score(X, y) > 0.9
    assert cross_val_score(model, X, y, cv=2).min() > 0.8
    search = GridSearchCV(model, {"rule": ["best", "one_se"]}, cv=2).fit(X, y)
    assert search.best_estimator_.score(X, y) > 0.9
    fitted = clone(model).fit(X, y)
    assert not hasattr(clone(fitted), "alpha_")
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.cv_results_.keys() == fitted.cv_results_.keys()
    y = labels_of(X)
    classifier = make_pipeline(StandardScaler(), HKLClassifierCV(**QUICK)).fit(X, y)
    loaded = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    assert set(classifier.predict(X)) == {"yes", "no"}


def test_what_is_not_proven_is_said(monkeypatch):
    X, y = data(90, p=6)
    model = HKLRegressorCV(**{**QUICK, "certify": "auto", "degree": 4}).fit(X, y)
    assert model.certificate_.certified
    monkeypatch.setattr(tail_proof.TailProof, "_afford", lambda proof, supports: False)
    with pytest.warns(CertificateWarning, match="work that it may do"):
        unproven = clone(model).fit(X, y)
    np.testing.assert_array_equal(unproven.predict(X), model.predict(X))


def test_a_proof_may_do_as_much_as_the_cross_validation(monkeypatch):
    X, y = data(90, p=6)
    seen = []
    honest = tail_proof.TailProof.__init__

    def spied(proof, *arguments, max_work, **more):
        seen.append(max_work)
        honest(proof, *arguments, max_work=max_work, **more)

    monkeypatch.setattr(tail_proof.TailProof, "__init__", spied)
    HKLRegressorCV(**{**QUICK, "certify": "auto"}).fit(X, y)
    least = seen[0]
    monkeypatch.setattr(comparison, "_LEAST_PROOF_WORK", 0.0)
    HKLRegressorCV(**{**QUICK, "certify": "auto"}).fit(X, y)
    assert len(seen) == 2
    assert least == 5e10 > seen[1] > 0.0


def test_noise_gives_a_model_that_claims_little():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 5)), rng.standard_normal(100)
    for refit in ("auto", "ridge", "variables"):
        model = HKLRegressorCV(refit=refit, **QUICK, rule="one_se").fit(X, y)
        assert np.std(model.predict(X)) < 0.5


def test_the_path_of_a_classifier_predicts_labels():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 3))
    y = np.where(X[:, 0] + 0.2 * rng.standard_normal(120) > 0, "yes", "no")
    model = HKLClassifierCV(cv=2, n_alphas=5, eps=1e-4, certify="none").fit(X, y)
    labels = model.path_.predict(X, alpha=model.path_.alphas[-1])
    assert np.mean(labels == y) > 0.85


def test_no_alphas_are_refused():
    with pytest.raises(ValueError, match="alphas is empty"):
        HKLRegressorCV(alphas=[]).fit(np.eye(10), np.arange(10.0))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"cv": []}, "cv gives no folds"),
        ({"cv": [1, 2, 3]}, "cv must be a number of folds, a splitter, or pairs"),
        ({"cv": [(np.arange(50), np.array([500]))]}, "Fold 0 of cv must be a pair .* 0 to 89"),
        ({"cv": [(np.arange(50), np.array([], int))]}, "Fold 0 of cv has no test rows"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"scoring": "foo"}, "scoring"),
    ],
)
def test_errors_come_before_work(settings, sentence, monkeypatch):
    X, y = data(90)
    monkeypatch.setattr(
        "hikernel.estimators.path.compute_path", lambda *_: pytest.fail("work began")
    )
    with pytest.raises(ValueError, match=sentence):
        HKLRegressorCV(**(QUICK | settings)).fit(X, y)


def test_a_scorer_gets_the_weights_it_asks_for():
    X, y = data(90)
    weights = np.random.default_rng(1).uniform(0.1, 3.0, 90)
    with config_context(enable_metadata_routing=True):
        asked = get_scorer("neg_mean_absolute_error").set_score_request(sample_weight=True)
        model = HKLRegressorCV(**QUICK, scoring=asked, refit=None).fit(X, y, weights)
        plain = HKLRegressorCV(**QUICK, scoring="neg_mean_absolute_error", refit=None)
        plain.fit(X, y, weights)
    train, test = next(KFold(3, shuffle=True, random_state=model._seed()).split(X))
    score = model.cv_results_["split0_test_score"]
    assert not np.allclose(score, plain.cv_results_["split0_test_score"])
    # At the largest alpha the model is nearly a constant, and its weighted error that of y.
    constant = np.average(y[train], weights=weights[train])
    error = mean_absolute_error(y[test], np.full(len(test), constant), sample_weight=weights[test])
    assert score[0] == pytest.approx(-error, rel=0.1)


def test_a_fit_that_fails_leaves_no_model():
    X, y = data(90)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = HKLRegressor(0.03, certify="none").fit(frame, y)
    model.set_params(basis={"q": "spline"})
    with pytest.raises(ValueError, match="'q'"):
        model.fit(frame[["a", "b"]], y)
    for call in (model.predict, model.effects):
        with pytest.raises(NotFittedError):
            call(frame)
    fresh = HKLRegressorCV(**QUICK, scoring="foo")
    with pytest.raises(ValueError, match="scoring"):
        fresh.fit(X, y)
    with pytest.raises(NotFittedError):
        fresh.formula()
