"""Estimators with strange tables: each fit ends in a sound model or in one clear sentence."""

from __future__ import annotations

import inspect
import os
import tempfile

import numpy as np
import pandas as pd

import hikernel
from fuzz.tables import size, some, table, target, weights
from fuzz.verdict import Outcome, attempt, check_certificate, require
from hikernel import bases, losses

__all__ = ["run"]

JUNK = (
    None,
    "",
    "magic",
    0,
    -1,
    1.5,
    np.nan,
    np.inf,
    True,
    [],
    {},
    (),
    object(),
    b"x",
    10**400,
    1e-320,
)
BASES = (
    "auto", "auto", "auto", "auto+steps", "polynomial", "orthonormal", "asinh", "rank", "hermite",
    "gaussian", "kernel_pca", "anova", "spline", "steps", "categorical", bases.Gaussian(degree=2),
    bases.Periodic(1.0, 2), bases.Branches((bases.OrthonormalPolynomial(2), bases.Steps(2))),
    bases.KernelPCA("laplace", degree=2),
)  # fmt: skip
REGRESSION = (*losses.REGRESSION, losses.Quantile(0.9), losses.Huber(1e-3), losses.Tweedie(1.2))
COMMON = {
    "basis": BASES,
    "degree": (1, 2, 3, 4, 8, np.int64(2)),
    "max_order": (None, 1, 2, 3),
    "interactions": (None, "none", [(0, 1)], {"forbid": [(0, "*")]}, {"allow": [("*", "*")]}),
    "weight_base": ("auto", 1.0, 2.0, 4.0, 0.5, 100.0),
    "root_weight": (1.0, 0.1, 1e-6, 1e6),
    "search": ("lookahead", "lookahead", "paper"),
    "max_kernels": (1, 2, 20, 200),
    "tol": (1e-2, 1e-4, 0.3),
    "certify": ("auto", "exact", "statistical", "none"),
    "random_state": (0, None, 2**32 - 1),
}
UNUSUAL = {
    "categorical": (None, [0], ["a"], [True]),
    "ordered": (None, [0], {"a": ["x", "y"]}),
    "monotone": ({0: 1}, {0: -1}, {"a": "increasing"}, {0: 3}, 4),
    "time_budget": (1e-9, 10.0),
    "engine": ("numpy", "auto", "torch"),
}
ALPHAS = ("auto", 1e-6, 1e-3, 1e-2, 0.1, 0.1, 1.0, 100.0, 1e10)
REFITS = (None, None, "ridge", "sparse", "unpenalised", "variables")


def run(rng):
    """Run one case: fit, and ask the model for all it knows."""
    outcome = Outcome()
    tame = rng.random() < 0.6
    n, p = size(rng, tame)
    kind = some(rng, ("numbers", "numbers", "numbers", "labels", "labels", "times"))
    X, outcome.table = table(rng, n, p, tame)
    y, outcome.target = target(rng, n, kind, tame)
    sample_weight = weights(rng, n, tame)
    estimator = _estimator(rng, kind, p, tame)
    outcome.estimator = repr(estimator)
    extra = {} if sample_weight is None else {"sample_weight": sample_weight}
    if kind != "times" and rng.random() < 0.05:
        name = some(rng, ("offset", "exposure") if kind == "numbers" else ("offset",))
        extra[name] = some(rng, (np.ones(n), rng.standard_normal(n), np.full(n, 1e300), "a", 1.0))
    with attempt(outcome):
        estimator.fit(X, y, **extra)
    if outcome.kind == "model":
        _examine(rng, estimator, X, y, sample_weight, extra, outcome)
    return outcome


def _estimator(rng, kind, p, tame):
    """Return an estimator with parameters that are mostly valid."""
    chosen = {"max_kernels": 40}  # larger models are not small cases
    for name, values in COMMON.items():
        if rng.random() < 0.15:
            chosen[name] = some(rng, values)
    if not tame and rng.random() < 0.3:
        name = some(rng, (*COMMON, *UNUSUAL))
        chosen[name] = some(rng, JUNK if rng.random() < 0.6 else UNUSUAL.get(name, JUNK))
    if p > 100:  # more is not small any more
        chosen = {"max_order": 1, "degree": 2, "certify": "none"}
    cross_validated = rng.random() < 0.12
    if cross_validated:
        chosen |= {"cv": some(rng, (2, 2, 3, 5)), "n_alphas": some(rng, (1, 2, 4))}
        chosen |= {"rule": some(rng, ("sparse", "best", "one_se"))}
    else:
        chosen["alpha"] = some(rng, ALPHAS) if tame or rng.random() < 0.95 else some(rng, JUNK)
        chosen["refit"] = some(rng, REFITS)
    if kind == "numbers":
        if rng.random() < 0.4:
            chosen["loss"] = some(rng, REGRESSION)
        cls = hikernel.HKLRegressorCV if cross_validated else hikernel.HKLRegressor
    elif kind == "labels":
        if rng.random() < 0.5:
            chosen["loss"] = some(rng, losses.CLASSIFICATION)
        if rng.random() < 0.2:
            chosen["class_weight"] = some(rng, ("balanced", {0: 2.0}, {"a": 1e-300}, "even"))
        cls = hikernel.HKLClassifierCV if cross_validated else hikernel.HKLClassifier
    else:
        cls = hikernel.HKLSurvivalCV if cross_validated else hikernel.HKLSurvival
    known = inspect.signature(cls).parameters
    return cls(**{name: value for name, value in chosen.items() if name in known})


