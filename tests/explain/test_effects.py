"""Effects add up to the prediction, term by term, for every basis."""

import itertools

import numpy as np
import pandas as pd
import pytest
from explain.cases import BASES, BUMPS, fitted, make_model

import hikernel.columns.column_grid as grid_module
from hikernel import HKLClassifier, HKLRegressor
from hikernel.explain import effects_frame, term_effects, terms_frame
from hikernel.graphs import term_names

EPS = np.finfo(float).eps
every_basis = pytest.mark.parametrize(
    "bases", [*BASES.values(), *BUMPS.values()], ids=[*BASES, *BUMPS]
)


def assert_adds_up(model, design, X):
    """Equal to predict within 4 units in the last place of the sum of magnitudes."""
    effects = term_effects(model, design, X)
    total = model.intercept + effects.sum(axis=1)
    size = np.abs(model.intercept) + np.abs(effects).sum(axis=1)
    widest = int(max(model.widths))  # a wide term is itself a sum with cancellation
    assert np.all(np.abs(total - model.predict(design, X)) <= (4 + 2 * widest) * EPS * (1 + size))


@every_basis
@pytest.mark.parametrize("n_outputs", [None, 1, 3])
def test_effects_add_up(bases, n_outputs):
    X, _, design, model = fitted(bases, n_outputs=n_outputs)
    assert_adds_up(model, design, X)
    shape = (len(X), model.n_terms) if n_outputs is None else (len(X), model.n_terms, n_outputs)
    assert term_effects(model, design, X).shape == shape


@every_basis
def test_an_effect_is_the_prediction_of_its_term_alone(bases):
    X, _, design, model = fitted(bases)
    kept = model.kept()
    effects = term_effects(model, design, X)
    for t, node in enumerate(kept.nodes):
        alone = make_model(design, [node])
        alone.coef[:] = kept.blocks[t]
        expected = alone.predict(design, X) - alone.intercept
        np.testing.assert_allclose(effects[:, t], expected, rtol=1e-9, atol=1e-9)


def test_chunks_make_no_difference(monkeypatch):
    X, _, design, model = fitted(BASES["mixed"])
    whole = term_effects(model, design, X)
    monkeypatch.setattr(grid_module, "_CHUNK_NUMBERS", 600)
    np.testing.assert_allclose(term_effects(model, design, X), whole, rtol=1e-13, atol=1e-13)


def test_a_model_without_terms():
    X, _, design, _ = fitted(BASES["orthonormal"])
    model = make_model(design, [(), ((0, 1),)], empty=[(), ((0, 1),)])
    assert term_effects(model, design, X).shape == (len(X), 0)
    assert effects_frame(model, design, X).columns.tolist() == ["intercept"]
    assert terms_frame(model, design).empty


def test_rows_that_overflow_are_named():
    X, _, design, model = fitted(BASES["polynomial"])
    X = X.copy()
    X[7, 0] = 1e300
    with pytest.raises(ValueError, match="Row 7 of X"):
        term_effects(model, design, X)


def test_frame_of_one_output():
    X = np.random.default_rng(0).uniform(-1, 1, size=(200, 3))
    y = X[:, 0] + 2 * X[:, 1] * X[:, 2]
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    estimator = HKLRegressor(alpha=1e-3).fit(table, y)
    index = pd.Index(range(100, 300), name="row")
    frame = effects_frame(estimator._model, estimator._design, X, index=index)
    assert frame.columns[0] == "intercept"
    assert "b * c" in frame.columns
    assert frame.index.equals(index)
    assert np.all(frame["intercept"] == estimator.intercept_)
    np.testing.assert_allclose(frame.sum(axis=1), estimator.predict(table), rtol=1e-14, atol=1e-14)


def test_frame_of_several_outputs():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 3))
    y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.3, 0.3])]
    classifier = HKLClassifier(alpha=1e-2).fit(X, y)
    frame = effects_frame(classifier._model, classifier._design, X, classifier.classes_)
    assert frame.columns.names == ["output", "term"]
    f = classifier.decision_function(X)
    for k, label in enumerate(classifier.classes_):
        assert frame[label].columns[0] == "intercept"
        np.testing.assert_allclose(frame[label].sum(axis=1), f[:, k], rtol=1e-13, atol=1e-13)
    assert_adds_up(classifier._model, classifier._design, X)


def test_terms_frame_lists_kept_terms_by_share():
    _, _, design, model = fitted(BASES["orthonormal"], names=["a", "b", "c"])
    frame = terms_frame(model, design)
    assert list(frame.columns[:4]) == ["term", "variables", "order", "degree"]
    assert len(frame) == model.n_terms
    assert frame["share"].is_monotonic_decreasing
    kept = model.kept()
    expected = {tuple("abc"[m] for m, _ in node) for node in kept.nodes}
    assert set(frame["variables"]) == expected
    assert sorted(frame["norm"]) == sorted(np.linalg.norm(block) for block in kept.blocks)


def test_columns_that_read_like_terms_are_quoted():
    names = ["b", "c", "b * c", "intercept", "b^2", "d^2", "'b * c'", "c *"]
    nodes = [((m, 1),) for m in range(8)] + [((0, 1), (1, 1)), ((0, 2),), ((0, 1), (2, 1))]
    nodes += [((2, 1), (3, 2))]
    found = term_names(nodes, names)
    assert len({"intercept", *found}) == len(nodes) + 1
    assert found[:6] == ["b", "c", "'b * c'", "'intercept'", "'b^2'", "d^2"]
    assert found[8:10] == ["b * c", "b^2"]
    assert found[11] == "'b * c' * 'intercept'^2"
    assert term_names([(), ((0, 1),)], ["1"]) == ["1", "'1'"]
    assert term_names([((0, 1),)], ["1"]) == ["1"]


def test_terms_of_any_names_differ():
    """All products of three columns with the most confusing names there are."""
    parts = ["a", "b", "a * b", "b * a", "a^2", "a *", "* b", "'a'", "'a^2'", '"', "^2", ""]
    levels = itertools.product(range(3), repeat=3)
    grid = [tuple((m, level) for m, level in enumerate(row) if level) for row in levels]
    nodes = [node for node in grid if node]
    for names in itertools.permutations(parts, 3):
        assert len({"intercept", *term_names(nodes, names)}) == len(nodes) + 1, names
