"""Steps beside smooth functions: found where functions jump, left out where they do not."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from explain.reader import evaluate_text
from oracles.formulas import WrittenFormula

from hikernel import (
    HKLClassifier,
    HKLClassifierCV,
    HKLRegressor,
    HKLRegressorCV,
    load,
    stability_selection,
)
from hikernel.bases import Branches, OrthonormalPolynomial, Steps
from hikernel.consistency import diagnose
from hikernel.errors import MemoryPlanError
from hikernel.estimators import comparison
from hikernel.selection import trial, trial_gain

QUICK = {"n_alphas": 8, "cv": 3, "eps": 1e-3}


def calls(n=400, seed=0):
    """A jump, a product of a jump and a category, and a line."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "carat": rng.gamma(2.0, 0.4, n).round(2),
            "calls": rng.integers(0, 8, n),
            "plan": rng.choice(["yes", "no", "maybe"], n),
        }
    )
    f = 2.0 * (X["carat"] > 1) + 1.5 * ((X["calls"] > 3) & (X["plan"] == "yes")) + 0.3 * X["carat"]
    return X, f, f + 0.1 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def fitted():
    X, _, y = calls()
    return HKLRegressor(basis="auto+steps").fit(X, y)


def test_jumps_are_found_named_and_proven(fitted):
    terms = fitted.terms_.set_index("term")
    assert fitted.certificate_.certified
    assert terms.loc["calls > 3 * plan", "share"] > 0.05
    assert terms.loc["calls > 3 * plan", "degree"] == 2
    assert terms.loc["carat > 1", "share"] > 0.5
    assert set(fitted.effects_["effect"]) >= {"carat", "calls", "plan", "calls * plan"}
    assert fitted.bases_["basis"].tolist() == ["asinh+steps", "orthonormal+steps", "categorical"]
    assert "and steps" in fitted.bases_["why"][0]


def test_steps_beat_smooth_functions_where_the_truth_jumps(fitted):
    X, f, _ = calls(seed=1)
    smooth = HKLRegressor().fit(*calls()[::2])
    error = np.mean((fitted.predict(X) - f) ** 2)
    assert error < 0.5 * np.mean((smooth.predict(X) - f) ** 2)


def test_a_formula_collects_the_steps_of_a_variable(fitted):
    X, _, _ = calls(seed=2)
    text = fitted.formula(digits=8)
    assert " + s(carat) " in text.replace("\n", " ")
    lines = text.replace("\n      ", " ").splitlines()
    line = next(line for line in lines if line.startswith("  s(carat): "))
    assert " up to 1, " in line
    assert line.endswith(" above")
    # Steps times categories are tables of values.
    assert "\n  f(calls, plan)" in text
    assert re.search(r"\n    plan \\ calls +up to 1 +1 to 3 .* above \d+\n", text)
    # The pieces of s(carat) are the sum of its step terms.
    nodes = [node for node in fitted.nodes_ if len(node) == 1 and node[0][0] == 0]
    steps = [n for n in nodes if n[0][1] > 4]
    names = fitted._design.terms(steps)["term"]
    effects = fitted.effects(X, by="term")[names].sum(axis=1)
    pieces = [part.split(" up to ") for part in line.split(": ")[1].split(", ")]
    ends = [float(end) for _, end in pieces[:-1]]
    values = [float(value) for value, _ in pieces[:-1]] + [float(pieces[-1][0].split()[0])]
    written = np.array(values)[np.searchsorted(ends, X["carat"])]
    np.testing.assert_allclose(written, effects, atol=1e-6)


def test_the_text_of_a_formula_with_steps_gives_the_prediction(fitted):
    X, _, _ = calls(seed=2)
    rows, names = fitted.columns_.transform(X), list(fitted.columns_.names)
    labels = {
        m: dict(enumerate(known))
        for m, known in enumerate(fitted.columns_.categories)
        if known is not None
    }
    values = evaluate_text(fitted.formula(digits=15), rows, names, labels)["f"]
    np.testing.assert_allclose(values, fitted.predict(X), rtol=1e-9)
    written = WrittenFormula(fitted._model, fitted._design)
    np.testing.assert_allclose(written.evaluate(rows), fitted.predict(X), rtol=1e-11)


