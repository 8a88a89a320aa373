"""A fitted estimator as one dict of plain data, which plots, pages and programs read.

Everything is text, numbers, booleans, None, lists and dicts with text as keys, ready for JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hikernel._version import SUMMARY_SCHEMA, __version__
from hikernel.columns import ColumnDesign
from hikernel.estimators.quality import quality
from hikernel.explain.model_data import effects_data, function_data, terms_data, variables_data
from hikernel.graphs import Design, SearchGraph
from hikernel.losses import Cox, LogLoss, Multinomial
from hikernel.search import Certificate
from hikernel.selection import FitRecord, TermModel
from hikernel.selection.record import QUANTILES

__all__ = ["summarize"]

_REFITS = {
    "ridge": "The coefficients of the selected terms were estimated again by ridge regression.",
    "sparse": (
        "The selected terms were estimated again by ridge regression, and effects that hardly "
        "contribute were dropped."
    ),
    "unpenalised": "The coefficients of the selected terms were estimated again, unpenalised.",
    "variables": (
        "All products of the selected variables were estimated by ridge regression, and effects "
        "that hardly contribute were dropped."
    ),
}

_MOST_ITEMS = 100
"""Most entries of a parameter that are listed."""

Data = dict[str, Any]


def summarize(estimator: Any) -> Data:
    """Return a fitted estimator as plain data.

    Parameters
    ----------
    estimator : HKLRegressor, HKLClassifier, HKLSurvival, or a cross-validated form
        A fitted estimator, which may come from a file.

    Returns
    -------
    dict
        The keys are those of ``docs/summary.md``.
    """
    model, design, record = estimator._model, estimator._design, estimator._record
    classes = getattr(estimator, "classes_", None)
    labels = None if classes is None else [str(label) for label in classes.tolist()]
    several = model.coef.ndim > 1
    columns = estimator._columns
    posterior = getattr(estimator, "_posterior", None)
    effects = effects_data(model, design, columns, record, posterior)
    function, note = function_data(model, columns, record, effects)
    return {
        "schema": SUMMARY_SCHEMA,
        "version": __version__,
        "estimator": type(estimator).__name__,
        "task": estimator._task,
        "target": record.target,
        "classes": labels,
        "class_values": None if classes is None else [_plain(c) for c in classes.tolist()],
        "outputs": labels if several else [estimator._quantity or record.target or "f"],
        "loss": estimator.loss_.name,
        "link": {"kind": _link(estimator), "words": estimator._link()},
        "settings": {name: _plain(value) for name, value in estimator.get_params(False).items()},
        "alpha": float(estimator.alpha_),
        "refit": estimator.refit_,
        "refit_words": _REFITS.get(
            estimator.refit_, "Predictions come from the convex problem itself."
        ),
        "intercept": np.atleast_1d(model.intercept).tolist(),
        "data": _data(columns, record),
        "quality": quality(estimator),
        "effects": effects,
        "variables": variables_data(effects),
        "terms": terms_data(model, design, effects),
        "hull": _hull(estimator._selected, design, estimator.graph_),
        "path": _path(estimator, record),
        "search": _search(estimator.history_),
        "certificate": _certificate(estimator.certificate_),
        "function": function,
        "function_note": note,
    }


def _link(estimator: Any) -> str:
    """Return how predictions follow from f."""
    loss, several = estimator.loss_, estimator._model.coef.ndim > 1
    if loss.link == "log":
        return "exp"
    if isinstance(loss, Cox):
        return "hazard"
    if not hasattr(estimator, "classes_"):
        return "identity"
    if several:
        return "softmax" if isinstance(loss, Multinomial) else "argmax"
    return "logistic" if isinstance(loss, LogLoss) else "sign"


def _plain(value: object) -> Any:
    """Return a parameter as plain data; objects as text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.generic)):
        return _number(value) if not isinstance(value, (np.bool_, np.str_)) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, np.ndarray)):
        if _size(value) > _MOST_ITEMS:  # all rows of all folds, for one
            return f"{type(value).__name__} of {len(value)}"
        return [_plain(item) for item in list(value)]
    return getattr(value, "__name__", None) or repr(value)


def _size(value: object) -> int:
    """Return the number of entries of a list, and of lists in it."""
    if isinstance(value, np.ndarray):
        return int(value.size)
    return sum(map(_size, value)) if isinstance(value, (list, tuple, set)) else 1


def _number(value: Any) -> float | None:
    """Return a finite number, or None."""
    number = float(value)
    return number if math.isfinite(number) else None


