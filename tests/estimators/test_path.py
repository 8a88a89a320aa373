"""The regularisation path."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from hikernel import HKLRegressor, hkl_path
from hikernel.estimators import Path
from hikernel.selection import PathEnd


def data(n=200, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = 3.0 + X[:, 0] + 2.0 * X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n)
    return X, y


def test_every_point_is_the_model_of_its_alpha():
    X, y = data()
    path = hkl_path(X, y, alphas=[0.003, 0.1, 0.02], tol=1e-6, certify="exact")
    assert isinstance(path, Path)
    np.testing.assert_array_equal(path.alphas, [0.1, 0.02, 0.003])
    for alpha in path.alphas:
        alone = HKLRegressor(alpha, tol=1e-6).fit(X, y)
        point = path.at(alpha)
        assert point.model.certificate.certified
        assert point.model.certificate.objective == pytest.approx(
            alone.certificate_.objective, rel=2e-6
        )
        distance = np.mean((path.predict(X, alpha=alpha) - alone.predict(X)) ** 2)
        assert distance <= 8e-6 * alone.certificate_.objective
        share = 1 - np.mean((y - path.predict(X, alpha=alpha)) ** 2) / np.var(y)
        assert point.explained == pytest.approx(share, abs=1e-9)
    assert path.predict(X).shape == (len(y), 3)


def test_the_automatic_grid_starts_where_the_first_term_enters():
    X, y = data()
    path = hkl_path(X, y, n_alphas=16)
    assert path.points[0].explained < 0.1
    assert path.points[-1].explained > 0.9
    table = path.table()
    assert isinstance(table, pd.DataFrame)
    assert len(table) == len(path)
    assert np.all(np.diff(table["alpha"]) < 0)
    assert table["explained"].is_monotonic_increasing
    assert np.all(table["terms"] >= 0)
    assert "x0 * x1" in set(path.hull(path.alphas[-1])["term"])


def test_the_grid_scales_with_the_weights_of_the_graph():
    X, y = data()
    base = hkl_path(X, y, n_alphas=1, weight_base=2.0).alphas[0]
    heavy = hkl_path(X, y, n_alphas=1, weight_base=4.0).alphas[0]
    assert heavy == pytest.approx(base * (1 + 2) ** 2 / (1 + 4) ** 2)


def test_names_and_weights_reach_the_path():
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcde"))
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    path = hkl_path(frame, y, alphas=[0.01], sample_weight=weights, tol=1e-6)
    again = hkl_path(np.repeat(X, weights, axis=0), np.repeat(y, weights), alphas=[0.01], tol=1e-6)
    np.testing.assert_allclose(path.predict(frame), again.predict(X), atol=1e-2)
    assert "a * b" in set(path.hull(0.01)["term"])
    assert path.points[0].model.dual_coef.shape == y.shape


def test_the_path_ends_early_and_says_why():
    X, y = data()
    full = hkl_path(X, y, alphas=np.geomspace(1, 1e-6, 12), max_kernels=6)
    assert full.reason is PathEnd.MAX_KERNELS
    assert len(full) < 12
    exact = X[:, 0] + X[:, 1]
    saturated = hkl_path(X, exact, n_alphas=30)
    assert saturated.reason is PathEnd.SATURATED
    assert len(saturated) < 30
    turned = hkl_path(X, y)
    assert turned.reason is PathEnd.TURNED
    assert len(turned) < 40
    for search in ("lookahead", "paper"):
        with pytest.warns(UserWarning, match="time budget is spent"):
            late = hkl_path(X, y, n_alphas=30, time_budget=1e-9, search=search)
        assert late.reason is PathEnd.TIME
        assert "time budget" in str(late.reason)
        # Not even the first alpha had time: a constant.
        assert len(late) == 1
        np.testing.assert_allclose(late.predict(X)[:, 0], np.mean(y))


def test_a_constant_target_has_a_path_too():
    X, _ = data()
    path = hkl_path(X, np.full(len(X), 2.5), n_alphas=3)
    np.testing.assert_array_equal(path.predict(X)[:, 0], 2.5)
    assert path.points[0].explained == 1.0


def test_an_alpha_that_is_not_on_the_path():
    X, y = data()
    path = hkl_path(X, y, alphas=[0.1, 0.01])
    with pytest.raises(ValueError, match=r"nearest that is, is .*0\.01"):
        path.predict(X, alpha=0.02)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"alphas": [0.1, 0.0]}, "every alpha"),
        ({"n_alphas": 0}, "n_alphas"),
        ({"alphas": []}, "alphas is empty"),
        ({"eps": 1.0}, "eps"),
        ({"search": "random"}, "lookahead"),
        ({"time_budget": -1.0}, "time_budget"),
        ({"degree": 0}, "degree"),
    ],
)
def test_bad_parameters_are_refused(parameters, sentence):
    X, y = data(30)
    with pytest.raises(ValueError, match=sentence):
        hkl_path(X, y, **parameters)


def test_the_paper_search_has_a_path():
    X, y = data(100, 3)
    ahead = hkl_path(X, y, alphas=[0.05, 0.01], certify="exact")
    paper = hkl_path(X, y, alphas=[0.05, 0.01], certify="exact", search="paper")
    for a, b in zip(ahead.points, paper.points, strict=True):
        slack = a.model.certificate.gap + b.model.certificate.gap
        assert abs(a.model.certificate.objective - b.model.certificate.objective) <= slack


def test_verbose_shows_a_bar(capsys):
    X, y = data(60)
    hkl_path(X, y, n_alphas=3, verbose=1)
    shown = capsys.readouterr().err
    assert "path" in shown
    assert "terms=" in shown


def test_a_target_that_no_variable_alone_explains():
    X = np.array(list(itertools.product([-1.0, 1.0], repeat=3)) * 4)
    path = hkl_path(X, X[:, 0] * X[:, 1], n_alphas=8, eps=1e-4)
    assert "x0 * x1" in set(path.hull(path.alphas[-1])["term"])