def test_files_keep_steps(fitted, tmp_path):
    X, _, _ = calls(seed=3)
    fitted.save(tmp_path / "model.hik")
    again = load(tmp_path / "model.hik")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.graph_ == fitted.graph_
    assert again.formula() == fitted.formula()


def test_bases_with_steps_by_name_and_column():
    X, _, y = calls(150)
    only = HKLRegressor(1e-3, basis="steps").fit(X, y)
    assert only.bases_["basis"].tolist() == ["steps", "steps", "categorical"]
    some = HKLRegressor(1e-3, basis={"calls": "auto+steps", "plan": "auto+steps"}).fit(X, y)
    assert some.bases_["basis"].tolist() == ["asinh", "orthonormal+steps", "categorical"]
    given = HKLRegressor(1e-3, basis=Branches((OrthonormalPolynomial(2), Steps(2)))).fit(X, y)
    assert given.bases_["levels"].tolist() == [4, 4, 1]


def test_columns_of_two_values_have_no_steps():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 3)).astype(float)
    model = HKLRegressor(1e-3, basis="auto+steps").fit(X, X[:, 0] + X[:, 1] * X[:, 2])
    assert model.bases_["basis"].tolist() == ["rank"] * 3


def test_missing_values_have_no_steps():
    X, _, y = calls()
    X.loc[::7, "carat"] = np.nan
    model = HKLRegressor(1e-4, basis="auto+steps").fit(X, y)
    assert "an effect is 0 where one of its variables is missing" in model.formula()
    assert np.all(np.isfinite(model.predict(X)))


def test_classes_with_steps():
    X, f, _ = calls()
    model = HKLClassifier(basis="auto+steps").fit(X, f > 1.0)
    assert model.score(X, f > 1.0) > 0.97


@pytest.mark.slow
def test_cross_validation_tries_steps_and_takes_them_where_they_pay():
    X, _, y = calls()
    model = HKLRegressorCV().fit(X, y)
    assert model.bases_["basis"].tolist()[:2] == ["asinh+jumps", "orthonormal+jumps"]
    test, truth, _ = calls(seed=5)
    without = HKLRegressorCV(basis={}).fit(X, y)
    assert without.bases_["basis"].tolist()[:2] == ["asinh", "orthonormal"]
    errors = [np.mean((m.predict(test) - truth) ** 2) for m in (model, without)]
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.slow
def test_cross_validation_leaves_steps_out_of_smooth_models():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 4))
    y = X[:, 0] ** 2 + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(300)
    model = HKLRegressorCV().fit(X, y)
    plain = HKLRegressorCV(basis={}).fit(X, y)
    assert set(model.bases_["basis"]) == {"orthonormal"}
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.alpha_ == plain.alpha_


def test_a_trial_is_limited_by_work(monkeypatch):
    X, _, y = calls(200)
    seen = []
    path = trial.FoldPath.advance

    def counted(self, problem, settings, lams):
        path(self, problem, settings, lams)
        seen.append(self.work)

    monkeypatch.setattr(trial.FoldPath, "advance", counted)
    monkeypatch.setattr(trial, "_MOST_WORK", 0.0)
    verdicts = []
    monkeypatch.setattr(
        "hikernel.estimators.comparison.trial_gain",
        lambda *args: seen.clear() or verdicts.append(trial_gain(*args)) or verdicts[-1],
    )
    HKLRegressorCV(certify="none").fit(X, y)
    assert len(seen) == 1
    assert len(verdicts) == 2


def test_stability_counts_steps_without_their_cuts():
    X, _, y = calls()
    found = stability_selection(HKLRegressor(1e-3, basis="auto+steps"), X, y, n_subsamples=4)
    terms = found.terms.set_index("term")
    assert terms.loc["steps(calls) * plan", "frequency"] == 1.0
    assert terms.loc["steps(carat)", "degree"] == 1
    assert not any(">" in term for term in terms.index)


