"""When an error has turned, what a model is estimated to lose on new rows, and how paths end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from losses.cases import CASES
from oracles.designs import training_problem
from oracles.graph_cases import KERNELS, NUMBERS, N, X, make_graph, rows_of

from hikernel.engines.machine import time_limit
from hikernel.losses import LogLoss, SquaredError
from hikernel.search import SearchSettings, StopReason
from hikernel.selection import PathEnd, TrainingProblem, compute_path, constant_model, lambda_grid
from hikernel.selection.lambda_path import LambdaPath, PathSolver, estimated_error, has_turned

SETTINGS = SearchSettings(certify="none")


def make(n=120, p=4, seed=0, noise=0.5, loss=None, weights=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = X[:, 0] + 2.0 * X[:, 0] * X[:, 1] + noise * rng.standard_normal(n)
    if loss is not None:
        y = np.where(y > 0.0, 1.0, -1.0)
    return training_problem(X, y, "orthonormal", loss, weights, degree=3)


FALLING = [10.0 * 0.9**k for k in range(20)]
FLAT_AT = 12


@pytest.mark.parametrize(
    ("errors", "turned"),
    [
        ([], False),
        (FALLING, False),
        (FALLING[:10], False),
        # Two points that do not improve, and then three.
        ([*FALLING[:FLAT_AT], FALLING[FLAT_AT - 1]], False),
        ([*FALLING[:FLAT_AT], *[FALLING[FLAT_AT - 1]] * 2], True),
        # An improvement counts if it is at least 1/500.
        ([*FALLING[:FLAT_AT], *(FALLING[FLAT_AT - 1] * f for f in (0.999, 0.9985))], True),
        ([*FALLING[:FLAT_AT], *(FALLING[FLAT_AT - 1] * f for f in (0.999, 0.9975))], False),
        # A clear rise is enough at once; a slight one is not.
        ([*FALLING[:FLAT_AT], FALLING[FLAT_AT - 1] * 1.011], True),
        ([*FALLING[:FLAT_AT], FALLING[FLAT_AT - 1] * 1.009], False),
        # Never among the first ten points.
        ([1.0] * 10, False),
        ([1.0] * 11, True),
        ([1.0, 2.0, *[3.0] * 8], False),
        # Errors may be negative or infinite.
        ([-1.0 - 0.1 * k for k in range(12)], False),
        ([*(-1.0 - 0.1 * k for k in range(12)), -2.1, -2.1], True),
        ([np.inf] * 11, True),
        ([np.inf] * 10, False),
        ([*[np.inf] * 11, 3.0], False),
    ],
)
def test_an_error_that_has_turned_by_hand(errors, turned):
    assert has_turned(errors) is turned


def test_of_equal_errors_the_one_at_the_largest_lambda_is_the_least():
    points = compute_path(make(), [1.0, 0.1, 0.01], SETTINGS).points
    for errors, least in [
        ([2.0, 1.0, 1.0 - 1e-15], 1),
        ([2.0, 1.0, 1.0 - 1e-6], 2),
        ([np.inf, np.inf, np.inf], 0),
        ([2.0, -1.0, -1.0 - 1e-15], 1),
    ]:
        chosen = [replace(point, error=e) for point, e in zip(points, errors, strict=True)]
        assert LambdaPath(chosen, PathEnd.ALL_SOLVED).least_error() == least


def test_generalised_cross_validation_by_hand():
    problem = make()
    model = problem.solve(0.01, SETTINGS)
    columns = sum(1 for block in model.kept().blocks for _ in block)
    assert columns > 2
    expected = 0.3 / (1.0 - (1 + columns) / 120) ** 2
    assert estimated_error(problem, model, 0.3) == pytest.approx(expected, rel=1e-12)
    # Equal weights, whatever their size, are no weights.
    same = make(weights=np.full(120, 7.0))
    assert estimated_error(same, model, 0.3) == pytest.approx(expected, rel=1e-12)
    # Rows of other weights count as the number of equal ones that estimate a mean as well.
    weights = np.random.default_rng(0).uniform(0.1, 3.0, 120)
    other = make(weights=weights)
    n = weights.sum() ** 2 / np.sum(weights**2)
    assert n < 120
    expected = 0.3 / (1.0 - (1 + columns) / n) ** 2
    assert estimated_error(other, model, 0.3) == pytest.approx(expected, rel=1e-12)


def test_a_model_with_as_many_columns_as_rows_is_expected_to_be_hopeless():
    problem = make(n=20)
    model = problem.solve(1e-7, SETTINGS)
    assert np.sum(model.widths[model.norms > 0.0]) >= 19
    assert estimated_error(problem, model, 1e-6) == np.inf


def test_akaike_by_hand():
    problem = make(loss=LogLoss())
    model = problem.solve(0.01, SETTINGS)
    columns = int(np.sum(model.widths[model.norms > 0.0]))
    assert columns > 2
    assert estimated_error(problem, model, 0.3) == pytest.approx(0.3 + (1 + columns) / 120)


def test_several_outputs_have_one_degree_of_freedom_less_than_classes():
    case = CASES["multinomial"]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3))
    y = case.target(np.column_stack([X[:, 0], -X[:, 0], X[:, 1]]), rng)
    problem = training_problem(X, y, "orthonormal", case.loss, degree=2)
    model = problem.solve(0.01, SETTINGS)
    columns = int(np.sum(model.widths[model.norms > 0.0]))
    assert columns > 1
    expected = 0.3 + 2 * (1 + columns) / 90
    assert estimated_error(problem, model, 0.3) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["grams", "kernels", "mixed"])
def test_gram_matrices_have_the_trace_of_their_smoother(kind):
    graph = make_graph(kind)
    rows = graph.read(rows_of(kind)[0])
    problem = TrainingProblem.make(graph, rows, NUMBERS, np.ones(N), SquaredError())
    model = problem.solve(0.01, SETTINGS)
    kept = [i for i, norm in enumerate(model.norms) if norm > 0.0]
    assert len(kept) > 1
    gram = sum(model.zeta[i] * KERNELS[model.nodes[i]](X, X) for i in kept)
    smoother = gram @ np.linalg.inv(gram + N * model.lam * np.eye(N))
    share = (1.0 + np.trace(smoother)) / N
    expected = 0.3 / (1.0 - share) ** 2
    assert estimated_error(problem, model, 0.3) == pytest.approx(expected, rel=1e-6)


def test_points_of_a_path_have_the_error_of_their_model():
    problem = make()
    path = compute_path(problem, lambda_grid(problem, 8, None), SETTINGS)
    for point in path.points:
        loss = problem.mean_loss(problem.prediction(point.model))
        assert point.error == pytest.approx(estimated_error(problem, point.model, loss))
    errors = [point.error for point in path.points]
    assert path.least_error() == errors.index(min(errors))


def test_the_estimate_is_near_the_error_on_new_rows():
    problem, new = make(n=400), make(n=4000, seed=1)
    path = compute_path(problem, lambda_grid(problem, 16, None), SETTINGS)
    for point in path.points:
        f = point.model.predict(problem.design, new.rows)
        y = new.center + new.scale * new.y
        error = 0.5 * np.mean((y - f) ** 2) / problem.scale**2
        assert point.error == pytest.approx(error, rel=0.25)


def test_a_path_ends_where_the_error_has_turned():
    problem = make(noise=1.0)
    lams = lambda_grid(problem, 40, None)
    assert lams[4] / lams[0] == pytest.approx(0.1)
    path = compute_path(problem, lams, SETTINGS, until_turned=True)
    assert path.end is PathEnd.TURNED
    errors = [point.error for point in path.points]
    assert [has_turned(errors[:k]) for k in range(1, len(path) + 1)] == [False] * (
        len(path) - 1
    ) + [True]
    assert path.least_error() < len(path) - 1
    longer = compute_path(problem, lams[: len(path) + 2], SETTINGS)
    assert longer.end is PathEnd.ALL_SOLVED
    assert len(longer) == len(path) + 2


@pytest.mark.parametrize("loss", [None, LogLoss()], ids=["squared error", "log loss"])
def test_a_path_without_time_is_a_constant(loss):
    problem = make(loss=loss)
    with time_limit(0.0):
        path = compute_path(problem, lambda_grid(problem, 5, None), SETTINGS)
    assert path.end is PathEnd.TIME
    assert len(path) == 1
    point = path.points[0]
    assert point.model.n_terms == 0
    assert point.model.certificate.reason is StopReason.SEARCH_TIME
    assert not point.model.certificate.certified
    assert point.explained == pytest.approx(0.0, abs=1e-6)
    mean = problem.prediction(point.model)
    np.testing.assert_allclose(mean, problem.null_prediction(1e-6), atol=1e-6)
    assert constant_model(problem, 0.1, replace(SETTINGS, certify="exact")).n_terms == 0


def test_a_path_goes_on_from_points_of_before():
    problem = make()
    lams = lambda_grid(problem, 8, None).tolist()
    whole = compute_path(problem, lams, SETTINGS)
    solver = PathSolver(problem, SETTINGS)
    for lam in lams[:4]:
        solver.advance(lam)
    resumed = PathSolver(problem, SETTINGS, solver.points)
    for lam in lams[4:]:
        resumed.advance(lam)
    assert len(resumed.points) == len(whole) == 8
    for ours, theirs in zip(resumed.points, whole.points, strict=True):
        np.testing.assert_array_equal(ours.model.coef, theirs.model.coef)
        assert ours.error == theirs.error
    assert resumed.end is None


def test_a_path_that_runs_out_of_time_keeps_its_points():
    problem = make()
    lams = lambda_grid(problem, 8, None).tolist()
    solver = PathSolver(problem, SETTINGS)
    solver.advance(lams[0])
    with time_limit(0.0):
        assert solver.advance(lams[1]) is None
    assert solver.end is PathEnd.TIME
    assert len(solver.points) == 1
