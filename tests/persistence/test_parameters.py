"""Parameters that no prediction needs never stand in the way of a file."""

import warnings

import numpy as np
import pandas as pd
import pytest
from persistence.files import data, quick, regressor
from sklearn.metrics import get_scorer, r2_score
from sklearn.model_selection import GroupKFold, KFold

from hikernel import HKLClassifierCV, HKLRegressor, HKLRegressorCV
from hikernel.estimators.saving import estimator_from_state, estimator_state, load, save
from hikernel.persistence.content import ContentError

X, Y = data()
HALVES = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]


def neg_worst(model, X, y):
    return -float(np.max(np.abs(model.predict(X) - y)))


def cross_validated(**parameters):
    settings = {"alphas": [0.01, 0.001], "cv": 2, "max_kernels": 12, "certify": "none"}
    return HKLRegressorCV(**{**settings, **parameters})


def saved_in_silence(model, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(model, folder / "model.hik")
    return load(folder / "model.hik")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.array([0.01, 0.001]), [0.01, 0.001]),
        (np.array([1, 2]), [1, 2]),
        (pd.Series([0.01, 0.001]), [0.01, 0.001]),
        ((0.01, 0.001), (0.01, 0.001)),
    ],
    ids=repr,
)
def test_alphas_come_back_as_numbers(given, kept, tmp_path):
    model = cross_validated(alphas=given).fit(X, Y)
    again = saved_in_silence(model, tmp_path)
    assert again.alphas == kept
    assert [type(alpha) for alpha in again.alphas] == [type(alpha) for alpha in kept]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.array([1]), [1]),
        (np.array(["c", "b"]), ["c", "b"]),
        (np.array(["c", 1], dtype=object), ["c", 1]),
        (np.array([False, True, False]), [False, True, False]),
        (pd.Index(["c"]), ["c"]),
        ({"c", "b"}, ["b", "c"]),
        (range(1, 3), [1, 2]),
    ],
    ids=["number", "names", "mixed", "mask", "index", "set", "range"],
)
def test_categorical_comes_back_as_a_list(given, kept, tmp_path):
    rows = pd.DataFrame(np.round(2 * X), columns=["a", "b", "c"])
    model = quick(HKLRegressor(0.02, categorical=given, max_kernels=12), rows, Y)
    assert "category" in model.columns_.kinds
    again = saved_in_silence(model, tmp_path)
    assert again.categorical == kept
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    np.testing.assert_array_equal(quick(again, rows, Y).predict(rows), model.predict(rows))


@pytest.mark.parametrize(
    ("name", "given", "sentence", "default"),
    [
        ("cv", KFold(2), r"cv=KFold\(n_splits=2, .*\) is not kept .* again with cv=5\.", 5),
        ("cv", GroupKFold(2), r"cv=GroupKFold\(.*\) is not kept .* again with cv=5\.", 5),
        ("cv", HALVES, r"cv=\[\(array\(.*\.\.\. is not kept .* predicts the same", 5),
        ("cv", iter(HALVES), "cv=<list_iterator .* is not kept", 5),
        ("scoring", get_scorer("r2"), r"scoring=make_scorer\(r2_score.* with scoring=None", None),
        ("scoring", neg_worst, "scoring=<function neg_worst .* is not kept in the file", None),
    ],
    ids=["splitter", "groups", "folds", "iterator", "scorer", "function"],
)
def test_splitters_and_scorers_are_left_out_aloud(name, given, sentence, default, tmp_path):
    groups = np.arange(60) % 4 if isinstance(given, GroupKFold) else None
    model = cross_validated(**{name: given}).fit(X, Y, groups=groups)
    with pytest.warns(UserWarning, match=sentence) as caught:
        model.save(tmp_path / "model.hik")
    assert [warning.filename for warning in caught] == [__file__]
    again = load(tmp_path / "model.hik")
    assert again.get_params()[name] == default
    assert model.get_params()[name] is given
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.best_score_ == model.best_score_


def test_names_of_scorers_and_numbers_of_folds_are_kept(tmp_path):
    model = cross_validated(cv=np.int64(3), scoring="r2").fit(X, Y)
    again = saved_in_silence(model, tmp_path)
    assert (again.cv, again.scoring) == (3, "r2")


def test_a_generator_of_columns_is_left_out_aloud(tmp_path):
    model = HKLRegressor(0.02, categorical=(m for m in [2]), max_kernels=12)
    rows = np.round(X)
    quick(model, rows, Y)
    with pytest.warns(UserWarning, match="categorical=<generator .* with categorical=None"):
        save(model, tmp_path / "model.hik")
    again = load(tmp_path / "model.hik")
    assert again.columns_.kinds[2] == "category"
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


def test_a_classifier_with_all_of_them(tmp_path):
    labels = np.where(Y > 0, "high", "low")
    model = HKLClassifierCV(
        alphas=np.array([0.01, 0.001]), cv=KFold(2), scoring=get_scorer("accuracy"), certify="none"
    ).fit(X, labels)
    with pytest.warns(UserWarning, match="is not kept in the file") as caught:
        save(model, tmp_path / "model.hik")
    assert len(caught) == 2
    again = load(tmp_path / "model.hik")
    assert (again.alphas, again.cv, again.scoring) == ([0.01, 0.001], 5, None)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_the_path_alone_is_not_kept(tmp_path):
    """The docstring of load says so."""
    model = cross_validated().fit(X, Y)
    again = saved_in_silence(model, tmp_path)
    assert set(vars(model)) - set(vars(again)) == {"path_"}
    assert set(vars(again)) <= set(vars(model))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cv", KFold(2)),
        ("scoring", r2_score),
        ("alphas", np.array([0.1])),
        ("alphas", [[0.1]]),
        ("n_jobs", [1]),
    ],
)
def test_a_file_cannot_bring_what_saving_leaves_out(name, value):
    state = estimator_state(cross_validated().fit(X, Y))
    state["params"][name] = value
    with pytest.raises(ContentError, match=f"the parameter {name} is"):
        estimator_from_state("HKLRegressorCV", state)


def test_saving_changes_nothing_of_the_model():
    before = regressor().get_params()
    estimator_state(regressor())
    assert regressor().get_params() == before