def test_diagnosis_of_a_model_with_steps():
    X, _, y = calls()
    model = HKLRegressor(3e-3, basis="auto+steps", refit="ridge", degree=2).fit(X, y)
    report = diagnose(model, X, max_order=1, max_degree=2)
    assert report.n_graph == model.graph_.n_vertices
    assert report.n_nodes >= 1 + 2 * 4 + 1  # each number has two levels in two branches


def test_the_decomposition_of_a_model_with_steps():
    X, _, _ = calls()
    model = HKLRegressor(1e-3, basis="auto+steps").fit(*calls()[::2])
    anova = model.anova(X)
    assert set(anova.variables_frame()["variable"]) >= {"carat", "calls", "plan"}
    parts = anova.effects(X)
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(X), atol=1e-9)


@pytest.mark.parametrize("refit", ["ridge", "sparse", "variables"])
@pytest.mark.parametrize("basis", ["auto", "auto+steps"])
def test_files_keep_every_refit(refit, basis, tmp_path):
    X, _, y = calls(200)
    model = HKLRegressor(1e-3, basis=basis, refit=refit).fit(X, y)
    model.save(tmp_path / "model.hik")
    again = load(tmp_path / "model.hik")
    pd.testing.assert_frame_equal(again.terms_, model.terms_)
    pd.testing.assert_frame_equal(again.effects_, model.effects_)
    pd.testing.assert_frame_equal(again.effects(X), model.effects(X))
    assert again.formula() == model.formula()


def test_the_names_of_effects_are_quoted_like_those_of_terms():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(100, 2)), columns=["age", "age^2"])
    model = HKLRegressor(0.1, degree=1).fit(X, X["age^2"])
    assert model.effects_["effect"].tolist() == model.terms_["term"].tolist() == ["'age^2'"]


def test_very_unequal_weights():
    rng = np.random.default_rng(0)
    x = np.r_[rng.integers(0, 4, 140), rng.integers(4, 8, 10)].astype(float)[:, None]
    weights = np.where(x[:, 0] > 3, 1e-16, 1.0)
    model = HKLRegressorCV(certify="none", **QUICK).fit(x, x[:, 0], sample_weight=weights)
    assert np.all(np.isfinite(model.predict(x)))


def payoff(model, X, y):
    """A score above one, and the larger the better."""
    return 1.0 / np.mean((model.predict(X) - y) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_scores_above_one_do_not_turn_the_comparison_round(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (80, 6))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.02 * rng.standard_normal(80)
    settings = {"scoring": payoff, "cv": 3, "n_alphas": 12, "certify": "none"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the last alpha may be the best of so few
        model = HKLRegressorCV(**settings).fit(X, y)
        plain = HKLRegressorCV(basis={}, **settings).fit(X, y)
    assert model.best_score_ >= plain.best_score_


def test_a_perfect_score_needs_no_steps():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (90, 2))
    X[:, 0] += np.sign(X[:, 0])
    model = HKLClassifierCV(scoring="accuracy", certify="none", **QUICK).fit(X, X[:, 0] > 0)
    assert set(model.bases_["basis"]) == {"orthonormal"}


def test_no_memory_for_a_trial_is_no_error(monkeypatch):
    X, _, y = calls(200)
    honest = comparison.CrossValidatedEstimator._training_problem
    asked = []

    def short(self, data, settings, **folds):
        asked.append(data.source.basis)
        if data.source.basis == "auto+steps":
            raise MemoryPlanError("too much")
        return honest(self, data, settings, **folds)

    monkeypatch.setattr(comparison.CrossValidatedEstimator, "_training_problem", short)
    with pytest.warns(UserWarning, match=r"were not tried\. too much"):
        model = HKLRegressorCV(certify="none", **QUICK).fit(X, y)
    assert asked == ["auto", "auto+jumps", "auto+steps"]
    assert "steps" not in "".join(model.bases_["basis"])
