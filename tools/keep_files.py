"""Keep model files of every kind for the tests, so that later versions must still load them.

Files of the current format that are there already are left as they are, and only those of new kinds
are added: what was written once is what a user may have. The data are generated here. Beside each
file lies JSON with rows and what the model that was saved predicted for them.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from hikernel import (
    HKLClassifier,
    HKLClassifierCV,
    HKLRegressor,
    HKLRegressorCV,
    HKLSurvival,
    HKLSurvivalCV,
    bases,
    losses,
)
from hikernel.bases.kernels import LaplaceKernel
from hikernel.persistence import FORMAT_VERSION

FOLDER = Path(__file__).parents[1] / "tests" / "persistence" / "kept" / f"format-{FORMAT_VERSION}"
N = 40
N_ROWS = 4
SMALL = {"certify": "none", "max_kernels": 8}
QUICK = {"cv": 2, "n_alphas": 3, **SMALL}
OUTPUTS = ("predict", "decision_function", "predict_proba")

_RNG = np.random.default_rng(0)
X = _RNG.uniform(-1.0, 1.0, (N, 3))
Y = X[:, 0] + X[:, 0] * X[:, 1] + 0.1 * _RNG.standard_normal(N)
LABELS = np.array(["low", "middle", "high"], dtype=object)[np.digitize(Y, [-0.3, 0.3])]
COUNTS = _RNG.poisson(np.exp(Y)).astype(float)
TIMES = np.column_stack([np.exp(Y), _RNG.random(N) < 0.7])
SPARSE = sp.csr_array(np.where(_RNG.random((N, 3)) < 0.6, 0.0, X))
TABLE = pd.DataFrame(
    {
        "größe": np.where(_RNG.random(N) < 0.1, np.nan, X[:, 0]),
        "town": _RNG.choice(["Oslo", "東京", "x"], N),
        "yes": X[:, 1] > 0.0,
        "day": pd.date_range("2020-01-01 06:00", periods=N, freq="201h"),
        "grade": pd.Categorical(_RNG.choice(["a", "b", "c"], N), ["a", "b", "c"], ordered=True),
    }
)
TARGETS = {"poisson": COUNTS, "tweedie": COUNTS, "gamma": np.exp(Y)}
BASES = {
    **bases.BASES,
    "periodic": lambda: bases.Periodic(2.0),
    "branches": lambda: bases.Branches((bases.OrthonormalPolynomial(2), bases.Steps())),
    "laplace": lambda: bases.KernelPCA(kernel=LaplaceKernel(1.0), tol=0.05),
}
Made = tuple[Any, Any]


def regressor(rows: Any = X, y: Any = Y, **parameters: Any) -> Made:
    """Return a fitted model and its rows."""
    return HKLRegressor(0.005, **SMALL, **parameters).fit(rows, y), rows


def kinds() -> dict[str, Callable[[], Made]]:
    """Return what makes a model of every kind."""

    def with_basis(name: str) -> Callable[[], Made]:
        return lambda: regressor(basis={0: BASES[name](), 1: BASES[name]()})

    def with_loss(name: str) -> Callable[[], Made]:
        return lambda: regressor(y=TARGETS.get(name, Y), loss=losses.REGRESSION[name]())

    def with_labels(name: str) -> Callable[[], Made]:
        return lambda: (HKLClassifier(0.02, loss=name, **SMALL).fit(X, Y > 0.0), X)

    def with_refit(name: str) -> Callable[[], Made]:
        return lambda: regressor(refit=name, degree=2)

    def calibrated() -> Made:
        model, rows = regressor(refit="ridge")
        return model.calibrate(rows, Y), rows

    return {
        "numbers": regressor,
        "table": lambda: regressor(TABLE),
        "constant_column": lambda: regressor(np.where([True, True, False], X, 7.0)),
        "sparse": lambda: regressor(SPARSE, max_order=2, basis="orthonormal"),
        "smooth_and_steps": lambda: regressor(basis="auto+steps"),
        "monotone": lambda: regressor(monotone={0: 1}, refit="ridge"),
        "interactions": lambda: regressor(interactions=[(0, 1)]),
        "rates": lambda: (
            HKLRegressor(0.01, loss="poisson", **SMALL).fit(X, COUNTS, exposure=np.ones(N)),
            X,
        ),
        "calibrated": calibrated,
        "classes": lambda: (HKLClassifier(0.03, **SMALL).fit(X, LABELS), X),
        "cross_validated": lambda: (HKLRegressorCV(**QUICK).fit(TABLE, Y), TABLE),
        "cross_validated_classes": lambda: (HKLClassifierCV(**QUICK).fit(X, LABELS), X),
        "survival": lambda: (HKLSurvival(0.01, **SMALL).fit(X, TIMES), X),
        "cross_validated_survival": lambda: (HKLSurvivalCV(**QUICK).fit(X, TIMES), X),
        **{f"refit_{name}": with_refit(name) for name in ("ridge", "sparse", "variables")},
        **{f"basis_{name}": with_basis(name) for name in BASES},
        **{f"loss_{name}": with_loss(name) for name in losses.REGRESSION},
        **{f"loss_{name}": with_labels(name) for name in losses.CLASSIFICATION},
    }


def new_rows(rows: Any) -> Any:
    """Return rows to predict: known ones, and one beyond all that was seen, with gaps if it may."""
    some = rows[:N_ROWS].copy()
    if isinstance(some, pd.DataFrame):
        some = some.astype({"grade": object})
        some.loc[0, ["größe", "town"]] = [9.5, "elsewhere"]
        some.loc[1, "größe"] = np.nan
    elif not sp.issparse(some):
        some[0] = [3.0, -4.0, 0.5]
        some[1, 1] = np.nan
    return some


def as_json(rows: Any) -> dict[str, Any]:
    """Return rows as plain data; gaps are null and dates are text."""
    if isinstance(rows, pd.DataFrame):
        dated = rows.assign(day=rows["day"].dt.strftime("%Y-%m-%d %H:%M:%S"))
        plain = dated.astype(object).where(dated.notna(), None)
        return {"kind": "table", "dates": ["day"], "columns": plain.to_dict("list")}
    dense = rows.toarray() if sp.issparse(rows) else rows
    kind = "sparse" if sp.issparse(rows) else "array"
    gaps = [[None if np.isnan(v) else float(v) for v in row] for row in dense]
    return {"kind": kind, "rows": gaps}


def predictions(model: Any, rows: Any) -> dict[str, Any]:
    """Return what every method says of some rows."""
    out = {name: getattr(model, name)(rows).tolist() for name in OUTPUTS if hasattr(model, name)}
    if getattr(model, "_posterior", None) is not None:
        # Bars are those of predictions, or of f where there are classes.
        method = model.decision_function if hasattr(model, "classes_") else model.predict
        out["std"] = np.asarray(method(rows, return_std=True)[1]).tolist()
    if getattr(model, "_calibration", None) is not None:
        out["interval"] = np.asarray(model.predict_interval(rows)).tolist()
    if hasattr(model, "predict_survival_function"):
        out["survival"] = np.asarray(model.predict_survival_function(rows)).tolist()
    return out


def main() -> None:
    """Write the files that are not there yet."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, make in kinds().items():
        path = FOLDER / f"{name}.hik"
        if path.exists():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # small data, few kernels: nothing is proven here
            model, rows = make()
            kept = new_rows(rows)
            model.save(path)
            said = {"rows": as_json(kept), "predictions": predictions(model, kept)}
        path.with_suffix(".json").write_text(json.dumps(said, ensure_ascii=True) + "\n")
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
