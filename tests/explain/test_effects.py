"""Effects add up to the prediction, term by term, for every basis."""

import itertools

import numpy as np
import pandas as pd
import pytest
from explain.cases import BASES, BUMPS, fitted, make_model
from oracles.designs import design_of
from oracles.graph_cases import fitted as graph_model
from sklearn.exceptions import NotFittedError

import hikernel.columns.column_design as design_module
from hikernel import HKLClassifier, HKLRegressor
from hikernel.bases import OrthonormalPolynomial
from hikernel.explain import effects_frame, effects_summary, term_effects, terms_frame
from hikernel.explain.effects import _word
from hikernel.graphs import term_names
from hikernel.selection import Fitted
from hikernel.selection.refit import n_effects

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
    monkeypatch.setattr(design_module, "_CHUNK_NUMBERS", 600)
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
    assert frame.columns.names == ["output", "effect"]
    f = classifier.decision_function(X)
    for k, label in enumerate(classifier.classes_):
        assert frame[label].columns[0] == "intercept"
        np.testing.assert_allclose(frame[label].sum(axis=1), f[:, k], rtol=1e-13, atol=1e-13)
    assert_adds_up(classifier._model, classifier._design, X)


@every_basis
@pytest.mark.parametrize("n_outputs", [None, 3])
def test_columns_are_in_the_order_of_their_table_and_add_up(bases, n_outputs):
    X, _, design, model = fitted(bases, n_outputs=n_outputs, names=["a", "b", "c"])
    f = model.predict(design, X).reshape(len(X), -1)
    tables = {
        "effect": effects_summary(model, design)["effect"],
        "term": terms_frame(model, design)["term"],
    }
    frames = {by: effects_frame(model, design, X, by=by) for by in tables}
    for by, names in tables.items():
        frame = frames[by]
        for k in range(f.shape[1]):
            part = frame if n_outputs is None else frame[k]
            assert part.columns.tolist() == ["intercept", *names]
            np.testing.assert_allclose(part.sum(axis=1), f[:, k], atol=1e-9 * np.abs(f).max())
    # A column of an effect is the sum of those of its terms; the term of no variable, which only
    # bases without a constant have, counts for the intercept.
    terms, effects = terms_frame(model, design), effects_summary(model, design)
    for k in range(f.shape[1]):
        by_effect, by_term = (frames[by] if n_outputs is None else frames[by][k] for by in tables)
        for _, effect in effects.iterrows():
            members = terms["term"][terms["variables"] == effect["variables"]]
            assert len(members) == effect["n_terms"]
            np.testing.assert_allclose(
                by_effect[effect["effect"]], by_term[members].sum(axis=1), atol=1e-10
            )
        rest = by_term[["intercept", *terms["term"][terms["order"] == 0]]]
        np.testing.assert_allclose(by_effect["intercept"], rest.sum(axis=1), atol=1e-12)


def test_only_effects_and_terms_have_columns():
    X, _, design, model = fitted(BASES["orthonormal"])
    with pytest.raises(ValueError, match="by must be one of 'effect', 'term', got 'variable'"):
        effects_frame(model, design, X, by="variable")


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


