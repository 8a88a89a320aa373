"""Columns whose names are integers or tuples, from ``fit`` to the file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import hikernel
from hikernel import HKLRegressor, HKLRegressorCV, hkl_path, stability_selection

INTEGERS = [10, 3, 7, 0]
TUPLES = [("size", "mm"), ("town", ""), ("size", "cm"), ("size / cm", "")]


def table(labels, n=200):
    rng = np.random.default_rng(0)
    first, third, fourth = rng.uniform(-1, 1, (3, n))
    town = rng.integers(0, 3, n)
    y = first + 2 * third * fourth + (town == 1) + 0.1 * rng.standard_normal(n)
    columns = labels if not isinstance(labels[0], tuple) else pd.MultiIndex.from_tuples(labels)
    return pd.DataFrame(np.column_stack([first, town, third, fourth]), columns=columns), y


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (INTEGERS, ["10", "3", "7", "0"]),
        (TUPLES, ["size / mm", "town", "size / cm", "size / cm (2)"]),
    ],
    ids=["integers", "tuples"],
)
def test_names_are_kept_and_keys_are_those_of_the_frame(labels, names, tmp_path):
    X, y = table(labels)
    settings = {"categorical": [labels[1]], "basis": {labels[0]: "polynomial", labels[2]: "rank"}}
    model = HKLRegressor(0.003, **settings).fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    assert model.bases_["column"].tolist() == names
    assert model.bases_["basis"].tolist() == ["polynomial", "categorical", "rank", "orthonormal"]
    assert {names[0], names[1], f"{names[2]} * {names[3]}"} <= set(model.effects_["effect"])
    assert list(model.effects(X).columns) == ["intercept", *model.effects_["effect"]]
    assert f"f({names[1]})" in model.formula() or f"f('{names[1]}')" in model.formula()
    assert names[0] in str(model)
    assert names[0] in str(model.explain(X.iloc[[0]]))
    # The same as with plain names, and as an array.
    plain = X.set_axis(list("abcd"), axis=1)
    same = {"categorical": ["b"], "basis": {"a": "polynomial", "c": "rank"}}
    expected = HKLRegressor(0.003, **same).fit(plain, y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.predict(X.to_numpy()), model.predict(X))
    # Files keep names and parameters.
    model.save(tmp_path / "model.hik")
    again = hikernel.load(tmp_path / "model.hik")
    assert again.get_params() == model.get_params()
    assert again.formula() == model.formula()
    pd.testing.assert_frame_equal(again.effects(X), model.effects(X))
    np.testing.assert_array_equal(again.fit(X, y).coef_, model.coef_)


def test_integers_in_a_formula_are_told_from_numbers():
    X, y = table(INTEGERS)
    text = HKLRegressor(0.003).fit(X, y).formula()
    assert "z('7')*z('0')" in text
    assert "  z('7') = ('7' " in text
    assert "z(7)" not in text


def test_rows_for_folds_paths_and_subsamples_keep_the_names():
    X, y = table(INTEGERS)
    settings = {"categorical": [3], "basis": {7: "orthonormal"}}
    quick = {"alphas": [0.003], "cv": 2, "refit": None, "certify": "none"}
    model = HKLRegressorCV(**settings, **quick).fit(X, y)
    assert "7 * 0" in set(model.effects_["effect"])
    path = hkl_path(X, y, alphas=[0.003], **settings)
    assert "7 * 0" in set(path.hull(0.003)["term"])
    found = stability_selection(HKLRegressor(0.003, **settings), X, y, n_subsamples=2)
    assert "10" in set(found.terms["term"])


@pytest.mark.parametrize(
    ("labels", "key", "columns"),
    [
        (INTEGERS, 1, "10, 3, 7, 0"),
        (INTEGERS, (10,), "10, 3, 7, 0"),
        (TUPLES, ("size", "km"), "size / mm, town, size / cm, size / cm .2. .or positions 0 to 3."),
        (TUPLES, 4, "size / mm, town, size / cm, size / cm .2. .or positions 0 to 3."),
    ],
)
def test_other_keys_are_refused(labels, key, columns):
    X, y = table(labels)
    for settings in ({"categorical": [key]}, {"basis": {key: "spline"}}):
        (name,) = settings
        sentence = (
            rf"{name} names the column .*, which X does not have; its columns are {columns}\."
        )
        with pytest.raises(ValueError, match=sentence):
            HKLRegressor(0.1, **settings).fit(X, y)