def _examine(rng, model, X, y, sample_weight, extra, outcome):
    """Raise a FuzzError unless a fitted model is sound."""
    check_certificate(model.certificate_)
    n = len(model.dual_coef_)
    f = _predicted(model, X, outcome, extra)
    require(outcome.kind == "model", f"fitted, and no prediction: {outcome.sentence}")
    require(len(f) == n, f"{len(f)} predictions for {n} rows")
    _check_loss(model, f, y, sample_weight, extra)
    told = Outcome()
    if rng.random() < 0.2:
        _round_trip(model, X, f, extra, told)
    if rng.random() < 0.3:
        for ask in (str, lambda m: m.formula(), lambda m: m.summary(), lambda m: m.hull_):
            with attempt(told):
                ask(model)
    if rng.random() < 0.2:
        asks = (
            lambda: model.effects(X), lambda: model.anova(X), lambda: model.shap_values(X),
            lambda: model.explain(X[:1]), lambda: model.score(X, y), lambda: model.transform(X),
        )  # fmt: skip
        with attempt(told):
            some(rng, asks)()
    if rng.random() < 0.5:
        new = _new_rows(rng, X)
        _predicted(model, new, told, {})
    outcome.warnings += told.warnings


def _predicted(model, X, outcome, extra):
    """Return predictions, which must be finite."""
    given = {name: value for name, value in extra.items() if name != "sample_weight"}
    f = None
    with attempt(outcome):
        f = model.predict(X, **given)
        if hasattr(model, "classes_"):
            require(np.isin(f, model.classes_).all(), "labels that are no classes")
            f = model.decision_function(X, **given)
            if model.loss_.name == "log_loss":
                shares = model.predict_proba(X, **given)
                require(np.allclose(shares.sum(axis=1), 1.0), "probabilities of another sum")
        require(np.isfinite(f).all(), f"predictions that are not finite: {f[~np.isfinite(f)][:3]}")
    return f


def _check_loss(model, f, y, sample_weight, extra):
    """The objective has the loss of the model as a part, and is no more than that of a constant."""
    plain = model.loss_.name == "squared_error" and model.certificate_.refit is None
    if not plain or set(extra) - {"sample_weight"}:
        return
    y = np.asarray(y, dtype=float).ravel()
    w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float).ravel()
    w = np.broadcast_to(w, y.shape) / w.max()
    w = w / w.sum()
    with np.errstate(over="ignore"):
        part, constant = 0.5 * w @ (y - f) ** 2, 0.5 * w @ (y - w @ y) ** 2
    objective = model.certificate_.objective
    # y may be a small number on a large one, whose digits are lost in f
    with np.errstate(over="ignore"):
        rounding = (1e-12 * np.abs(y).max()) ** 2 + 1e-6 * objective
    require(part <= objective + rounding, f"loss {part!r} above the objective {objective!r}")
    require(
        objective <= constant * (1.0 + 1e-6) + rounding,
        f"objective {objective!r} above {constant!r}, that of a constant",
    )


def _round_trip(model, X, f, extra, outcome):
    """What is saved and loaded predicts the same."""
    with tempfile.TemporaryDirectory() as folder, attempt(outcome):
        path = os.path.join(folder, "model.hik")
        model.save(path)
        again = hikernel.load(path)
        given = {name: value for name, value in extra.items() if name != "sample_weight"}
        if hasattr(model, "classes_"):
            found = again.decision_function(X, **given)
        else:
            found = again.predict(X, **given)
        require(np.array_equal(found, f), "another prediction after loading")
        check_certificate(again.certificate_)


def _new_rows(rng, X):
    """Return other rows, or something that is none."""
    how = rng.random()
    if isinstance(X, pd.DataFrame) and how < 0.7:
        new = X.iloc[::-1].copy()
        if new.shape[1] and how < 0.5:
            column = int(rng.integers(new.shape[1]))
            values = [
                some(rng, (1e300, "new", None, np.nan, -5, True, np.inf)) for _ in range(len(new))
            ]
            parts = [new.iloc[:, m] for m in range(new.shape[1])]
            parts[column] = pd.Series(values, index=new.index, dtype=object if how < 0.4 else None)
            names = new.columns
            new = pd.concat([part.reset_index(drop=True) for part in parts], axis=1)
            new.columns = names
        return new
    if isinstance(X, np.ndarray) and X.ndim == 2 and how < 0.8:
        if X.dtype.kind == "f":
            factor = some(rng, (1.0, -1.0, 1e10, 1e300, 0.0, np.nan))
            with np.errstate(all="ignore"):
                return X * factor
        return X[:0] if how < 0.1 else X[:, :1]
    return some(rng, (X, None, [], [[]], "rows", np.zeros((2, 77)), [["a"]], 5))
