"""Estimators on tables in blocks: the models of the same rows in memory."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import hikernel
from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV, HKLSurvival
from hikernel.columns import block_table, column_summary
from hikernel.engines import row_block_engine
from hikernel.errors import ConvergenceWarning


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch):
    monkeypatch.setattr(row_block_engine, "_LEAST_GROUP", 250)
    monkeypatch.setattr(row_block_engine, "_GROUP_NUMBERS", 1)
    monkeypatch.setattr(block_table, "_BLOCK_NUMBERS", 2400)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 900
    X = pd.DataFrame(rng.uniform(-1, 1, size=(n, 4)), columns=list("abcd"))
    X["town"] = rng.choice(["Oslo", "Bergen", "Rome"], n)
    X.loc[::9, "b"] = np.nan
    f = X["a"] + 2 * X["a"] * X["c"] + (X["town"] == "Oslo") + X["b"].fillna(1.0)
    X["y"] = f + 0.2 * rng.standard_normal(n)
    X["kind"] = np.where(X["y"] > 1.5, "much", np.where(X["y"] > 0, "some", "none"))
    X["w"] = rng.uniform(0.5, 2.0, n)
    return X


@pytest.fixture
def dataset(frame, tmp_path):
    for k, part in enumerate((frame[:500], frame[500:])):
        pq.write_table(pa.Table.from_pandas(part), tmp_path / f"{k}.parquet", row_group_size=310)
    return ds.dataset(tmp_path)


def columns(dataset, *names):
    """The dataset without some columns."""
    kept = [name for name in block_table.as_block_table(dataset).names if name not in names]
    return block_table.as_block_table(dataset).select(kept)


def check_same(one, other, X, new):
    """Models are the same to nine digits; ``new`` are the rows of X in another form."""
    assert list(other.hull_["term"]) == list(one.hull_["term"])
    assert other.certificate_.reason == one.certificate_.reason
    assert other.refit_ == one.refit_
    for name in ("alpha_", "coef_", "intercept_"):
        wanted = np.asarray(getattr(one, name))
        np.testing.assert_allclose(getattr(other, name), wanted, rtol=1e-7, atol=1e-9)
    size = np.max(np.abs(one.dual_coef_))
    np.testing.assert_allclose(other.dual_coef_, one.dual_coef_, rtol=1e-7, atol=1e-8 * size)
    np.testing.assert_allclose(other._raw_predict(new), one._raw_predict(X), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(other._raw_predict(X), one._raw_predict(X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    "parameters",
    [
        {"alpha": 0.003, "refit": "sparse", "max_order": 2},
        {"alpha": 0.01, "refit": "unpenalised", "interactions": [["a", "c"]]},
        {"alpha": 0.01, "loss": "huber", "basis": {"a": "spline", "c": "gaussian"}},
    ],
    ids=lambda parameters: " ".join(map(str, parameters.values())),
)
def test_regression(parameters, dataset, frame):
    X = frame[["a", "b", "c", "d", "town"]]
    one = HKLRegressor(**parameters).fit(X, frame["y"], sample_weight=frame["w"])
    other = HKLRegressor(**parameters).fit(columns(dataset, "kind"), "y", sample_weight="w")
    check_same(one, other, X, dataset)
    assert other._record.target == "y"
    assert other._record.missing == one._record.missing
    assert list(other.effects_["effect"]) == list(one.effects_["effect"])
    np.testing.assert_allclose(other.predict(dataset), one.predict(X), rtol=1e-8)


def test_a_lazy_frame(frame):
    X = frame[["a", "b", "c", "d", "town"]]
    lazy = pl.from_pandas(frame[["a", "b", "c", "d", "town", "y"]]).lazy()
    one = HKLRegressor(alpha=0.01, refit="ridge").fit(X, frame["y"])
    check_same(one, HKLRegressor(alpha=0.01, refit="ridge").fit(lazy, "y"), X, lazy)


@pytest.mark.slow
def test_alpha_is_chosen_alike_and_rows_of_weight_zero_are_left_out(dataset, frame):
    X = frame[["a", "b", "c", "d", "town"]]
    weights = (np.arange(len(X)) % 5 > 0).astype(float)
    one = HKLRegressor().fit(X, frame["y"], sample_weight=weights)
    other = HKLRegressor().fit(columns(dataset, "kind", "w"), "y", sample_weight=weights)
    check_same(one, other, X, dataset)
    assert len(other.path_.points) == len(one.path_.points)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [2, 3])
def test_classification(labels, dataset, frame):
    X = frame[["a", "b", "c", "d", "town"]]
    y = frame["kind"] if labels == 3 else (frame["y"] > 0).to_numpy()
    target = "kind" if labels == 3 else y
    rest = columns(dataset, "w", "y") if labels == 3 else columns(dataset, "w", "y", "kind")
    settings = {"alpha": 0.02, "degree": 2, "certify": "none"}
    one = HKLClassifier(**settings).fit(X, y)
    other = HKLClassifier(**settings).fit(rest, target)
    assert list(other.classes_) == list(one.classes_)
    check_same(one, other, X, dataset)
    np.testing.assert_allclose(other.predict_proba(dataset), one.predict_proba(X), atol=1e-8)
    assert (other.predict(dataset) == one.predict(X)).all()


@pytest.mark.slow
def test_cross_validation(dataset, frame):
    X = frame[["a", "b", "c", "d", "town"]]
    settings = {
        "cv": 2,
        "refit": "sparse",
        "alphas": [0.1, 0.01],
        "n_jobs": 2,
        "degree": 2,
        "certify": "none",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = HKLRegressorCV(**settings).fit(X, frame["y"])
        other = HKLRegressorCV(**settings).fit(columns(dataset, "kind", "w"), "y")
        settings |= {"scoring": "r2", "n_jobs": None, "basis": "orthonormal"}
        scored = HKLRegressorCV(**settings).fit(columns(dataset, "kind", "w"), "y")
    check_same(one, other, X, dataset)
    for name, wanted in one.cv_results_.items():
        if name not in ("refit", "rank_test_score"):
            np.testing.assert_allclose(other.cv_results_[name], wanted, rtol=1e-7)
    assert 0.9 < scored.best_score_ < 1.0


def test_a_mapped_array(tmp_path, monkeypatch):
    monkeypatch.setattr("hikernel.columns.reading._LARGE", 100)
    rng = np.random.default_rng(0)
    for gaps in (False, True):
        X = np.memmap(tmp_path / f"{gaps}.bin", np.float32, "w+", shape=(800, 4))
        X[:] = rng.uniform(-1, 1, X.shape)
        y = np.array(X[:, 0] * X[:, 1] + X[:, 2], dtype=float)
        if gaps:
            X[::7, 3] = np.nan
        one = HKLRegressor(alpha=0.001).fit(np.array(X), y)
        other = HKLRegressor(alpha=0.001).fit(X, y)
        check_same(one, other, np.array(X), X)
        assert other.n_features_in_ == 4


def test_columns_of_many_values_are_in_cells(dataset, frame, monkeypatch):
    monkeypatch.setattr(column_summary, "MOST_VALUES", 50)
    monkeypatch.setattr("hikernel.columns.block_rows.MOST_VALUES", 50)
    X = frame[["a", "b", "c", "d", "town"]]
    one = HKLRegressor(alpha=0.003).fit(X, frame["y"])
    other = HKLRegressor(alpha=0.003).fit(columns(dataset, "kind", "w"), "y")
    assert list(other.hull_["term"]) == list(one.hull_["term"])
    difference = np.abs(other.predict(dataset) - one.predict(X))
    assert 1e-12 < np.max(difference) < 1e-3


def test_a_model_is_saved_and_goes_on_predicting_in_blocks(dataset, frame, tmp_path):
    X = frame[["a", "b", "c", "d", "town"]]
    other = HKLRegressor(alpha=0.01).fit(columns(dataset, "kind", "w"), "y")
    other.save(tmp_path / "model.hik")
    again = hikernel.load(tmp_path / "model.hik")
    np.testing.assert_array_equal(again.predict(dataset), other.predict(dataset))
    np.testing.assert_array_equal(again.predict(X), other.predict(X))
    assert again.summary() == other.summary()
    with pytest.raises(ValueError, match="X lies in blocks, for which there are predictions only"):
        other.effects(dataset)


def test_paths(dataset, frame):
    X = frame[["a", "b", "c", "d", "town"]]
    one = hikernel.hkl_path(X, frame["y"], alphas=[0.1, 0.03])
    other = hikernel.hkl_path(columns(dataset, "kind", "w"), "y", alphas=[0.1, 0.03])
    wanted, found = (path.table().drop(columns="seconds", errors="ignore") for path in (one, other))
    pd.testing.assert_frame_equal(found, wanted, rtol=1e-7, check_exact=False)


def test_a_time_budget_ends_a_fit_with_a_model(dataset, frame):
    with pytest.warns(ConvergenceWarning):
        model = HKLRegressor(time_budget=1e-9, refit="ridge").fit(
            columns(dataset, "kind", "w"), "y"
        )
    assert np.ptp(model.predict(dataset)) < 1e-9


@pytest.mark.slow
def test_certificates_by_draws(dataset, frame, monkeypatch):
    monkeypatch.setattr("hikernel.search.objective.N_DRAWS", 200)
    X = frame[["a", "b", "c", "d", "town"]]
    settings = {"alpha": 0.01, "certify": "statistical"}
    one = HKLRegressor(**settings).fit(X, frame["y"])
    other = HKLRegressor(**settings).fit(columns(dataset, "kind", "w"), "y")
    check_same(one, other, X, dataset)
    assert other.certificate_.gap == pytest.approx(one.certificate_.gap, rel=1e-7)


def test_what_rows_in_blocks_do_not_have_is_refused(dataset, frame):
    rest = columns(dataset, "kind", "w")
    cases = {
        "monotone is not available": HKLRegressor(monotone={"a": 1}),
        "warm_start keeps the rows": HKLRegressor(warm_start=True),
        'refit="variables" takes products': HKLRegressor(refit="variables"),
        "graph= does not read": HKLRegressor(graph=object()),
        "loss of censored times": HKLSurvival(),
    }
    for match, model in cases.items():
        with pytest.raises(ValueError, match=match):
            model.fit(rest, "y")
    with pytest.raises(ValueError, match="does not have"):
        HKLRegressor().fit(rest, "z")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        HKLRegressor().fit(columns(dataset, "kind", "w", "y"), np.ones(3))
    model = HKLRegressor(alpha=0.01, refit="ridge").fit(rest, "y")
    with pytest.raises(ValueError, match="rows lay in blocks"):
        model.predict(frame[["a", "b", "c", "d", "town"]], return_std=True)
    with pytest.raises(ValueError, match="Subsamples of rows in blocks"):
        hikernel.stability_selection(HKLRegressor(alpha=0.01), rest, "y")
    with pytest.raises(ValueError, match="cv= takes rows in memory"):
        model.calibrate(rest, frame["y"], cv=3)
    with pytest.raises(ValueError, match="increasing row numbers"):
        HKLRegressorCV(cv=[(np.arange(800)[::-1], np.arange(800, 900))]).fit(rest, "y")
