"""HKL and the methods beside which it is shown, each with a choice of its own settings.

Every method is a function of a training frame, its target, whether that holds classes, and a seed,
and returns a :class:`encoding.Fitted`. Missing values and text are passed on as they are where the
method reads them itself, and otherwise become numbers (:class:`encoding.Numbers`). Settings are
chosen within the training rows alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from encoding import Fitted, Numbers, is_number, single_effects
from kernel_peers import gaussian_process, kernel_ridge
from polynomial_peers import adelie, skglm
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from hikernel import HKLClassifierCV, HKLRegressorCV

__all__ = ["OURS", "PEERS", "Method", "ebm", "hkl", "lightgbm", "linear"]

OURS = "HKL"

Method = Callable[[pd.DataFrame, np.ndarray, bool, int], Fitted]
LEAVES = (4, 8, 16, 31)
ROWS_IN_A_LEAF = (10, 40)
ROUNDS, PATIENCE, RATE = 1500, 50, 0.05
BOOSTING_FOLDS = 3


def hkl(X: pd.DataFrame, y: np.ndarray, classes: bool, seed: int, **parameters: Any) -> Fitted:
    """Fit HKL by cross-validation with all defaults but ``parameters``; it uses no seed."""
    model = (HKLClassifierCV if classes else HKLRegressorCV)(**parameters).fit(X, y)
    answer = model.predict_proba if classes else model.predict
    effects = [frozenset(map(str, names)) for names in model.effects_["variables"]]
    used = frozenset().union(*effects)
    count = len(used & set(map(str, X.columns)))  # an indicator of gaps is no column
    return Fitted(lambda frame: np.asarray(answer(frame)), count, effects, model)


def linear(X: pd.DataFrame, y: np.ndarray, classes: bool, seed: int) -> Fitted:
    """Fit ridge (strength by leave-one-out) or logistic regression (5 folds of the log loss)."""
    numbers = Numbers().fit(X)
    Z = numbers.transform(X)
    if not classes:
        ridge = RidgeCV(np.geomspace(1e-4, 1e5, 28)).fit(Z, y)
        return Fitted(lambda f: ridge.predict(numbers.transform(f)), X.shape[1], single_effects(X))
    model = LogisticRegressionCV(
        Cs=10, scoring="neg_log_loss", max_iter=2000, l1_ratios=(0.0,), use_legacy_attributes=False
    ).fit(Z, y)
    return Fitted(
        lambda f: model.predict_proba(numbers.transform(f)), X.shape[1], single_effects(X)
    )


class Categories:
    """Text columns as pandas categories of the training rows, which both boosters read."""

    def fit(self, X: pd.DataFrame) -> Categories:
        self.kinds = {
            name: pd.CategoricalDtype(sorted(X[name].dropna().astype(str).unique()))
            for name in X.columns
            if not is_number(X[name])
        }
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        out = X.copy()
        for name, kind in self.kinds.items():
            text = X[name].astype(object).where(X[name].isna(), X[name].astype(str))
            out[name] = pd.Categorical(text, dtype=kind)
        # LightGBM refuses names with the marks of JSON.
        return out.set_axis([f"c{j}" for j in range(X.shape[1])], axis=1)


def lightgbm(X: pd.DataFrame, y: np.ndarray, classes: bool, seed: int) -> Fitted:
    """Fit LightGBM: leaves, rows in a leaf and rounds by 3-fold cross-validation."""
    import lightgbm as lgb

    kinds = Categories().fit(X)
    labels, codes = np.unique(y, return_inverse=True)
    data = lgb.Dataset(kinds.transform(X), codes if classes else y, free_raw_data=False)
    objective: dict[str, Any] = {"objective": "regression"}
    if classes:
        objective = {"objective": "binary"}
        if len(labels) > 2:
            objective = {"objective": "multiclass", "num_class": len(labels)}
    fixed = objective | {
        "learning_rate": RATE,
        "feature_fraction": 0.8,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "verbosity": -1,
        "num_threads": 1,
        "seed": seed,
        "feature_pre_filter": False,
    }
    splitter = (StratifiedKFold if classes else KFold)(
        BOOSTING_FOLDS, shuffle=True, random_state=seed
    )
    folds = list(splitter.split(codes, codes))
    found = []
    for leaves in LEAVES:
        for rows in ROWS_IN_A_LEAF:
            params = fixed | {"num_leaves": leaves, "min_data_in_leaf": rows}
            stop = lgb.early_stopping(PATIENCE, verbose=False)
            results = lgb.cv(params, data, ROUNDS, folds=folds, callbacks=[stop])
            curve = next(values for name, values in results.items() if name.endswith("-mean"))
            found.append((min(curve), int(np.argmin(curve)) + 1, leaves, rows))
    _, rounds, leaves, rows = min(found)
    params = fixed | {"num_leaves": leaves, "min_data_in_leaf": rows}
    model = lgb.train(params, data, rounds)

    def respond(frame: pd.DataFrame) -> np.ndarray:
        f = np.asarray(model.predict(kinds.transform(frame)))
        return np.column_stack([1.0 - f, f]) if classes and len(labels) == 2 else f

    return Fitted(respond, int(np.count_nonzero(model.feature_importance())))


def hist_boosting(X: pd.DataFrame, y: np.ndarray, classes: bool, seed: int) -> Fitted:
    """Fit HistGradientBoosting: leaves and rows in a leaf by 3 folds, rounds by early stopping."""
    kinds = Categories().fit(X)
    model = (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(
        learning_rate=RATE,
        max_iter=ROUNDS,
        early_stopping=True,
        n_iter_no_change=PATIENCE,
        random_state=seed,
    )
    grid = {"max_leaf_nodes": [4, 8, 31], "min_samples_leaf": list(ROWS_IN_A_LEAF)}
    scoring = "neg_log_loss" if classes else "neg_mean_squared_error"
    splitter = (StratifiedKFold if classes else KFold)(
        BOOSTING_FOLDS, shuffle=True, random_state=seed
    )
    found = GridSearchCV(model, grid, cv=splitter, scoring=scoring).fit(kinds.transform(X), y)
    answer = found.predict_proba if classes else found.predict
    return Fitted(lambda frame: answer(kinds.transform(frame)), X.shape[1])


class Coded:
    """Numbers with the mean where missing, text as codes, for pyGAM's splines and factors.

    A category that is new is coded as the most frequent one: pyGAM refuses new codes. Columns that
    are constant are left out, and numbers of few values get fewer splines than values.
    """

    def fit(self, X: pd.DataFrame) -> Coded:
        self.parts: list[tuple[str, Any]] = []
        for name in X.columns:
            if is_number(X[name]):
                if X[name].nunique() > 1:
                    self.parts.append((name, float(X[name].mean())))
            else:
                counts = X[name].astype(object).fillna("missing").astype(str).value_counts()
                if len(counts) > 1:
                    codes = {level: code for code, level in enumerate(sorted(counts.index))}
                    self.parts.append((name, (codes, codes[counts.index[0]])))
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        out = np.empty((len(X), len(self.parts)))
        for j, (name, value) in enumerate(self.parts):
            if isinstance(value, float):
                out[:, j] = X[name].fillna(value).to_numpy(float)
            else:
                text = X[name].astype(object).fillna("missing").astype(str)
                out[:, j] = [value[0].get(level, value[1]) for level in text]
        return out


def pygam(X: pd.DataFrame, y: np.ndarray, classes: bool, seed: int) -> Fitted:
    """Fit an additive model of splines and factors, one smoothness for all by its grid search."""
    from pygam import LinearGAM, LogisticGAM, f, s
    from pygam.terms import TermList

    coded = Coded().fit(X)
    Z = coded.transform(X)
    terms = TermList()
    for j, (_, value) in enumerate(coded.parts):
        few = len(np.unique(Z[:, j]))
        terms += s(j, n_splines=min(20, max(4, few))) if isinstance(value, float) else f(j)

    def one(target: np.ndarray, kind: Any) -> Any:
        return kind(terms).gridsearch(Z, target, progress=False)

    effects = [frozenset([str(name)]) for name, _ in coded.parts]
    if not classes:
        gam = one(y.astype(float), LinearGAM)
        return Fitted(lambda frame: gam.predict(coded.transform(frame)), len(effects), effects)
    labels = np.unique(y)
    wanted = labels[1:] if len(labels) == 2 else labels
    gams = [one((y == label).astype(int), LogisticGAM) for label in wanted]

    def respond(frame: pd.DataFrame) -> np.ndarray:
        rows = coded.transform(frame)
        shares = np.column_stack([np.clip(gam.predict_mu(rows), 1e-9, 1.0) for gam in gams])
        if len(gams) == 1:
            return np.column_stack([1.0 - shares, shares])
        return shares / shares.sum(axis=1, keepdims=True)

    return Fitted(respond, len(effects), effects)


def ebm(X: pd.DataFrame, y: np.ndarray, classes: bool, seed: int, n_jobs: int = 1) -> Fitted:
    """Fit an explainable boosting machine with all defaults, which read text and gaps."""
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    kind = ExplainableBoostingClassifier if classes else ExplainableBoostingRegressor
    model = kind(random_state=seed, n_jobs=n_jobs).fit(X, y)
    names = [str(name) for name in model.feature_names_in_]
    effects = [frozenset(names[j] for j in term) for term in model.term_features_]
    answer = model.predict_proba if classes else model.predict
    return Fitted(lambda frame: np.asarray(answer(frame)), X.shape[1], effects, model)


PEERS: dict[str, Method] = {
    "linear": linear,
    "HistGB": hist_boosting,
    "LightGBM": lightgbm,
    "skglm": skglm,
    "adelie": adelie,
    "pyGAM": pygam,
    "kernel ridge": kernel_ridge,
    "GP": gaussian_process,
    "EBM": ebm,
}
"""Quick ones first: a run that is stopped leaves whole columns."""
