"""The table of a cross-validation: its scores by hand, and the choices it leads to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.designs import training_problem
from sklearn.model_selection import KFold

from hikernel.engines.machine import time_limit
from hikernel.losses import LogLoss
from hikernel.search import SearchSettings
from hikernel.selection import (
    CrossValidation,
    PathEnd,
    TrainingProblem,
    check_folds,
    compute_path,
    cross_validate,
    folds,
    lambda_grid,
    refit,
)
from hikernel.selection.scores import Choice

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


def table_of(scores, refits=(None,), alphas=None, terms=None, effects=None):
    scores = np.array(scores, dtype=float)
    n_alphas, n_folds = scores.shape[1:]
    return CrossValidation(
        lams=np.geomspace(1.0, 0.001, n_alphas) if alphas is None else np.array(alphas),
        refits=list(refits),
        scores=scores,
        terms=np.ones((n_alphas, n_folds)) if terms is None else np.array(terms, dtype=float),
        effects=np.ones(scores.shape) if effects is None else np.array(effects, dtype=float),
        end=PathEnd.ALL_SOLVED,
        work=1.0,
    )


@pytest.mark.parametrize("rule", ["best", "sparse"])
def test_scores_that_differ_by_rounding_are_ties(rule):
    # The best by one unit in the last place is the last, and the first is as good.
    scores = np.array([[-0.3, -0.2, -0.2, np.nextafter(-0.2, 0.0)]])[:, :, None] * np.ones(3)
    table = table_of(scores)
    assert getattr(table, rule)() == Choice(1, None)
    np.testing.assert_array_equal(table.results()["rank_test_score"], [4, 1, 1, 1])
    worse = table_of(scores - 1e-6 * np.array([0.0, 1.0, 0.0, 0.0])[:, None])  # no tie
    assert getattr(worse, rule)() == Choice(2, None)


def effects_by_hand(fitted):
    """Number of sets of variables that have a nonzero block of coefficients."""
    model, start, found = fitted.model, 0, set()
    for node, width in zip(model.nodes, model.widths, strict=True):
        if node and np.any(model.coef[start : start + width]):
            found.add(tuple(m for m, _ in node))
        start += width
    return len(found)


def test_scores_are_those_of_a_cross_validation_by_hand():
    problem = make()
    splits = folds_of(problem)
    score = MinusError(problem)
    names = [None, "ridge", "unpenalised", "variables"]
    table, path = cross_validate(problem, ALPHAS, SETTINGS, splits, names, score)
    assert table.scores.shape == table.effects.shape == (4, 4, 3)
    work = 0.0
    for k, (train, test) in enumerate(splits):
        # Bases are those of all rows (columns only: no target takes part), the fits are not.
        part = problem.subset(train)
        for j, point in enumerate(compute_path(part, ALPHAS, SETTINGS).points):
            assert table.terms[j, k] == point.model.n_terms
            work += point.model.work
            for i, name in enumerate(names):
                fitted = refit(name, part, point.model)
                assert table.scores[i, j, k] == pytest.approx(score(fitted, test), rel=1e-12)
                assert table.effects[i, j, k] == effects_by_hand(fitted)
    assert table.lams.tolist() == path.lams.tolist() == ALPHAS
    assert table.end is path.end is PathEnd.ALL_SOLVED
    alone = compute_path(problem, ALPHAS, SETTINGS)
    for ours, theirs in zip(path.points, alone.points, strict=True):
        np.testing.assert_array_equal(ours.model.coef, theirs.model.coef)
        work += theirs.model.work
    assert table.work > work > 0.0  # refits are work, too
    unfitted, _ = cross_validate(problem, ALPHAS, SETTINGS, splits, [None], score)
    assert unfitted.work == pytest.approx(work, rel=1e-12)


@pytest.mark.slow
def test_processes_change_nothing():
    problem = make()
    # More lambdas than are solved together, so that a fold goes on where another process was.
    lams = lambda_grid(problem, 13, 1e-4).tolist()
    arguments = (problem, lams, SETTINGS, folds_of(problem), [None, "variables"])
    alone, path = cross_validate(*arguments, MinusError(problem), n_jobs=1)
    together, same = cross_validate(*arguments, MinusError(problem), n_jobs=2)
    assert_same_tables(alone, together)
    for point, other in zip(path.points, same.points, strict=True):
        np.testing.assert_array_equal(point.model.coef, other.model.coef)


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
    splits = folds_of(problem)
    whole = len(compute_path(problem, alphas, SETTINGS))
    lengths = [whole] + [
        len(compute_path(problem.subset(train), alphas, SETTINGS)) for train, _ in splits
    ]
    assert min(lengths) < 12
    table, path = cross_validate(problem, alphas, SETTINGS, splits, [None], MinusError(problem))
    assert table.end is path.end is PathEnd.SATURATED
    assert len(path) == min(lengths)
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

    splits = folds_of(problem)[:1]
    table, _ = cross_validate(problem, ALPHAS, SETTINGS, splits, [None, "variables"], score)
    assert calls.count(None) == len(table.lams)
    assert calls.count("variables") < len(table.lams)


def test_a_refit_that_does_not_apply_has_no_score():
    problem = make(n=60)
    table, _ = cross_validate(
        problem,
        [1.0, 1e-4],
        SETTINGS,
        folds_of(problem),
        [None, "unpenalised"],
        MinusError(problem),
    )
    assert np.isnan(table.scores[1, 1]).any()
    np.testing.assert_array_equal(np.isnan(table.effects), np.isnan(table.scores))
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


@pytest.mark.parametrize(
    ("lost", "alike"),
    [
        ([0.4, 0.4, 0.4], True),  # 0.5 % of the error is always accepted
        ([0.6, 0.6, 0.6], False),
        ([0.9, 1.5, 2.1], False),  # mean 1.5, standard error 0.35
        ([-2.0, 1.5, 5.0], True),  # mean 1.5, standard error 2.02
        ([-3.0, 2.1, 7.2], False),  # more than 2 %, however uncertain
        ([np.nan, 0.0, 0.0], False),
    ],
)
def test_the_sparse_rule_by_hand(lost, alike):
    best = np.array([-99.0, -100.0, -101.0])
    scores = [[best - 10.0, best - lost, best]]
    effects = [[[1.0] * 3, [2.0] * 3, [3.0] * 3]]
    assert table_of(scores, effects=effects).sparse().position == (1 if alike else 2)
    # Scores up to one, such as R^2: the error is the distance from one, here 0.1.
    scores = [[line / 1000 + 1.0 for line in scores[0]]]
    assert table_of(scores, effects=effects).best().position == 2
    assert table_of(scores, effects=effects).sparse().position == (1 if alike else 2)


def test_the_sparse_rule_compares_refits_and_breaks_ties():
    best = np.array([-1.0, -1.0])
    scores = np.array([[best, best - 0.5], [best - 0.004, best - 0.003]])
    effects = np.array([[[5, 5], [1, 1]], [[2, 3], [3, 2]]])
    choice = table_of(scores, [None, "ridge"], effects=effects).sparse()
    # Both models with a refit have 2.5 effects, and the second has the better score.
    assert (choice.position, choice.refit) == (1, "ridge")
    effects[1, 0] = [2, 2]
    choice = table_of(scores, [None, "ridge"], effects=effects).sparse()
    assert (choice.position, choice.refit) == (0, "ridge")
    # Of equals, the larger alpha and then the first refit.
    same = table_of(np.full((2, 2, 2), -1.0), ["ridge", None]).sparse()
    assert (same.position, same.refit) == (0, "ridge")


@pytest.mark.parametrize(
    ("gain", "refit"),
    [
        ([3.0, 3.1, 3.2], "variables"),
        ([1.0, 3.0, 5.0], "variables"),  # mean 3, standard error 1.15
        ([0.0, 3.0, 6.0], "ridge"),  # standard error 1.73
        ([-1.0, -1.0, -1.0], "ridge"),
        ([np.nan, 9.0, 9.0], "ridge"),
    ],
)
def test_a_refit_on_variables_has_to_win_clearly(gain, refit):
    best = np.array([-99.0, -100.0, -101.0])
    scores = np.array([[best - 5.0], [best], [best + gain]])
    effects = np.array([[[9.0] * 3], [[5.0] * 3], [[1.0] * 3]])
    table = table_of(scores, [None, "ridge", "variables"], effects=effects)
    assert table.sparse().refit == refit
    # Where it is the only one with scores, there is nothing to compare it with.
    alone = table_of(scores[2:], ["variables"], effects=effects[2:])
    if np.all(np.isfinite(gain)):
        assert alone.sparse().refit == "variables"
        scores[:2] = np.nan
        table = table_of(scores, [None, "ridge", "variables"], effects=effects)
        assert table.sparse().refit == "variables"


@given(seed=st.integers(0, 10**6), n_folds=st.integers(1, 5))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_the_sparse_rule_against_all_pairs(seed, n_folds):
    rng = np.random.default_rng(seed)
    shape = (3, 6, n_folds)
    scores = rng.standard_normal(shape).round(1) * rng.choice([0.3, 1.0, 3.0]) - 100.0
    if seed % 2:
        scores = scores / 1000.0 + 1.0  # such as R^2, with errors near 0.1
    scores[rng.random(shape) < 0.03] = np.nan
    effects = rng.integers(1, 5, shape).astype(float)
    effects[np.isnan(scores)] = np.nan
    table = table_of(scores, [None, "ridge", "sparse"], effects=effects)
    if not np.any(np.isfinite(table.means)):
        return
    best = table.best()
    top = scores[table.refits.index(best.refit), best.position]
    allowed = []
    for i in range(3):
        for j in range(6):
            lost = top - scores[i, j]
            if np.isnan(lost).any():
                continue
            mean = sum(lost) / n_folds
            squares = sum((lost - mean) ** 2)
            error = (squares / (n_folds - 1) / n_folds) ** 0.5 if n_folds > 1 else 0.0
            if abs(mean - error) < 1e-9 < mean:
                return  # equal up to rounding: either is right
            size = 1.0 - top.mean() if seed % 2 else -top.mean()
            if mean <= 0.005 * size or (mean <= 0.02 * size and mean <= error):
                allowed.append((effects[i, j].mean(), mean, i, j))
    choice = table.sparse()
    i, j = table.refits.index(choice.refit), choice.position
    ours = (effects[i, j].mean(), (top - scores[i, j]).mean())
    assert (*ours, i, j) in allowed
    least = min(allowed)
    assert ours[0] == least[0]
    assert ours[1] == pytest.approx(least[1], abs=1e-9)


class Errors:
    """A fold with given errors, one row per lambda."""

    def __init__(self, errors, n_terms=1000):
        self.scores = (-np.array(errors, dtype=float)).tolist()
        self.terms = [n_terms] * len(self.scores)


def test_all_refits_have_turned_by_hand():
    falls = np.linspace(2.0, 1.0, 12)
    turned = [*np.linspace(2.0, 1.0, 9), 1.0, 1.0, 1.0]
    assert not folds.all_turned([Errors(np.c_[falls])])
    assert folds.all_turned([Errors(np.c_[turned])])
    # It is the mean over the folds that turns.
    assert folds.all_turned([Errors(np.c_[falls]), Errors(np.c_[2.0 * falls[::-1]])])
    assert not folds.all_turned([Errors(np.c_[turned]), Errors(np.c_[falls])])
    # Of two refits, one still falls, and reaches the best: 1.0 is less than 1.1 (six steps ahead).
    assert not folds.all_turned([Errors(np.c_[turned, falls + 0.1])])
    # Six more of its last steps (each 1/11 = 0.091) take it from 1.6 to 1.05, and from 1.5 to 0.95.
    assert folds.all_turned([Errors(np.c_[turned, falls + 0.6])])
    assert not folds.all_turned([Errors(np.c_[turned, falls + 0.5])])
    # One that falls faster and faster is waited for, however far it is.
    faster = 3.0 - 0.001 * np.arange(12.0) ** 2
    assert not folds.all_turned([Errors(np.c_[turned, faster])])
    assert folds.all_turned([Errors(np.c_[turned, 3.0 - 0.03 * np.sqrt(np.arange(12.0))])])
    # One that no longer applies is not waited for; one that never applied neither.
    gone = np.where(np.arange(12) < 10, falls, np.nan)
    assert folds.all_turned([Errors(np.c_[turned, gone + 0.1])])
    assert folds.all_turned([Errors(np.c_[turned, np.full(12, np.nan)])])
    # NaN on one fold is NaN: the refit does not apply.
    assert folds.all_turned([Errors(np.c_[turned, falls]), Errors(np.c_[turned, gone])])


def test_small_models_have_more_patience():
    turned = [*np.linspace(2.0, 1.0, 9), *[1.0] * 6]
    for n_terms, steps in ((1000, 2), (100, 2), (99, 4)):
        path = [Errors(np.c_[turned], n_terms)]
        found = [folds.all_turned(path, k) for k in range(1, 16)]
        assert found == [k > 8 + steps for k in range(1, 16)]


def test_not_among_the_first_ten_lambdas():
    turned = [*np.linspace(2.0, 1.0, 5), *[1.0] * 7]
    slow = np.linspace(3.0, 2.9, 12)
    paths = [Errors(np.c_[turned, slow])]
    assert [folds.all_turned(paths, k) for k in range(1, 13)] == [False] * 10 + [True] * 2
    assert folds.all_turned([Errors([[np.nan]] * 11)])
    assert not folds.all_turned([Errors([[np.nan]] * 10)])
    # Folds that are not equally long are compared as far as all have come.
    assert not folds.all_turned([Errors(np.c_[turned]), Errors(np.c_[turned[:10]])])


def assert_same_tables(one, two):
    assert one.lams.tolist() == two.lams.tolist()
    assert one.refits == two.refits
    assert one.end is two.end
    for name in ("scores", "terms", "effects"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1.0, 0.01])
def test_how_many_lambdas_are_solved_together_does_not_matter(monkeypatch, noise):
    problem = make(n=90, noise=noise)
    lams = lambda_grid(problem, 40, None).tolist()
    arguments = (problem, lams, SETTINGS, folds_of(problem), [None, "ridge"], MinusError(problem))
    table, path = cross_validate(*arguments)
    assert table.end is path.end is (PathEnd.TURNED if noise == 1.0 else PathEnd.SATURATED)
    assert 10 < len(path) < 40
    for together, easy in ((1, 10), (40, 40)):
        monkeypatch.setattr(folds, "_TOGETHER", together)
        monkeypatch.setattr(folds, "_EASY", easy)
        other, its_path = cross_validate(*arguments)
        assert_same_tables(table, other)
        assert len(its_path) == len(path)
    # Without looking whether the error has turned, the lambdas are those that there are.
    whole, _ = cross_validate(*arguments, until_turned=False)
    assert len(whole.lams) >= len(table.lams)
    np.testing.assert_array_equal(whole.scores[:, : len(table.lams)], table.scores)


def test_the_lambdas_end_where_the_first_of_all_paths_ends():
    problem = make(n=60)
    few = replace(SETTINGS, max_kernels=7)
    lams = lambda_grid(problem, 12, 1e-4).tolist()
    splits = folds_of(problem)
    seen = []
    table, path = cross_validate(
        problem, lams, few, splits, [None], MinusError(problem), callback=seen.append
    )
    lengths = [len(compute_path(problem.subset(train), lams, few)) for train, _ in splits]
    assert len(path) == min(*lengths, len(compute_path(problem, lams, few))) < 12
    assert table.end is path.end is PathEnd.MAX_KERNELS
    assert [point.model.lam for point in seen[: len(path)]] == path.lams.tolist()


def test_without_time_for_a_model_nothing_is_compared():
    problem = make()
    arguments = (problem, ALPHAS, SETTINGS, folds_of(problem), [None, "ridge"], MinusError(problem))
    with time_limit(0.0):
        table, path = cross_validate(*arguments)
    assert table.scores.shape == table.effects.shape == (2, 0, 3)
    assert table.terms.shape == (0, 3)
    assert table.end is path.end is PathEnd.TIME
    assert len(path) == 1
    assert path.points[0].model.n_terms == 0
    assert {len(column) for column in table.results().values()} == {0}


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
    effects = [[[1, 2], [3, 4]], [[2, 2], [5, np.nan]]]
    table = table_of(scores, [None, "ridge"], [0.5, 0.1], [[2, 4], [6, 7]], effects)
    results = table.results()
    assert list(results) == [
        "alpha", "refit", "mean_terms", "mean_effects", "mean_test_score", "std_test_score",
        "rank_test_score", "split0_test_score", "split1_test_score",
    ]  # fmt: skip
    assert {len(column) for column in results.values()} == {4}
    assert results["alpha"].tolist() == [0.5, 0.1, 0.5, 0.1]
    assert results["refit"].tolist() == ["None", "None", "ridge", "ridge"]
    assert results["mean_terms"].tolist() == [3.0, 6.5, 3.0, 6.5]
    np.testing.assert_array_equal(results["mean_effects"], [1.5, 3.5, 2.0, np.nan])
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
