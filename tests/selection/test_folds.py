"""The table of a cross-validation: its scores by hand, and the choices it leads to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from oracles.designs import training_problem
from sklearn.model_selection import KFold

from hikernel.losses import LogLoss
from hikernel.search import SearchSettings
from hikernel.selection import (
    CrossValidation,
    TrainingProblem,
    check_folds,
    compute_path,
    cross_validate,
    refit,
)

SETTINGS = SearchSettings(certify="none")
ALPHAS = [1.0, 0.1, 0.01, 0.001]


@dataclass(frozen=True)
class MinusError:
    """Minus the mean squared error, of a kind that other processes can be sent."""

    problem: TrainingProblem

    def __call__(self, fitted, rows):
        problem = self.problem
        y = problem.center + problem.scale * problem.y[rows]
        return -float(np.mean((y - fitted.model.predict(fitted.design, problem.rows[rows])) ** 2))


def make(n=120, p=4, seed=0, noise=0.3, loss=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = X[:, 0] + 2.0 * X[:, 0] * X[:, 1] + noise * rng.standard_normal(n)
    if loss is not None:
        y = np.where(y > 0.0, 1.0, -1.0)
    return training_problem(X, y, "orthonormal", loss, degree=3)


def folds_of(problem, k=3):
    return list(KFold(k, shuffle=True, random_state=0).split(problem.rows))


def table_of(scores, refits=(None,), alphas=None, terms=None):
    scores = np.array(scores, dtype=float)
    n_alphas, n_folds = scores.shape[1:]
    return CrossValidation(
        lams=np.geomspace(1.0, 0.001, n_alphas) if alphas is None else np.array(alphas),
        refits=list(refits),
        scores=scores,
        terms=np.ones((n_alphas, n_folds)) if terms is None else np.array(terms, dtype=float),
    )


def test_scores_are_those_of_a_cross_validation_by_hand():
    problem = make()
    folds = folds_of(problem)
    score = MinusError(problem)
    names = [None, "ridge", "unpenalised", "variables"]
    table = cross_validate(problem, ALPHAS, SETTINGS, folds, names, score)
    assert table.scores.shape == (4, 4, 3)
    for k, (train, test) in enumerate(folds):
        # Bases are those of all rows (columns only: no target takes part), the fits are not.
        part = problem.subset(train)
        path = compute_path(part, ALPHAS, SETTINGS)
        for j, point in enumerate(path.points):
            assert table.terms[j, k] == point.model.n_terms
            for i, name in enumerate(names):
                assert table.scores[i, j, k] == pytest.approx(
                    score(refit(name, part, point.model), test), rel=1e-12
                )
    assert table.lams.tolist() == ALPHAS


@pytest.mark.slow
def test_processes_change_nothing():
    problem = make()
    arguments = (problem, ALPHAS, SETTINGS, folds_of(problem), [None, "variables"])
    alone = cross_validate(*arguments, MinusError(problem), n_jobs=1)
    together = cross_validate(*arguments, MinusError(problem), n_jobs=2)
    np.testing.assert_array_equal(alone.scores, together.scores)
    np.testing.assert_array_equal(alone.terms, together.terms)


def test_held_out_rows_do_not_take_part():
    problem = make()
    train, test = folds_of(problem)[0]
    y = problem.y.copy()
    y[test] = 1e3
    changed = replace(problem, y=y)
    seen = []

    def score(fitted, rows):
        seen.append(fitted.model.coef)
        return 0.0

    for this in (problem, changed):
        cross_validate(this, [0.01], SETTINGS, [(train, test)], [None, "variables"], score)
    np.testing.assert_array_equal(seen[0], seen[2])
    np.testing.assert_array_equal(seen[1], seen[3])


def test_a_fold_that_ends_early_shortens_the_table():
    problem = make(n=200, noise=0.01)
    alphas = np.geomspace(1.0, 1e-8, 12).tolist()
    folds = folds_of(problem)
    lengths = [
        len(compute_path(problem.subset(train), alphas, SETTINGS).points) for train, _ in folds
    ]
    assert min(lengths) < 12
    table = cross_validate(problem, alphas, SETTINGS, folds, [None], MinusError(problem))
    assert table.lams.tolist() == alphas[: min(lengths)]
    assert table.scores.shape == (1, min(lengths), 3)
    assert table.terms.shape == (min(lengths), 3)
    assert not np.isnan(table.scores).any()


def test_a_refit_is_not_repeated_for_the_same_variables():
    problem = make()
    calls = []

    def score(fitted, rows):
        calls.append(fitted.refit)
        return 0.0

    folds = folds_of(problem)[:1]
    table = cross_validate(problem, ALPHAS, SETTINGS, folds, [None, "variables"], score)
    assert calls.count(None) == len(table.lams)
    assert calls.count("variables") < len(table.lams)


def test_a_refit_that_does_not_apply_has_no_score():
    problem = make(n=60)
    table = cross_validate(
        problem,
        [1.0, 1e-4],
        SETTINGS,
        folds_of(problem),
        [None, "unpenalised"],
        MinusError(problem),
    )
    assert np.isnan(table.scores[1, 1]).any()
    assert table.means[1, 1] == -np.inf
    assert np.isfinite(table.means[0]).all()
    assert np.isnan(table.results()["mean_test_score"]).sum() == np.sum(np.isinf(table.means))


def test_best_of_a_table():
    table = table_of([[[1, 1], [3, 3], [2, 2]], [[0, 0], [2, 4.5], [3, 3]]], [None, "ridge"])
    choice = table.best()
    assert (choice.position, choice.refit) == (1, "ridge")
    # Of equals the larger alpha, whatever the refit; at the same alpha the first refit.
    table = table_of([[[1], [2], [3]], [[1], [3], [3]]], [None, "ridge"])
    assert table.best().position == 1
    table = table_of([[[1], [3]], [[1], [3]]], [None, "ridge"])
    assert table.best().refit is None


def test_one_standard_error_by_hand():
    # Best mean 3 at the third alpha, from folds 2, 3, 4: standard error 1 / sqrt(3) = 0.577.
    scores = [[[2.0, 2.0, 2.0], [2.5, 2.5, 2.5], [2.0, 3.0, 4.0], [2.9, 2.9, 2.9]]]
    assert table_of(scores).best().position == 2
    assert table_of(scores).one_standard_error().position == 1
    # Only within the refit that is best.
    other = [[[2.9, 2.9, 2.9]] * 4]
    choice = table_of(scores + other, ["variables", None]).one_standard_error()
    assert (choice.position, choice.refit) == (1, "variables")
    # One fold has no standard error, and scores that are missing are not within anything.
    assert table_of([[[1.0], [2.0], [1.99]]]).one_standard_error().position == 1
    scores[0][1][0] = np.nan
    assert table_of(scores).one_standard_error().position == 2


def test_missing_scores_are_never_chosen():
    table = table_of([[[np.nan, 9.0], [1.0, 1.0]]])
    assert table.best().position == 1
    assert table.results()["rank_test_score"].tolist() == [2, 1]
    with pytest.raises(ValueError, match="scoring returned NaN or infinity"):
        table_of([[[np.nan, 9.0], [-np.inf, 1.0]]]).best()
    with pytest.raises(ValueError, match=r"refit='unpenalised' does not apply.*refit=\"auto\""):
        table_of([[[np.nan, 9.0]]], ["unpenalised"]).one_standard_error()


def test_results_are_a_table():
    scores = [[[1, 2], [3, 5]], [[3, 5], [0, np.nan]]]
    table = table_of(scores, [None, "ridge"], alphas=[0.5, 0.1], terms=[[2, 4], [6, 7]])
    results = table.results()
    assert list(results) == [
        "alpha", "refit", "mean_terms", "mean_test_score", "std_test_score", "rank_test_score",
        "split0_test_score", "split1_test_score",
    ]  # fmt: skip
    assert {len(column) for column in results.values()} == {4}
    assert results["alpha"].tolist() == [0.5, 0.1, 0.5, 0.1]
    assert results["refit"].tolist() == ["None", "None", "ridge", "ridge"]
    assert results["mean_terms"].tolist() == [3.0, 6.5, 3.0, 6.5]
    np.testing.assert_array_equal(results["mean_test_score"], [1.5, 4.0, 4.0, np.nan])
    np.testing.assert_array_equal(results["std_test_score"], [0.5, 1.0, 1.0, np.nan])
    assert results["rank_test_score"].tolist() == [3, 1, 1, 4]
    np.testing.assert_array_equal(results["split1_test_score"], [2, 5, 5, np.nan])


def test_folds_that_cannot_work_are_refused():
    problem = make()
    rows = np.arange(120)
    with pytest.raises(ValueError, match="no folds"):
        check_folds(problem, [])
    with pytest.raises(ValueError, match="Fold 0 of cv has no test rows"):
        check_folds(problem, [(rows, rows[:0])])
    with pytest.raises(ValueError, match="Fold 1 of cv has no training rows"):
        check_folds(problem, [(rows[:60], rows[60:]), (rows[:0], rows)])
    labels = make(loss=LogLoss())
    one_class = np.flatnonzero(labels.y > 0.0)
    with pytest.raises(ValueError, match=r"fold 0 .*one only.*stratified"):
        check_folds(labels, [(one_class, rows)])
