"""Saved and loaded models are the same models, to the last bit, by every way of storing them."""

import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest
from bases.cases import CASES as BASES
from losses.cases import CASES as LOSSES
from persistence.files import bytes_of, classifier, data, quick, regressor, same

from hikernel import HKLClassifier, HKLClassifierCV, HKLRegressor, HKLRegressorCV
from hikernel.bases import Gaussian, KernelPCA, LowRankWarning, Polynomial, Spline
from hikernel.columns import ColumnGrid
from hikernel.errors import ConvergenceWarning
from hikernel.estimators.saving import estimator_from_state, estimator_state, load, save
from hikernel.losses import REGRESSION, Multinomial

pytestmark = pytest.mark.slow


def by_file(model, folder):
    save(model, folder / "model.hik")
    return load(folder / "model.hik")


def by_pickle(model, folder):
    return pickle.loads(pickle.dumps(model))


def by_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


every_way = pytest.mark.parametrize("way", [by_file, by_pickle, by_joblib])


def assert_same_model(model, again, X):
    assert type(again) is type(model)
    assert set(vars(again)) == set(vars(model))
    for name, value in vars(model).items():
        assert same(value, getattr(again, name)), name
    wide = np.vstack([X, 3.0 * X, np.zeros_like(X[:1])])
    methods = ["predict", "decision_function", "predict_proba", "predict_log_proba"]
    for method in methods:
        if hasattr(model, method):
            assert same(getattr(model, method)(wide), getattr(again, method)(wide)), method
    assert again.certificate_.explain() == model.certificate_.explain()


def fitted_with(basis):
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowRankWarning)
        return quick(HKLRegressor(alpha=0.003, basis=basis, max_kernels=12), X, y)


@every_way
@pytest.mark.parametrize("name", BASES)
def test_every_basis(name, way, tmp_path):
    if way is by_file and name == "kernel_pca-callable":
        pytest.skip("a function is for pickle alone; see test_functions_are_refused")
    model = fitted_with(BASES[name].basis)
    assert_same_model(model, way(model, tmp_path), data()[0])


@every_way
def test_the_bases_that_are_chosen_for_columns(way, tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.uniform(-1.0, 1.0, size=200),
            rng.lognormal(size=200),
            np.where(rng.uniform(size=200) < 0.95, 0.0, rng.exponential(size=200)),
        ]
    )
    y = X[:, 0] * np.log(X[:, 1]) + X[:, 2] + 0.1 * rng.standard_normal(200)
    model = quick(HKLRegressor(alpha=0.001, max_kernels=40), X, y)
    assert model.bases_["basis"].tolist() == ["orthonormal", "asinh", "rank"]
    assert {m for node in model.nodes_ for m, _ in node} == {0, 1, 2}
    again = way(model, tmp_path)
    assert_same_model(model, again, X)
    for rows in (1e6 * X, -X):
        assert same(again.predict(rows), model.predict(rows))
    assert again.bases_.equals(model.bases_)
    assert again.formula() == model.formula()


@every_way
@pytest.mark.parametrize("name", LOSSES)
def test_every_loss(name, way, tmp_path):
    case = LOSSES[name]
    X, signal = data(p=4)
    signal = signal if case.outputs is None else np.stack([signal, -signal, 0.3 * X[:, 3]], axis=1)
    y = case.target(2.0 * signal, np.random.default_rng(1))
    if type(case.loss) in REGRESSION.values():
        model = HKLRegressor(alpha=0.02, loss=case.loss, max_kernels=12)
    else:
        y = y if y.ndim == 1 else np.argmax(y, axis=1)
        loss = "log_loss" if isinstance(case.loss, Multinomial) else case.loss
        model = HKLClassifier(alpha=0.02, loss=loss, max_kernels=12)
    assert_same_model(quick(model, X, y), way(model, tmp_path), X)


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes"],
        ["a", "b", "cc"],
        np.array(["no", "yes"], dtype=object),
        [False, True],
        np.array([3, 250], dtype=np.uint8),
        [-1.0, 0.0, 2.0],
    ],
    ids=str,
)
def test_labels_of_every_type(labels, tmp_path):
    X, y = data()
    rank = np.argsort(np.argsort(y)) * len(labels) // len(y)
    model = quick(HKLClassifier(alpha=0.05, max_kernels=10), X, np.asarray(labels)[rank])
    assert_same_model(model, by_file(model, tmp_path), X)


