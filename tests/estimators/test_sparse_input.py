"""A sparse X gives the model of X.toarray(), in every method and form."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from oracles.naive import all_nodes
from oracles.twin import twin_optimum
from scipy import sparse

import hikernel
from hikernel import (
    HKLClassifier,
    HKLRegressor,
    HKLRegressorCV,
    hkl_path,
    stability_selection,
)
from hikernel.columns.shared_bases import SharedBases
from hikernel.engines import machine
from hikernel.errors import MemoryPlanError
from hikernel.estimators.saving import estimator_from_state, estimator_state
from hikernel.persistence.content import ContentError


def words(n=150, p=12, seed=0):
    """Indicators, counts, and a few numbers with signs, mostly zero; y has a pair of words."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, p)) < 0.3) * rng.integers(1, 5, size=(n, p)).astype(float)
    X[:, :3] = X[:, :3] > 0
    X[:, -1] = (rng.random(n) < 0.4) * rng.standard_normal(n)
    y = X[:, 0] + 3.0 * X[:, 1] * X[:, 2] + np.log1p(np.abs(X[:, p // 2]))
    return X, y + 0.2 * rng.standard_normal(n)


def assert_same_model(one, other):
    assert one.nodes_ == other.nodes_
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=1e-9)
    a, b = one.certificate_, other.certificate_
    assert (a.kind, a.n_vertices, a.certified) == (b.kind, b.n_vertices, b.certified)
    assert a.objective == pytest.approx(b.objective, rel=1e-9)
    assert a.dual_bound == pytest.approx(b.dual_bound, rel=1e-9)
    for mine, theirs in zip(one.graph_.level_weights, other.graph_.level_weights, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)


@pytest.mark.parametrize("max_order", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("basis", ["auto", "orthonormal", "polynomial"])
def test_the_model_is_that_of_the_dense_matrix(max_order, weighted, basis):
    X, y = words()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    if weighted:
        weights[:5] = 0.0
    settings = {"alpha": 0.02, "max_order": max_order, "certify": "exact", "basis": basis}
    dense = HKLRegressor(**settings).fit(X, y, weights)
    found = HKLRegressor(**settings).fit(sparse.csr_array(X), y, weights)
    assert_same_model(found, dense)
    assert found.certificate_.certified
    for new in (X, sparse.csc_matrix(X)):
        np.testing.assert_allclose(found.predict(new), dense.predict(X), atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(n_classes):
    X, score = words(120, 8)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    dense = HKLClassifier(0.02, max_order=2, certify="exact").fit(X, y)
    found = HKLClassifier(0.02, max_order=2).fit(sparse.csr_array(X), y)
    assert_same_model(found, dense)
    np.testing.assert_allclose(found.predict_proba(sparse.csr_array(X)), dense.predict_proba(X))


@pytest.mark.slow
def test_cross_validation_refits_and_paths():
    X, y = words(100, 6)
    settings = {"n_alphas": 5, "cv": 3, "max_order": 2}
    dense = HKLRegressorCV(basis="orthonormal", **settings).fit(X, y)
    found = HKLRegressorCV(basis="orthonormal", **settings).fit(sparse.csr_array(X), y)
    assert found.alpha_ == pytest.approx(dense.alpha_)
    assert found.nodes_ == dense.nodes_
    # The refit "variables" has the levels of the search here, and more of them if X is dense.
    same = dense.cv_results_["refit"] != "variables"
    scores = [model.cv_results_["mean_test_score"][same] for model in (found, dense)]
    assert len(scores[0]) == 15
    np.testing.assert_allclose(*scores, rtol=1e-6)
    assert found._record.simpler.constant == pytest.approx(dense._record.simpler.constant)
    assert found._record.simpler.linear == pytest.approx(dense._record.simpler.linear)
    for refit in ("ridge", "sparse", "unpenalised", "variables"):
        model = HKLRegressor(0.02, refit=refit).fit(sparse.csr_array(X), y)
        assert model.refit_ == refit
        assert model.score(X, y) > 0.5
    path = hkl_path(sparse.csr_array(X), y, max_order=2, n_alphas=4)
    assert len(path.table()) == 4


def test_auto_alpha_is_that_of_the_dense_matrix():
    X, y = words(100, 6)
    dense = HKLRegressor(max_order=2).fit(X, y)
    found = HKLRegressor().fit(sparse.csr_array(X), y)  # None means two for a sparse X
    assert found.alpha_ == pytest.approx(dense.alpha_)
    np.testing.assert_allclose(found.predict(X), dense.predict(X), atol=1e-7)


def forms(X):
    """The same matrix in every form that users have."""
    coo = sparse.coo_array(X)
    twice = sparse.coo_array(
        (np.tile(0.5 * coo.data, 2), (np.tile(coo.row, 2), np.tile(coo.col, 2))), shape=X.shape
    )
    long = sparse.csr_array(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    unsorted = sparse.csr_array(X)
    for i in range(len(X)):
        part = slice(unsorted.indptr[i], unsorted.indptr[i + 1])
        unsorted.indices[part] = unsorted.indices[part][::-1].copy()
        unsorted.data[part] = unsorted.data[part][::-1].copy()
    unsorted.has_sorted_indices = False
    stored = sparse.csr_array(X + 1.0)
    stored.data -= 1.0  # every zero is stored
    return {
        "csr matrix": sparse.csr_matrix(X),
        "csc array": sparse.csc_array(X),
        "lil": sparse.lil_matrix(X),
        "duplicates": twice,
        "long indices": long,
        "unsorted": unsorted,
        "explicit zeros": stored,
        "float32": sparse.csr_array(X.astype(np.float32)),
        "frame": pd.DataFrame.sparse.from_spmatrix(sparse.csc_matrix(X)),
    }


def test_forms_of_the_same_matrix_give_the_same_model():
    X, y = words(80, 5)
    X = np.round(np.abs(X))  # exact in float32
    expected = HKLRegressor(0.02).fit(sparse.csr_array(X), y)
    for name, form in forms(X).items():
        model = HKLRegressor(0.02).fit(form, y)
        assert model.nodes_ == expected.nodes_, name
        np.testing.assert_allclose(model.predict(form), expected.predict(X), err_msg=name)
    small = sparse.csr_array((X > 0).astype(np.int8))
    indicators = HKLRegressor(0.02).fit(small, y)
    np.testing.assert_allclose(indicators.predict(small.astype(bool)), indicators.predict(X > 0))
    boolean = HKLRegressor(0.02).fit(small.astype(bool), y)
    np.testing.assert_allclose(boolean.predict(small), indicators.predict(small))
    before = forms(X)["unsorted"]
    again = before.copy()
    HKLRegressor(0.02).fit(before, y)
    np.testing.assert_array_equal(before.indices, again.indices)  # X is left as it is


def test_frames_of_sparse_columns_have_names():
    X, y = words(80, 4)
    frame = pd.DataFrame.sparse.from_spmatrix(sparse.csc_matrix(X), columns=list("abcd"))
    model = HKLRegressor(0.02).fit(frame, y)
    assert list(model.feature_names_in_) == list("abcd")
    np.testing.assert_allclose(model.predict(frame), model.predict(frame.sparse.to_dense()))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(sparse.csr_array(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c", "d"]])
    # Leaving out ones, it is read like any frame.
    kept = {name: pd.arrays.SparseArray(X[:, k], fill_value=1.0) for k, name in enumerate("abcd")}
    ones = pd.DataFrame(kept)
    dense = HKLRegressor(0.02, max_order=2).fit(ones, y)
    np.testing.assert_allclose(dense.predict(ones), model.predict(frame), atol=1e-9)


def test_every_explanation_is_that_of_the_dense_matrix():
    X, y = words(100, 6)
    S = sparse.csr_array(X)
    dense = HKLRegressor(0.01, max_order=2, certify="exact").fit(X, y)
    found = HKLRegressor(0.01, max_order=2).fit(S, y)
    assert str(found) == str(dense)
    assert found.formula() == dense.formula()
    assert str(found.explain(S[[3]])) == str(dense.explain(X[[3]]))
    assert str(found.explain(X[[3]])) == str(dense.explain(X[[3]]))
    for name in ("hull_", "terms_", "effects_", "bases_"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(dense, name), atol=1e-8)
    for by in ("effect", "term"):
        pd.testing.assert_frame_equal(found.effects(S, by), dense.effects(X, by), atol=1e-8)
    assert str(found.anova(S)) == str(dense.anova(X))
    pd.testing.assert_frame_equal(found.anova(S).effects(S), dense.anova(X).effects(X), atol=1e-8)
    mine, theirs = found.summary(), dense.summary()
    assert mine["data"] == theirs["data"]
    assert mine["function"]["inputs"] == theirs["function"]["inputs"]
    shown = [[view["values"] for view in s["effects"] if "values" in view] for s in (mine, theirs)]
    for left, right in zip(*shown, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-8)


@pytest.mark.parametrize("refit", [None, "variables"])
def test_saved_models_read_sparse_rows(tmp_path, refit):
    X, y = words(100, 6)
    S = sparse.csr_array(X)
    model = HKLRegressor(0.02, refit=refit).fit(S, y)
    model.save(tmp_path / "model.hik")
    loaded = hikernel.load(tmp_path / "model.hik")
    assert np.all(loaded.predict(S) == model.predict(S))
    assert np.all(loaded.predict(X) == model.predict(X))
    assert loaded.formula() == model.formula()
    assert str(loaded.explain(S[[0]])) == str(model.explain(S[[0]]))
    loaded.save(tmp_path / "again.hik")
    assert (tmp_path / "again.hik").read_bytes() == (tmp_path / "model.hik").read_bytes()
    few = model._design.kept_bases()
    assert len(few.distinct) <= len(few.index) == 6


def test_missing_values_of_new_rows_count_as_in_a_dense_model():
    X, y = words(100, 6)
    dense = HKLRegressor(0.02, max_order=2, certify="exact").fit(X, y)
    found = HKLRegressor(0.02, max_order=2).fit(sparse.csr_array(X), y)
    new = X[:10].copy()
    new[::2, 1] = np.nan
    for rows in (new, sparse.csr_array(new)):
        np.testing.assert_allclose(found.predict(rows), dense.predict(new), atol=1e-10)


@pytest.mark.filterwarnings("ignore:Row .* carries more than half")
def test_stability_selection():
    X, y = words(100, 6)
    settings = {"n_subsamples": 4, "random_state": 0}
    dense = stability_selection(HKLRegressor(0.02, max_order=2), X, y, **settings)
    found = stability_selection(HKLRegressor(0.02, max_order=2), sparse.csr_array(X), y, **settings)
    pd.testing.assert_frame_equal(found.terms, dense.terms)


@pytest.mark.parametrize("max_order", [1, 2])
def test_the_objective_is_the_optimum_of_cvxpy(max_order):
    X, y = words(40, 4)
    model = HKLRegressor(0.05, max_order=max_order, tol=1e-6).fit(sparse.csr_array(X), y)
    assert model.certificate_.certified
    levels = [basis.transform(X[:, m]) for m, basis in enumerate(model._design.bases)]
    units = np.std(y)
    optimum, _ = twin_optimum(
        model.graph_, levels, all_nodes(model.graph_), (y - y.mean()) / units, np.ones(40), 0.05
    )
    assert model.certificate_.objective / units**2 == pytest.approx(optimum, rel=1e-5)


def bag_of_words(n=1500, p=2000, seed=0):
    """Counts of words with frequencies of Zipf, and y that has two words and a pair of words."""
    rng = np.random.default_rng(seed)
    frequencies = np.minimum(0.3, 3.0 / np.arange(1, p + 1))
    X = sparse.csc_array(rng.poisson(np.broadcast_to(frequencies, (n, p))), dtype=float)
    a, b, c, d = (X[:, [m]].toarray()[:, 0] > 0 for m in (2, 5, 11, 14))
    f = 1.5 * a - 1.5 * b + 3.0 * (c & d)
    return X.tocsr(), f, rng


@pytest.mark.slow
def test_a_pair_of_words_is_found_among_millions():
    X, f, rng = bag_of_words()
    model = HKLRegressor(0.0005).fit(X, f + 0.3 * rng.standard_normal(len(f)))
    assert model.certificate_.certified
    assert model.certificate_.n_vertices > 10**6
    assert {"x2", "x5", "x11 * x14"} <= set(model.effects_["effect"])
    y = rng.random(len(f)) < 1 / (1 + np.exp(-3.0 * (f - 0.5)))
    classes = HKLClassifier(3e-5).fit(X, y)
    assert {"x2", "x5", "x11 * x14"} <= set(classes.effects_["effect"])


def refused(X, message, error=ValueError, **settings):
    with pytest.raises(error, match=message):
        HKLRegressor(0.02, **settings).fit(X, np.arange(float(X.shape[0])))


def test_what_is_refused_says_what_to_do():
    X, y = words(30, 3)
    S = sparse.csr_array(X)
    refused(S, r"max_order=2 \(or None", max_order=3)
    refused(S, "categorical names columns of categories", categorical=[0])
    refused(S, "ordered names columns of categories", ordered=[0])
    refused(S, "interactions is not available", interactions="none")
    refused(S, "monotone is not available", monotone={"x0": 1})
    HKLRegressor(0.1, monotone={}).fit(S, y)  # no direction at all
    refused(S, "levels of several columns.*X.toarray", basis="gaussian")
    refused(S, "basis names the column 'z'", basis={"z": "rank"})
    refused(S[:1], "minimum of 2 is required")
    refused(S[:, []], "0 feature")
    refused(S.astype(complex), "Complex data not supported", TypeError)
    for bad, message in ((np.nan, "contains NaN in column 1.*not missing"), (np.inf, "infinity")):
        wrong = X.copy()
        wrong[3, 1] = bad
        refused(sparse.csr_array(wrong), message)
    with pytest.raises(ValueError, match=r"statistical.*exact"):
        HKLRegressor(0.02, certify="statistical").fit(S, y)
    model = HKLRegressor(0.02).fit(S, y)
    with pytest.raises(ValueError, match="X has 2 features, but HKLRegressor is expecting 3"):
        model.predict(S[:, :2])
    dense = HKLRegressor(0.02).fit(X, y)
    with pytest.raises(TypeError, match=r"fitted to a sparse X.*X\.toarray"):
        dense.predict(S)


def test_memory_is_planned_before_it_is_taken(monkeypatch):
    X, y = words(50, 4)
    monkeypatch.setattr(machine, "available_bytes", lambda: 10**6)
    with pytest.raises(MemoryPlanError, match=r"A fit to \d+ entries of a sparse X.*degree=1"):
        HKLRegressor(0.02).fit(sparse.csr_array(X), y)


LIMITED = """
import resource
import numpy as np
from scipy import sparse
from hikernel import HKLRegressor
rng = np.random.default_rng(0)
n, p = 40_000, 30_000
rows = rng.integers(n, size=150_000)
columns = (p * rng.random(150_000) ** 3).astype(int)
X = sparse.csr_array((np.ones(150_000), (rows, columns)), shape=(n, p))
X.data[:] = 1.0
y = X[:, [0]].toarray()[:, 0] + 0.1 * rng.standard_normal(n)
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
model = HKLRegressor(0.05, max_order=2).fit(X, y)
print(model.certificate_.certified, model.effects_["effect"][0], model.predict(X).shape)
"""


@pytest.mark.slow
def test_nothing_is_filled_in():
    # The dense matrix would have 9.6 GB, and the process may not have more than 3.
    command = [sys.executable, "-c", LIMITED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "x0", "(40000,)"], done.stderr


@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest")
def test_the_search_of_the_paper_and_scorers():
    X, y = words(80, 5)
    S = sparse.csr_array(X)
    settings = {"alpha": 0.02, "max_order": 2, "search": "paper", "certify": "exact"}
    found, dense = HKLRegressor(**settings).fit(S, y), HKLRegressor(**settings).fit(X, y)
    assert_same_model(found, dense)
    scored = {"scoring": "neg_mean_absolute_error", "n_alphas": 3, "cv": 2, "max_order": 2}
    found = HKLRegressorCV(basis={}, refit=None, **scored).fit(S, y)
    dense = HKLRegressorCV(basis={}, refit=None, **scored).fit(X, y)
    assert found.best_score_ == pytest.approx(dense.best_score_)


def test_a_file_with_impossible_shared_bases_is_refused(tmp_path):
    X, y = words(60, 4)
    model = HKLRegressor(0.02).fit(sparse.csr_array(X), y)
    state = estimator_state(model)
    bases = state["bases"]
    wrong = [
        {"bases": SharedBases(bases.distinct, bases.index + 1)},
        {"bases": SharedBases(bases.distinct[:1], bases.index)},
        {"graph": replace(state["graph"], max_order=None)},
    ]
    for part in wrong:
        with pytest.raises(ContentError, match="not those of sparse columns"):
            estimator_from_state("HKLRegressor", state | part)


def test_new_rows_are_checked_as_dense_ones_are():
    X, y = words(40, 4)
    model = HKLRegressor(0.02).fit(sparse.csr_array(X > 0.0), y)
    for new in (X, sparse.csr_array(X)):
        with pytest.raises(ValueError, match="'x3' is a column of booleans, but holds"):
            model.predict(new)
    np.testing.assert_array_equal(
        model.predict(sparse.csr_array((X > 0.0).astype(float))), model.predict(X > 0.0)
    )
    with pytest.raises(ValueError, match=r"sparse array of shape \(4,\)"):
        model.predict(sparse.coo_array(X[0]))


def test_a_frame_of_sparse_booleans_has_booleans():
    X, y = words(60, 4)
    frame = pd.DataFrame(X[:, :3] > 0.0, columns=list("abc")).astype(pd.SparseDtype(bool, False))
    frame["b"] = frame["b"].astype(pd.SparseDtype(float, 0.0))
    model = HKLRegressor(0.01).fit(frame, y)
    assert list(model.bases_["kind"]) == ["boolean", "number", "boolean"]
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame.sparse.to_dense()))
    strange = frame.astype(pd.SparseDtype(object, 0))
    with pytest.raises(TypeError, match="some of dtype object"):
        model.predict(strange)


def test_names_of_sparse_frames_are_text_or_positions():
    X, y = words(80, 4)
    frame = pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X))
    model = HKLRegressor(0.02).fit(frame, y)
    assert list(model.bases_["column"]) == ["x0", "x1", "x2", "x3"]
    for names in ([1, 0, 2, 3], ["a", 1, 2, 3], pd.MultiIndex.from_product([["a", "b"], [1, 2]])):
        with pytest.raises(TypeError, match="a name that is not text"):
            model.predict(frame.set_axis(names, axis=1))