def _data(design: ColumnDesign | None, record: FitRecord) -> Data:
    out: Data = {"n_rows": record.n_rows, "weighted": record.weighted}
    out |= {"offset": record.offset, "exposure": record.exposure}
    if design is None:
        return out | {"n_columns": None, "has_columns": False, "names": [], "columns": []}
    columns = [_column(design, record, m) for m in range(len(design.names))]
    return out | {
        "n_columns": design.table.n_features_in,
        "has_columns": True,
        "names": list(design.table.input_names),
        "columns": columns,
    }


def _column(design: ColumnDesign, record: FitRecord, m: int) -> Data:
    """Return what is known of a column of the matrix."""
    table, found = design.table, record.statistics.get(m)
    name, why = design.notes[m]
    out: Data = {
        "name": table.names[m],
        "kind": table.kinds[m],
        "ordered": m in table.ordered,
        "used": found is not None,
        "n_missing": record.missing[m] if record.missing else 0,
        "basis": name,
        "why": why,
    }
    if found is None:
        return out
    out["quantiles"] = dict(zip(map(str, QUANTILES), found.quantiles, strict=True))
    out |= {"min": found.low, "max": found.high, "mean": found.mean, "histogram": None}
    if table.kinds[m] == "number":
        edges, shares = list(found.edges), list(found.shares)
        if not edges:
            return out | {"values": [[v, s] for v, s in zip(found.values, shares, strict=True)]}
        return out | {"histogram": {"edges": edges, "shares": shares}}
    labels = table.categories[m] or ("False", "True")
    shares_of = dict(zip(found.values, found.shares, strict=True))
    out["categories"] = [
        {"label": str(label), "share": shares_of.get(float(code), 0.0)}
        for code, label in enumerate(labels)
    ]
    return out


def _hull(selected: TermModel, design: Design, graph: SearchGraph) -> list[Data]:
    """Return the nodes of the hull with their parents, ancestors first."""
    nodes = sorted(selected.nodes, key=graph.sort_key)
    position = {node: i for i, node in enumerate(nodes)}
    known = {node: i for i, node in enumerate(selected.nodes)}
    ancestors = {node: set(graph.ancestors(node)) - {node} for node in nodes}
    table = design.terms(nodes)
    depths = table.get("degree", table.get("depth"))
    out = []
    for i, node in enumerate(nodes):
        covered = set().union(*(ancestors[above] for above in ancestors[node]))
        share = float(selected.shares[known[node]])
        out.append(
            {
                "term": table["term"][i],
                "order": int(table["order"][i]) if "order" in table else 0,
                "degree": int(depths[i]) if depths is not None else 0,
                "share": share,
                "active": bool(selected.norms[known[node]] > 0.0),
                "parents": sorted(position[above] for above in ancestors[node] - covered),
            }
        )
    return out


def _path(estimator: Any, record: FitRecord) -> list[Data]:
    """Return the path with the errors of cross-validation: scores with the sign turned."""
    table = getattr(estimator, "cv_results_", None)
    out = []
    for point in record.path:
        errors = {}
        if table is not None:
            n_folds = estimator.n_splits_
            for i in np.flatnonzero(np.isclose(table["alpha"], point.alpha, rtol=1e-12, atol=0.0)):
                spread = table["std_test_score"][i] / math.sqrt(max(1, n_folds - 1))
                mean = _number(-table["mean_test_score"][i])
                errors[str(table["refit"][i])] = {"mean": mean, "se": _number(spread)}
        out.append(
            {
                "alpha": point.alpha,
                "n_terms": point.n_terms,
                "n_effects": point.n_effects,
                "explained": point.explained,
                "cv": errors,
                "chosen": bool(np.isclose(point.alpha, estimator.alpha_, rtol=1e-12, atol=0.0)),
                "effects": [list(pair) for pair in point.effects],
            }
        )
    return out


def _search(history: list[Certificate]) -> list[Data]:
    return [
        {
            "step": i,
            "kernels": step.n_kernels,
            "explored": step.n_explored,
            "objective": _number(step.objective),
            "bound": None if step.kind == "none" else _number(step.dual_bound),
            "gap": None if step.kind == "none" else _number(step.relative_gap),
        }
        for i, step in enumerate(history)
    ]


def _certificate(certificate: Certificate) -> Data:
    proven = certificate.kind != "none"
    return {
        "certified": certificate.certified,
        "kind": certificate.kind,
        "gap": _number(certificate.relative_gap) if proven else None,
        "tol": certificate.tol,
        "objective": _number(certificate.objective),
        "bound": _number(certificate.dual_bound) if proven else None,
        "confidence": certificate.confidence,
        "n_kernels_in_graph": certificate.graph_size,
        "n_explored": certificate.n_explored,
        "n_in_problem": certificate.n_kernels,
        "monotone": dict(certificate.monotone),
        "refit_gap": None if certificate.refit_gap is None else _number(certificate.refit_gap),
        "words": certificate.explain(),
    }
