"""The parameter ``interactions``: what may enter enters, nothing else does, also after refits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import hikernel
from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV, hkl_path, stability_selection
from hikernel.columns import ColumnGrid
from hikernel.columns.interactions import read_interactions
from hikernel.consistency import diagnose
from hikernel.estimators.saving import estimator_from_state, estimator_state
from hikernel.graphs.restriction import Restriction
from hikernel.persistence.content import ContentError

RNG = np.random.default_rng(3)
N = 150
X = pd.DataFrame(RNG.uniform(-1, 1, size=(N, 4)), columns=["age", "income", "size", "year"])
X["sex"] = RNG.choice(["f", "m"], N)
Y = (
    X["age"]
    + 2 * X["age"] * X["income"]
    + X["size"] * X["year"]
    + X["age"] * (X["sex"] == "f")
    + 0.05 * RNG.standard_normal(N)
)
HOLES = X.copy()
HOLES.loc[RNG.random(N) < 0.2, "age"] = np.nan


def pairs_of(model):
    """The sets of two and more variables that are in a term."""
    return {frozenset(v) for v in model._design.variables(model.nodes_) if len(v) > 1}


def fitted(interactions, frame=X, **more):
    options = {"alpha": 1e-3, "degree": 2, "interactions": interactions} | more
    return HKLRegressor(**options).fit(frame, Y)


@pytest.mark.slow
@pytest.mark.parametrize("search", ["lookahead", "paper"])
def test_what_may_enter_enters_and_nothing_else_does(search):
    age_income, size_year = frozenset({"age", "income"}), frozenset({"size", "year"})
    free = fitted(None, search=search)
    assert {age_income, size_year, frozenset({"age", "sex"})} <= pairs_of(free)
    assert not free.certificate_.restricted
    assert pairs_of(fitted("none", search=search)) == set()
    assert pairs_of(fitted([("age", "income")], search=search)) == {age_income}
    found = pairs_of(fitted([("age", "income", "sex"), ("size", "year")], search=search))
    assert {age_income, size_year} <= found
    assert all(s <= {"age", "income", "sex"} or s <= {"size", "year"} for s in found)
    found = pairs_of(fitted({"allow": [("age", "*")]}, search=search))
    assert age_income in found
    assert all("age" in s and len(s) == 2 for s in found)
    model = fitted({"forbid": [("age", "*")]}, search=search)
    assert size_year in pairs_of(model)
    assert not any("age" in s for s in pairs_of(model))
    assert model.certificate_.certified
    assert model.certificate_.restricted
    found = pairs_of(fitted({"forbid": [("age", "income")]}, search=search))
    assert frozenset({"age", "sex"}) in found
    assert not any(age_income <= s for s in found)
    both = {"allow": [("age", "*")], "forbid": [("age", "sex")]}
    assert frozenset({"age", "sex"}) not in pairs_of(fitted(both, search=search))


def test_no_interactions_is_the_model_of_order_one():
    alone, limited = fitted("none"), fitted(None, max_order=1)
    np.testing.assert_allclose(alone.predict(X), limited.predict(X), rtol=1e-10)
    assert alone.certificate_.n_vertices == limited.certificate_.n_vertices
    whole = fitted([tuple(X.columns)])
    np.testing.assert_allclose(whole.predict(X), fitted(None).predict(X), rtol=1e-10)


def test_columns_are_named_in_every_way_and_sets_are_groups():
    wanted = fitted([("age", "income")]).predict(X)
    same = [[{"age", "income"}], [[0, 1]], ((np.int64(0), "income"),), {"allow": [(1, "age")]}]
    same.append(np.array([[0, 1]]))
    for spec in same:
        np.testing.assert_array_equal(fitted(spec).predict(X), wanted)
    tuples = X[["age", "income", "size"]].copy()
    tuples.columns = pd.MultiIndex.from_tuples([("a", "b"), ("a", "c"), ("d", "")])
    model = HKLRegressor(0.001, interactions=[[("a", "b"), ("a", "c")]]).fit(tuples, Y)
    assert pairs_of(model) == {frozenset({"a / b", "a / c"})}
    numbered = X[["age", "income", "size"]].set_axis([5, 7, 1], axis=1)
    model = HKLRegressor(0.001, interactions=[(7, 5)]).fit(numbered, Y)
    assert pairs_of(model) == {frozenset({"5", "7"})}


def test_an_indicator_of_missing_values_follows_its_column():
    y = Y.fillna(0) + np.where(HOLES["age"].isna(), 2.0 + 3.0 * X["income"], 0.0)
    options = {"alpha": 1e-3, "degree": 2}
    free = HKLRegressor(**options).fit(HOLES, y)
    assert frozenset({"age is missing", "income"}) in pairs_of(free)
    spec = {"forbid": [("age", "*")]}
    model = HKLRegressor(**options, interactions=spec).fit(HOLES, y)
    assert not any(s & {"age", "age is missing"} for s in pairs_of(model))
    model = HKLRegressor(**options, interactions=[("age", "income")]).fit(HOLES, y)
    assert frozenset({"age is missing", "income"}) in pairs_of(model)
    assert not any({"age", "age is missing"} <= s for s in pairs_of(model))


@pytest.mark.parametrize("refit", ["ridge", "variables"])
def test_refits_keep_to_the_rule(refit):
    model = HKLRegressor(
        0.001, interactions={"forbid": [("age", "income")]}, refit=refit, degree=2
    ).fit(X, Y)
    assert not any({"age", "income"} <= s for s in pairs_of(model))
    if refit == "variables":
        assert max(level for node in model.nodes_ for _, level in node) > 2


@pytest.mark.slow
def test_cross_validation_paths_and_stability_keep_to_the_rule():
    spec = {"forbid": [("age", "*")]}
    options = {"degree": 2, "interactions": spec}
    model = HKLRegressorCV(cv=3, n_alphas=6, refit="variables", **options).fit(HOLES, Y)
    assert not any(s & {"age", "age is missing"} for s in pairs_of(model))
    path = hkl_path(HOLES, Y, alphas=[0.1, 0.01], **options)
    names = path.points[-1].model.nodes
    assert not any(len(node) > 1 and {0, 5} & {m for m, _ in node} for node in names)
    found = stability_selection(HKLRegressor(0.01, **options), X, Y, n_subsamples=4)
    assert not any(" * " in term and "age" in term for term in found.terms["term"])
    steps = HKLRegressor(0.01, basis="auto+steps", **options).fit(X, Y)
    assert not any("age" in s for s in pairs_of(steps))
    classes = HKLClassifier(0.01, **options).fit(X, Y > 0)
    assert not any("age" in s for s in pairs_of(classes))


def test_the_conditions_of_consistency_are_about_the_terms_that_may_enter():
    model = fitted({"forbid": [("age", "*")]}, alpha=0.05)
    report = diagnose(model, X, max_order=2, max_degree=2)
    assert report.n_graph == model.certificate_.n_vertices
    assert report.n_nodes < diagnose(fitted(None, alpha=0.05), X, max_order=2, max_degree=2).n_nodes


@pytest.mark.parametrize(
    "spec",
    [
        "none",
        [("age", "income"), {"size", "year"}],
        {"allow": [("age", "*")], "forbid": [("age", "sex")]},
        {"forbid": [np.array([0, 1])]},
    ],
    ids=["none", "groups", "allow and forbid", "array"],  # the words of a set change their order
)
def test_a_file_keeps_the_rule(spec, tmp_path):
    model = fitted(spec)
    model.save(tmp_path / "model.hik")
    loaded = hikernel.load(tmp_path / "model.hik")
    assert loaded.graph_ == model.graph_
    assert loaded.certificate_ == model.certificate_
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    again = clone(loaded).fit(X, Y)
    np.testing.assert_allclose(again.predict(X), model.predict(X))


def test_a_file_with_an_impossible_rule_is_refused():
    model = fitted({"forbid": [("age", "*")]}, refit="variables")
    state = estimator_state(model)
    assert estimator_from_state("HKLRegressor", state).interactions == model.interactions

    def refused(rule, sentence):
        graph = replace(state["graph"], restriction=rule)
        with pytest.raises(ContentError, match=sentence):
            estimator_from_state("HKLRegressor", {**state, "graph": graph})

    refused(Restriction((0, 1, 2)), "not about its columns")
    refused(Restriction((0, 1, 2, 3, 10**12)), "not about its columns")
    refused(Restriction((0, 1, 2, 3, 4), None, (((0,), 10**30),)), "not about its columns")
    refused(Restriction((0, 1, 2, 3, 4), ()), "not in the graph")


def test_a_restricted_graph_is_called_one():
    model = fitted({"forbid": [("age", "*")]})
    assert "among 56 allowed kernels" in " ".join(str(model).split())
    words = model.certificate_.explain()
    assert words.startswith("The graph of the allowed interactions has 56 kernels;")
    chain = {"forbid": [(i, i + 1) for i in range(40)]}
    wide = np.random.default_rng(0).standard_normal((30, 41))
    model = HKLRegressor(0.5, interactions=chain, degree=1).fit(wide, wide[:, 0])
    assert "has at most about 10^" in model.certificate_.explain()
    assert model.summary()["certificate"]["n_kernels_in_graph"].startswith("at most about 10^")


def test_columns_without_interactions_come_on_top_of_the_rule():
    table = ColumnGrid().read(X).table
    rule = read_interactions([("age", "income", "size")], table, None, alone=("income",))
    assert rule.permits([(0, 1), (0, 2), (1, 2)]).tolist() == [False, True, False]
    rule = read_interactions(None, table, None, alone=("age",))
    assert rule.permits([(0, 1), (1, 2, 3, 4)]).tolist() == [False, True]


def test_small_groups_limit_the_order_and_one_lonely_column_does_not():
    wide = np.random.default_rng(0).standard_normal((20, 12))

    def order(**options):
        grid = ColumnGrid(degree=1, **options)
        return grid.fit(grid.read(wide), np.ones(20)).grid.max_order

    assert order(interactions="none") == 1
    assert order(interactions={"allow": [(0, "*")]}, max_order=5) == 2
    assert order(interactions=[(0, 1, 2), (3, 4)]) == 3
    assert order(interactions={"forbid": [(0, "*")]}) is None
    assert order(interactions={"forbid": [(0, "*")]}, max_order=3) == 3


@pytest.mark.parametrize(
    ("spec", "error", "sentence"),
    [
        (
            ["age", "sex"],
            TypeError,
            r"has 'age' where a group of columns is meant; write \[\(",
        ),
        ("age", TypeError, "must be None .*, got 'age'"),
        ("pairs", TypeError, "must be None .*, got 'pairs'"),
        (2, TypeError, "must be None .*, got 2"),
        ([1, 2], TypeError, "has 1 where a group of columns is meant"),
        (
            [("age",)],
            ValueError,
            r"of 1 column\(s\); a group has two or more, as \('age'",
        ),
        ([()], ValueError, r"of 0 column\(s\); a group has two or more"),
        ([], ValueError, 'is empty; write interactions="none"'),
        ({"forbid": []}, ValueError, "is empty"),
        ({}, ValueError, "got an empty mapping"),
        ({"allowed": [("age", "sex")]}, ValueError, "got the key 'allowed'"),
        ({"allow": "age"}, TypeError, r"interactions\['allow'\] must be a list of groups"),
        ([("age", "colour")], ValueError, "names the column 'colour', which X does not have; its"),
        ([("age", 9)], ValueError, "names the column 9, which X does not have"),
        ([("age", True)], ValueError, "names the column True, which X does not have"),
        ([("age", "age")], ValueError, "names a column twice in the group"),
        ([("age", 0)], ValueError, "names a column twice in the group"),
        (
            {"allow": [("age", "sex")], "forbid": [("sex", "*")]},
            ValueError,
            r"allows the group \('age', 'sex'\) and forbids all its pairs; take it out",
        ),
        (
            {"allow": [("age", "*")], "forbid": [("*", "*")]},
            ValueError,
            r"allows the group \('age', '\*'\) and forbids all its pairs",
        ),
    ],
)
def test_bad_rules_are_refused_with_a_sentence(spec, error, sentence):
    with pytest.raises(error, match=sentence):
        fitted(spec)
    with pytest.raises(error, match=sentence):
        hkl_path(X, Y, interactions=spec)


def test_where_a_rule_has_no_meaning():
    from hikernel.bases import Gaussian

    with pytest.raises(ValueError, match="interactions needs bases with a constant level 0"):
        fitted("none", X[["age", "income"]], basis=Gaussian(2))
    with pytest.raises(ValueError, match="interactions='none' applies to a grid of columns"):
        HKLRegressor(graph=ColumnGrid(), interactions="none").fit(X, Y)