def by_hand(blocks, n_outputs=None):
    """The effects of a model with these coefficients: 200 rows of a, b, c and a category d."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, (200, 3)), rng.integers(3, size=200)])
    design = design_of(X, [OrthonormalPolynomial(4)] * 3, names=list("abcd"), categorical=["d"])
    model = make_model(design, list(blocks), n_outputs=n_outputs)
    for block, given in zip(model.kept().blocks, blocks.values(), strict=True):
        block[...] = given
    return effects_summary(model, design).set_index("effect")


@pytest.mark.parametrize(
    ("blocks", "shape"),
    [
        ({((0, 1),): 1.0}, "increasing"),
        ({((0, 1),): -1.0}, "decreasing"),
        ({((0, 2),): 1.0}, "valley"),
        ({((0, 2),): -1.0}, "peak"),
        ({((0, 3),): 1.0}, "waves"),
        ({((0, 4),): 1.0}, "waves"),
        # A small bend does not count; a larger one does.
        ({((0, 1),): 1.0, ((0, 2),): 0.1}, "increasing"),
        ({((0, 1),): 1.0, ((0, 2),): -0.9}, "peak"),
        ({((0, 1),): 1.0, ((0, 2),): 3.0}, "valley"),
    ],
)
def test_the_shape_of_one_variable(blocks, shape):
    found = by_hand(blocks)
    assert found.loc["a", "shape"] == shape
    assert found.loc["a", "n_terms"] == len(blocks)
    assert found.loc["a", "variables"] == ("a",)
    # Shapes are those of the curve and not of its units.
    assert by_hand({node: 1e-6 * value for node, value in blocks.items()})["shape"]["a"] == shape
    # On a grid by hand: 41 values are enough to see it.
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 1))
    design = design_of(X, [OrthonormalPolynomial(4)])
    levels = design.bases[0].transform(np.sort(X[:, 0])[5:-5])
    curve = sum(value * levels[node[0][1]][:, 0] for node, value in blocks.items())
    steps = np.diff(curve)
    if shape in ("increasing", "decreasing"):
        assert abs(curve[-1] - curve[0]) > 0.9 * np.ptp(curve)
    elif shape != "waves":
        turning = int(np.argmin(curve) if shape == "valley" else np.argmax(curve))
        assert 0 < turning < len(steps)


@pytest.mark.parametrize(
    ("curve", "word"),
    [
        ([0, 1, 2, 3], "increasing"),
        ([3, 2, 1, 0], "decreasing"),
        ([0, 1, 0], "peak"),
        ([1, 0, 1], "valley"),
        ([0, 1, 0, 1], "waves"),
        ([0, 0, 0], "flat"),
        ([0, 100, 96, 101], "increasing"),  # back by 4 % of the range
        ([0, 100, 94, 101], "waves"),  # back by 6 %
        ([0, -4, 100], "increasing"),
        ([0, -6, 100], "valley"),
        ([0, 100, 98, 96, 94], "peak"),  # small steps that add up
        ([0, 2, 4, 6, 8, 6, 4, 2, 0], "peak"),
        ([0, 50, 48, 100, 98], "increasing"),
    ],
)
def test_words_of_curves(curve, word):
    assert _word(np.array(curve, dtype=float)) == word
    assert _word(5.0 + 1e-3 * np.array(curve, dtype=float)) == word


def test_the_shapes_of_several_variables_and_of_categories():
    found = by_hand(
        {
            ((0, 1), (1, 1)): 1.0,
            ((0, 1), (2, 1)): 1.0,
            ((0, 2), (2, 1)): 1.0,
            ((0, 1), (1, 1), (2, 1)): 1.0,
            ((3, 1),): [1.0, 0.5],
            ((1, 1), (3, 1)): [1.0, 0.5],
        }
    )
    assert dict(found["shape"]) == {
        "a * b": "product",
        "a * c": "surface",
        "a * b * c": "product",
        "d": "by category",
        "b * d": "product",
    }
    assert dict(found["order"]) == {"a * b": 2, "a * c": 2, "a * b * c": 3, "d": 1, "b * d": 2}
    assert dict(found["n_terms"]) == {"a * b": 1, "a * c": 2, "a * b * c": 1, "d": 1, "b * d": 1}


def test_classes_with_different_shapes():
    found = by_hand({((0, 1),): [[1.0, 2.0, 3.0]], ((1, 1),): [[1.0, -2.0, 3.0]]}, n_outputs=3)
    assert found["shape"]["a"] == "increasing"
    assert found["shape"]["b"] == "by class"


@every_basis
@pytest.mark.parametrize("n_outputs", [None, 3])
def test_effects_are_the_terms_by_variables(bases, n_outputs):
    _, _, design, model = fitted(bases, n_outputs=n_outputs, names=["a", "b", "c"])
    terms, effects = terms_frame(model, design), effects_summary(model, design)
    groups = terms[terms["order"] > 0].groupby("variables")["share"]
    assert set(effects["variables"]) == set(groups.groups)
    assert len(effects) == n_effects(Fitted(model, model, design))
    for _, effect in effects.iterrows():
        assert effect["share"] == pytest.approx(groups.get_group(effect["variables"]).sum())
        assert effect["n_terms"] == len(groups.get_group(effect["variables"]))
        assert effect["effect"] == " * ".join(effect["variables"])
        assert effect["order"] == len(effect["variables"])
        assert effect["shape"]
    assert effects["share"].is_monotonic_decreasing


def test_effects_of_an_estimator_and_of_none():
    X = np.random.default_rng(0).uniform(-1, 1, size=(200, 3))
    y = X[:, 0] + 2 * X[:, 1] * X[:, 2] - X[:, 1] ** 2
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.raises(NotFittedError):
        _ = HKLRegressor().effects_
    model = HKLRegressor(alpha=1e-3).fit(table, y)
    shapes = model.effects_.set_index("effect")["shape"]
    assert (shapes["a"], shapes["b"], shapes["b * c"]) == ("increasing", "peak", "product")
    assert model.effects_["share"].sum() == pytest.approx(1.0)
    nothing = HKLRegressor(alpha=1e3).fit(table, y).effects_
    assert list(nothing.columns) == list(model.effects_.columns)


def test_effects_of_graphs_are_their_terms():
    model = graph_model("features")
    effects, terms = model.effects_, model.terms_
    assert list(effects.columns) == ["effect", "n_terms", "share"]
    assert effects["effect"].tolist() == terms["term"].tolist()
    assert effects["share"].tolist() == terms["share"].tolist()
    assert set(effects["n_terms"]) == {1}
    fitted_model = Fitted(model._model, model._model, model._design)
    assert len(effects) == n_effects(fitted_model)


def test_a_jump_at_the_smallest_value_has_room_on_its_left():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"year": rng.choice([2021.0, 2022.0, 2023.0], 90)})
    y = (X["year"] == 2021.0) + 0.1 * rng.standard_normal(90)
    model = HKLRegressor(0.01, basis="steps", refit="ridge", certify="none").fit(X, y)
    view = model.summary()["effects"][0]["view"]
    points, values = np.array(view["axes"][0]["values"]), np.array(view["values"]).ravel()
    assert points[0] == pytest.approx(2020.9)
    assert points[1] == 2021.0
    assert values[0] == values[1] > values[2] + 0.5