def test_parameters_of_every_kind(tmp_path):
    X, y = data()
    X = pd.DataFrame(X, columns=["age", "größe", "size\n'\""])
    basis = {"age": Spline(tol=0.01), 1: "hermite", 2: Polynomial(np.int64(2))}
    model = HKLRegressor(
        np.float64(0.02), basis=basis, max_order=np.int32(2), time_budget=60, random_state=None
    )
    again = by_file(quick(model, X, y), tmp_path)
    assert same(again.get_params(), model.get_params())
    assert again.feature_names_in_.tolist() == list(X.columns)
    assert again.feature_names_in_.dtype == object
    assert again.hull_.equals(model.hull_)
    assert same(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(X.rename(columns={"age": "years"}))


def test_class_weights_and_constant_columns(tmp_path):
    X, y = data()
    X[:, 2] = 7.0
    model = HKLClassifier(0.03, class_weight={0: 1.0, 1: 2}, max_kernels=10)
    assert_same_model(quick(model, X, (y > 0).astype(int)), by_file(model, tmp_path), X)


def test_counts_beyond_every_integer_type(tmp_path):
    model = quick(HKLRegressor(0.01, max_kernels=10), *data())
    count = 5**7000  # the vertices of a grid of 7000 variables: more digits than Python writes
    certificate = replace(model.certificate_, n_vertices=count)
    model._selected = replace(model._selected, certificate=certificate)
    assert by_file(model, tmp_path).certificate_.n_vertices == count


def test_a_loaded_model_can_be_fitted_cloned_and_saved_again(tmp_path):
    from sklearn.base import clone

    X, y = data()
    model = regressor()
    again = by_file(model, tmp_path)
    assert bytes_of(again) == bytes_of(model)
    assert same(quick(clone(again), X, y).predict(X), model.predict(X))
    again.coef_[0] += 1.0  # arrays are writable, as after a fit
    assert same(quick(again, X, y).predict(X), model.predict(X))


def test_another_process_predicts_without_training_data(tmp_path):
    model = classifier()
    save(model, tmp_path / "model.hik")
    rows = data(n=5, seed=3)[0]
    np.save(tmp_path / "rows.npy", rows)
    code = (
        "import sys, numpy as np; from hikernel import load; "
        "f = load(sys.argv[1]).decision_function(np.load(sys.argv[2])); print(f.tobytes().hex())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "model.hik"), str(tmp_path / "rows.npy")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert text.strip() == model.decision_function(rows).tobytes().hex()


def test_the_file_holds_no_rows():
    X, y = data(n=500)
    model = quick(HKLRegressor(0.01, max_kernels=20), X, y)
    content = bytes_of(model)
    assert not any(value.tobytes() in content for value in X.ravel())
    assert not any(repr(float(value)).encode() in content for value in X.ravel())


def test_the_size_is_that_of_the_numbers(tmp_path):
    sizes = {}
    for n in (500, 4500):
        model = quick(HKLRegressor(0.01, max_kernels=20), *data(n=n))
        for kept in (True, False):
            save(model, tmp_path / "model.hik", dual_coef=kept)
            sizes[n, kept] = os.path.getsize(tmp_path / "model.hik")
    assert sizes[500, True] < 16_000 + 8 * 500
    assert sizes[4500, True] - sizes[500, True] == pytest.approx(8 * 4000, abs=2000)
    assert sizes[4500, False] == pytest.approx(sizes[500, False], abs=2000)


def test_without_dual_coefficients(tmp_path):
    X = data()[0]
    for model in (regressor(), classifier()):
        save(model, tmp_path / "model.hik", dual_coef=False)
        again = load(tmp_path / "model.hik")
        assert again.dual_coef_.shape == (0, *model.dual_coef_.shape[1:])
        assert len(model.dual_coef_) == len(X)
        assert same(again.predict(X), model.predict(X))


def test_states_go_both_ways_without_a_file():
    model = regressor()
    state = estimator_state(model)
    assert_same_model(model, estimator_from_state("HKLRegressor", state), data()[0])


def test_equal_models_give_equal_files():
    assert bytes_of(regressor()) == bytes_of(quick(HKLRegressor(0.01, max_kernels=20), *data()))


# What cannot be saved.


def refused(model, folder, match):
    with pytest.raises(ValueError, match=match):
        save(model, folder / "model.hik")
    assert list(folder.iterdir()) == []


def test_functions_are_refused(tmp_path):
    model = fitted_with(BASES["kernel_pca-callable"].basis)
    refused(model, tmp_path, "kernel of KernelPCA is a Python function.*use pickle or joblib")


class MyGaussian(Gaussian):
    """A basis that the package does not know."""


def test_foreign_classes_are_refused(tmp_path):
    model = fitted_with(MyGaussian(3, constant_level=True))
    refused(model, tmp_path, "class MyGaussian.*use pickle or joblib")


def test_generators_are_refused(tmp_path):
    model = quick(HKLRegressor(random_state=np.random.RandomState(0)), *data())
    refused(model, tmp_path, r"random_state.*set_params\(random_state=0\)")


def test_graphs_are_refused_also_where_they_are_columns(tmp_path):
    graph = ColumnGrid(degree=2, max_order=1)
    model = quick(HKLRegressor(0.01, graph=graph), *data())
    refused(model, tmp_path, r"graph of its own \(graph=\).*use pickle or joblib")


def test_only_our_own_fitted_estimators(tmp_path):
    from sklearn.linear_model import Ridge

    refused(HKLRegressor(), tmp_path, "not fitted")
    refused(Ridge(), tmp_path, "HKLRegressor, .* or HKLSurvivalCV can be saved")
    refused(None, tmp_path, "can be saved, got None")


def test_broken_models_are_not_saved(tmp_path):
    model = quick(HKLRegressor(0.01, max_kernels=10), *data())
    model.coef_[0] = np.nan
    refused(model, tmp_path, "cannot be saved: coef holds NaN")
    model = quick(HKLRegressor(0.01, max_kernels=10), *data()).set_params(loss=[1])
    refused(model, tmp_path, "parameter loss")


def test_kernels_by_name_can_be_saved_within_a_mapping(tmp_path):
    model = fitted_with({0: KernelPCA("laplace", degree=2, tol=1e-3, constant_level=True)})
    assert_same_model(model, by_file(model, tmp_path), data()[0])


# Little noise: the best of a few alphas may be the smallest.
@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest that was tried")
@pytest.mark.parametrize("refit", [None, "ridge", "sparse", "variables"])
def test_a_cross_validated_regressor_comes_back(tmp_path, refit):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 4))
    y = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(120)
    model = HKLRegressorCV(refit=refit, cv=3, n_alphas=6, eps=1e-5, certify="none").fit(X, y)
    assert model.refit_ == refit
    save(model, tmp_path / "model.hik")
    copy = load(tmp_path / "model.hik")
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert (copy.alpha_, copy.refit_, copy.best_score_) == (
        model.alpha_,
        model.refit_,
        model.best_score_,
    )
    for name, column in model.cv_results_.items():
        np.testing.assert_array_equal(copy.cv_results_[name], column)
    assert copy.formula() == model.formula()


def test_a_cross_validated_classifier_comes_back(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 4))
    y = np.where(X[:, 0] * X[:, 1] > 0, "a", np.where(X[:, 2] > 0, "b", "c"))
    model = HKLClassifierCV(cv=2, n_alphas=4, eps=1e-4, certify="none")
    with pytest.warns(ConvergenceWarning, match="smallest that was tried"):
        model.fit(X, y)  # there is no noise in these classes
    save(model, tmp_path / "model.hik")
    copy = load(tmp_path / "model.hik")
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
