"""How good a fitted estimator is: cross-validated, beside a linear model and a constant."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hikernel.losses import Cox, Loss, SquaredError

__all__ = ["quality"]

_HARDLY = 0.01
"""Share of the loss of a constant up to which a model is said to explain next to nothing."""


def quality(estimator: Any) -> dict[str, Any]:
    """Return how good the model is, in cross-validation or else on the training rows.

    Parameters
    ----------
    estimator : HKLRegressor, HKLClassifier, HKLSurvival, or a cross-validated form
        A fitted estimator.

    Returns
    -------
    dict
        Plain data: "kind" ("cross-validation" or "training"), "metric", "larger_is_better",
        "n_folds", the metric of the "model" with its "standard_error", of a "linear" model and of a
        "constant", the share of the loss of the constant that is "explained" by the model and by
        the linear one ("linear_explained"), and "words". Entries that are not known are None.

    Notes
    -----
    The standard error is that of the mean over the folds. It does not count that the model is the
    one with the best mean, or close to it.
    """
    record, loss = estimator._record, estimator.loss_
    n_folds = getattr(estimator, "n_splits_", None)
    known = ("metric", "model", "standard_error", "linear", "constant", "explained")
    out: dict[str, Any] = dict.fromkeys((*known, "linear_explained"))
    out |= {"larger_is_better": False, "n_folds": n_folds}
    if n_folds is None or not np.isfinite(estimator.best_score_):
        why = "there was no cross-validation"
        if n_folds is not None:
            why = "the time budget ended before every fold had a model"
        share = _percent(record.explained)
        words = f"Explains {share} of {_whole(estimator)} on the training rows; {why}."
        return out | {"kind": "training", "explained": record.explained, "words": words}
    scoring = estimator.scoring
    sign = -1.0 if scoring is None else 1.0
    linear, constant = record.simpler.linear, record.simpler.constant
    out |= {
        "kind": "cross-validation",
        "metric": _metric(loss, scoring),
        "larger_is_better": scoring is not None,
        "model": sign * estimator.best_score_,
        "standard_error": _standard_error(estimator),
        "linear": None if linear is None else sign * linear,
        "constant": None if constant is None else sign * constant,
    }
    if scoring is None and constant is not None and constant < 0.0:
        out["explained"] = loss.explained(out["model"], out["constant"])
        if linear is not None:
            out["linear_explained"] = loss.explained(out["linear"], out["constant"])
    return out | {"words": _words(out, estimator)}


def _metric(loss: Loss, scoring: Any) -> str:
    """Return the name of the score; that of a function of the user is not known."""
    if scoring is None and isinstance(loss, Cox):
        return "1 - gain of the partial log-likelihood per event"
    if scoring is None:
        kind = "" if isinstance(loss, SquaredError) else loss.name.removesuffix("_loss")
        return " ".join(["mean", *kind.split("_"), "loss"]).replace("  ", " ")
    return scoring if isinstance(scoring, str) else "score"


def _whole(estimator: Any) -> str:
    offset = estimator._record.offset
    if isinstance(estimator.loss_, Cox):
        return "the variation of the risk"
    if isinstance(estimator.loss_, SquaredError):
        return "the variance of y" if offset is None else f"the variance of y - {offset}"
    return "the loss of the best constant"


def _words(out: dict[str, Any], estimator: Any) -> str:
    """Return a sentence on a cross-validated score."""
    loss = estimator.loss_
    where = f"on held-out rows ({out['n_folds']} folds"
    error = out["standard_error"] or 0.0
    if out["explained"] is None:
        metric = out["metric"][0].upper() + out["metric"][1:]
        words = f"{metric} {out['model']:.4g} {where}, standard error {error:.2g})"
        for name in ("linear", "constant"):
            if out[name] is not None:
                words += f", a {name} model {out[name]:.4g}"
        return f"{words}."
    words = f"Explains {_percent(out['explained'])} of {_whole(estimator)} {where}, standard error "
    ends = [loss.explained(out["model"] + step, out["constant"]) for step in (error, -error)]
    words += f"{_percent(0.5 * (ends[1] - ends[0]))})"
    if out["linear_explained"] is not None:
        words += f", a linear model {_percent(out['linear_explained'])}"
    if isinstance(loss, Cox):
        words += f"; the partial log-likelihood gains {1.0 - out['model']:.3g} per event"
    elif not isinstance(loss, SquaredError):
        words += f"; {out['metric']} {out['model']:.4g}"
    if out["explained"] <= _HARDLY:
        words += ". That is hardly better than a constant, and the effects are not to be trusted"
    return f"{words}."


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g} %"


def _standard_error(estimator: Any) -> float | None:
    """Return the standard error of the score that was chosen, from its folds."""
    table = estimator.cv_results_
    means = np.asarray(table["mean_test_score"], dtype=float)
    same = np.isclose(table["alpha"], estimator.alpha_, rtol=1e-9, atol=0.0)
    chosen = np.flatnonzero(same & (means == estimator.best_score_))
    if len(chosen) == 0 or estimator.n_splits_ < 2:
        return None
    spread = float(table["std_test_score"][chosen[0]]) / math.sqrt(estimator.n_splits_ - 1)
    return spread if math.isfinite(spread) else None
