"""Sparse linear models on all products of degree 2: the lasso of skglm, the group lasso of adelie.

Both solve a convex problem to a small tolerance, over the products they are given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from encoding import Fitted, Polynomial
from sklearn.model_selection import KFold, StratifiedKFold

__all__ = ["adelie", "skglm"]

FOLDS = 5
ALPHAS = np.geomspace(1.0, 1e-3, 30)
"""Strengths, in units of the least one that selects nothing."""


def soft(scores: np.ndarray) -> np.ndarray:
    """Return the softmax of each row."""
    exps = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exps / exps.sum(axis=1, keepdims=True)


def _lasso_path(Z: np.ndarray, y: np.ndarray, alphas: np.ndarray, binary: bool) -> Any:
    """Return coefficients and intercept for each alpha, each solve from the one before."""
    from skglm import Lasso, SparseLogisticRegression

    kind = SparseLogisticRegression if binary else Lasso
    model = kind(alpha=alphas[0], warm_start=True, tol=1e-4)
    for alpha in alphas:
        model.set_params(alpha=alpha).fit(Z, y)
        yield np.ravel(model.coef_).copy(), float(np.ravel(model.intercept_)[0])


def _lasso(Z: np.ndarray, y: np.ndarray, binary: bool, seed: int) -> tuple[np.ndarray, float]:
    """Return the lasso's coefficients and intercept at the alpha chosen by cross-validation."""
    center = y - np.mean(y)
    largest = float(np.max(np.abs(Z.T @ center))) / len(y)
    alphas = ALPHAS * (0.5 * largest if binary else largest)
    splitter = (StratifiedKFold if binary else KFold)(FOLDS, shuffle=True, random_state=seed)
    losses = np.zeros(len(alphas))
    for fit, held in splitter.split(Z, y):
        part = np.asfortranarray(Z[fit])
        for i, (coef, intercept) in enumerate(_lasso_path(part, y[fit], alphas, binary)):
            f = Z[held] @ coef + intercept
            rows = np.logaddexp(0.0, -y[held] * f) if binary else (y[held] - f) ** 2
            losses[i] += float(np.sum(rows))
    best = int(np.argmin(losses))
    *_, last = _lasso_path(Z, y, alphas[: best + 1], binary)
    return last


def skglm(X: pd.DataFrame, y: np.ndarray, classes: bool, seed: int) -> Fitted:
    """Fit the lasso, or l1 logistic regression (one against the rest), alpha by 5 folds."""
    products = Polynomial().fit(X)
    Z = products.transform(X)
    if not classes:
        fits = [_lasso(Z, y.astype(float), False, seed)]
    else:
        labels = np.unique(y)
        targets = labels[1:] if len(labels) == 2 else labels
        fits = [_lasso(Z, np.where(y == one, 1.0, -1.0), True, seed) for one in targets]
    coefs = np.array([coef for coef, _ in fits])
    intercepts = np.array([intercept for _, intercept in fits])

    def respond(frame: pd.DataFrame) -> np.ndarray:
        f = products.transform(frame) @ coefs.T + intercepts
        if not classes:
            return f[:, 0]
        shares = 1.0 / (1.0 + np.exp(-f))
        if len(fits) == 1:
            return np.column_stack([1.0 - shares, shares])
        return shares / shares.sum(axis=1, keepdims=True)

    effects = products.effects(np.any(coefs != 0.0, axis=0))
    return Fitted(respond, len(frozenset().union(*effects)), effects)


def adelie(X: pd.DataFrame, y: np.ndarray, classes: bool, seed: int) -> Fitted:
    """Fit the group lasso, a group per effect (for several classes: per product), by 5 folds."""
    import adelie as ad

    products = Polynomial().fit(X)
    Z = products.transform(X)
    labels = np.unique(y)
    groups = None if classes and len(labels) > 2 else products.starts
    if not classes:
        center, unit = float(np.mean(y)), float(np.std(y))
        glm = ad.glm.gaussian(y=(y - center) / unit)
    elif len(labels) == 2:
        glm = ad.glm.binomial(y=(y == labels[1]).astype(float))
    else:
        glm = ad.glm.multinomial(y=(y[:, None] == labels).astype(float))
    settings: dict[str, Any] = {"groups": groups, "progress_bar": False}
    found = ad.cv_grpnet(
        Z, glm, n_folds=FOLDS, min_ratio=1e-3, lmda_path_size=50, seed=seed, **settings
    )
    state = found.fit(Z, glm, lmda_path_size=50, **settings)
    betas, intercepts = state.betas[-1:], state.intercepts[-1:]

    def respond(frame: pd.DataFrame) -> np.ndarray:
        f = ad.diagnostic.predict(products.transform(frame), betas, intercepts)[0]
        if not classes:
            return center + unit * f
        return soft(np.column_stack([np.zeros(len(f)), f]) if f.ndim == 1 else f)

    used = betas.toarray()[0].reshape(len(products.sets), -1)
    effects = products.effects(np.any(used != 0.0, axis=1))
    return Fitted(respond, len(frozenset().union(*effects)), effects)
