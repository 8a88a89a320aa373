"""What every graph owes the rest of the package, columns included."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from graphs.cases import CASES
from sklearn.base import clone

from hikernel import HKLRegressor, HKLRegressorCV
from hikernel.graphs import Design
from hikernel.search import SEARCHES

every_case = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


def design_of(case):
    rows = case.source.read(case.X)
    assert len(rows) == len(case.y)
    return case.source.fit(rows, np.ones(len(case.y)))


def fitted(case):
    return HKLRegressor(0.003, graph=case.source, tol=1e-6).fit(case.X, case.y)


@every_case
def test_structure(case):
    design = design_of(case)
    graph = design.graph
    assert isinstance(design, Design)
    assert graph.searches
    assert set(graph.searches) <= set(SEARCHES)
    nodes = fitted(case).nodes_
    assert len(nodes) > 1
    assert graph.hull(nodes) == set(nodes)
    assert len(nodes) <= graph.n_vertices
    for node in nodes:
        ancestors = graph.ancestors(node)
        assert node in ancestors
        assert graph.hull([node]) == set(ancestors)
        assert all(graph.sort_key(v) < graph.sort_key(node) for v in ancestors if v != node)
    assert np.all(graph.weights(nodes) > 0.0)
    assert len({*design.terms(nodes)["term"]}) == len(nodes)


@every_case
def test_the_search_starts_at_a_node_of_the_graph(case):
    design = design_of(case)
    rows = design.training_rows(case.source.read(case.X))
    engine = design.engine(rows, np.ones(len(case.y)))
    node = design.graph.strongest(engine, case.y - case.y.mean())
    assert node in design.graph.hull([node])
    assert design.graph.n_scored(engine) > 0


@every_case
def test_the_optimum_is_certified_and_predicts(case):
    model = fitted(case)
    assert model.certificate_.certified
    assert model.score(case.X, case.y) > 0.3
    effects = np.asarray(model.effects(case.X))
    np.testing.assert_allclose(effects.sum(axis=1), model.predict(case.X), atol=1e-9)
    one = model.predict(case.rows([7]))
    np.testing.assert_allclose(one, model.predict(case.X)[7:8], atol=1e-9)


@every_case
def test_training_rows_are_predicted_like_new_ones(case):
    model = fitted(case)
    design = model._design
    rows = case.source.read(case.X)
    inside = model._model.predict(design, design.training_rows(rows))
    np.testing.assert_allclose(inside, model.predict(case.X), atol=1e-9)


@every_case
def test_a_repeated_row_equals_a_weight(case):
    rng = np.random.default_rng(1)
    times = rng.integers(1, 3, len(case.y))
    model = HKLRegressor(0.01, graph=case.source, tol=1e-8)
    weighted = clone(model).fit(case.X, case.y, sample_weight=times)
    copies = np.repeat(np.arange(len(case.y)), times)
    repeated = clone(model).fit(case.rows(copies), case.y[copies])
    np.testing.assert_allclose(weighted.predict(case.X), repeated.predict(case.X), atol=1e-3)


@every_case
def test_copies_predict_the_same(case):
    model = fitted(case)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(case.X), model.predict(case.X))
    refitted = clone(model).fit(case.X, case.y)
    np.testing.assert_array_equal(refitted.predict(case.X), model.predict(case.X))


@every_case
def test_cross_validation_takes_rows_out(case):
    model = HKLRegressorCV(graph=case.source, cv=3, tol=1e-3).fit(case.X, case.y)
    assert model.alpha_ in model.cv_results_["alpha"]
    assert model.score(case.X, case.y) > 0.3


ORDER = """
from graphs.cases import CASES
from hikernel import HKLRegressor
for name in ("strings", "features", "table"):
    case = CASES[name]
    model = HKLRegressor(0.003, graph=case.source).fit(case.X, case.y)
    print(list(model.hull_["term"]), list(model.effects(case.X).columns), model.coef_.tolist())
"""


@pytest.mark.slow
def test_the_order_of_terms_does_not_depend_on_hashing():
    paths = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", ORDER],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
