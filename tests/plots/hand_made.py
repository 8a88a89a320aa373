"""Summaries made by hand, after the schema of ``summary()``: small, large, hostile, incomplete."""

from __future__ import annotations

import json

import numpy as np

LONG = "the total amount that was paid in all months before the first reminder (in euros) no. {}"
HOSTILE = [
    "price $ per $ unit",
    "_private_column_",
    "100 % of \\frac{a}{b}",
    "größe → Ωμέγα жук",
    "two\nlines\tand\x00 zeros",
    "$\\alpha_{broken",
    "",
    "turned \u202e round \u200b",
    "{0} %s %(x)s",
    "a_b^c & <b>x</b>",
]
CITIES = [
    "Oslo",
    "Bergen",
    "Rome",
    "Lima",
    "Quito",
    "Accra",
    "Hanoi",
    "Turin",
    "Cork",
    "Brno",
    "Graz",
    "Linz",
    "Nice",
    "Bonn",
    "Kiel",
    "Ulm",
    "Pisa",
    "Bari",
]


def number_column(name, rng, *, heavy=False):
    values = np.sort(np.exp(1.5 * rng.standard_normal(800)) if heavy else rng.normal(3, 1, 800))
    if heavy:
        values[-1] = 100 * values[-2]
    shares, edges = np.histogram(values, bins=30)
    quantiles = {
        str(q): float(np.quantile(values, q)) for q in (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
    }
    return {
        "name": name,
        "kind": "number",
        "used": True,
        "n_missing": 0,
        "basis": "orthonormal",
        "why": "a number",
        "min": float(values[0]),
        "max": float(values[-1]),
        "mean": float(values.mean()),
        "quantiles": quantiles,
        "histogram": {"edges": edges.tolist(), "shares": (shares / shares.sum()).tolist()},
    }


def category_column(name, labels, rng, kind="category"):
    shares = rng.dirichlet(np.ones(len(labels)))
    return {
        "name": name,
        "kind": kind,
        "used": True,
        "n_missing": 3,
        "basis": "categorical",
        "why": "text",
        "categories": [
            {"label": label, "share": float(share)}
            for label, share in zip(labels, shares, strict=True)
        ],
    }


def number_axis(column, points=41, *, jumps=False):
    values = np.linspace(column["min"], column["max"], points)
    if jumps:
        cut = column["quantiles"]["0.5"]
        near = 1e-6 * (column["max"] - column["min"])
        values = np.sort(
            np.concatenate([values[np.abs(values - cut) > 2 * near], [cut, cut + near]])
        )
    return {"variable": column["name"], "kind": "number", "values": values.tolist(), "jumps": jumps}


def category_axis(column, most=30):
    labels = [one["label"] for one in column["categories"]][:most]
    return {"variable": column["name"], "kind": "category", "values": labels}


def standard(axis, column, position):
    """Heights of a smooth or jumping function along an axis."""
    if axis["kind"] == "category":
        return np.cos(1.0 + 2.3 * np.arange(len(axis["values"])) + position)
    x = np.asarray(axis["values"])
    z = (x - column["quantiles"]["0.5"]) / (
        column["quantiles"]["0.95"] - column["quantiles"]["0.05"]
    )
    if axis["jumps"]:
        return np.where(x > column["quantiles"]["0.5"], 0.8, -0.6) * (1 + 0.3 * position)
    z = np.clip(z, -3, 3)
    return z + (0.5 + 0.3 * position) * (z**2 - 0.1) - 0.1 * position


def view_of(columns, outputs, size, *, jumps=False):
    """The grid of an effect: a product of functions, another one for every output."""
    ordered = sorted(columns, key=lambda column: column["kind"] != "number")
    axes = [
        number_axis(column, jumps=jumps and k == 0)
        if column["kind"] == "number"
        else category_axis(column)
        for k, column in enumerate(ordered[:3])
    ]
    if len(axes) == 3:
        column = ordered[2]
        if axes[2]["kind"] == "number":
            axes[2]["values"] = [column["quantiles"][q] for q in ("0.05", "0.5", "0.95")]
        else:
            axes[2]["values"] = axes[2]["values"][:3]
    values = []
    for k in range(outputs):
        grid = np.array(size * (1 - 0.4 * k))
        for axis, column in zip(axes, ordered, strict=False):
            grid = np.multiply.outer(grid, standard(axis, column, k))
        values.append(grid.tolist())
    held = [
        {
            "variable": column["name"],
            "value": column["mean"] if column["kind"] == "number" else "Oslo",
        }
        for column in ordered[3:]
    ]
    return {"axes": axes, "values": values, "held": held}


def path_of(n_effects, names, *, cross_validated=True):
    out = []
    for k, alpha in enumerate(np.geomspace(1.0, 1e-3, 15)):
        count = min(n_effects, k * max(1, n_effects // 9))
        error = 0.3 + 0.7 * np.exp(-0.45 * k) + 0.0012 * max(0, k - 8) ** 2
        out.append(
            {
                "alpha": float(alpha),
                "n_terms": 2 * count,
                "n_effects": count,
                "explained": float(1 - np.exp(-0.3 * k)),
                "cv": {
                    "None": {"mean": float(error + 0.05 * (k > 0)), "se": 0.03},
                    "sparse": {"mean": float(error), "se": 0.02},
                }
                if cross_validated
                else {},
                "chosen": k == 8,
                "effects": [[name, 1.0 / (i + 1)] for i, name in enumerate(names[:count])],
            }
        )
    return out


def search_of(tol=0.01):
    out = []
    for k in range(9):
        gap = 2.0 * 0.45**k
        out.append(
            {
                "step": k,
                "kernels": 5 + 3 * k,
                "explored": 90 + 120 * k,
                "objective": 1.0 + 0.2 * gap,
                "bound": (1.0 + 0.2 * gap) / (1 + gap),
                "gap": None if k == 0 else gap,
            }
        )
    return out


def hull_of(names, shares, *, deep=False):
    """A root, the variables, and products below them; powers as well if deep."""
    nodes = [{"term": "1", "order": 0, "degree": 0, "share": 0.0, "active": False, "parents": []}]
    for i, (name, share) in enumerate(zip(names, shares, strict=True)):
        nodes.append(
            {
                "term": name,
                "order": 1,
                "degree": 1,
                "share": share,
                "active": share > 0,
                "parents": [0],
            }
        )
        if deep and i % 3 == 0:
            nodes.append(
                {
                    "term": f"{name}^2",
                    "order": 1,
                    "degree": 2,
                    "share": share / 2,
                    "active": True,
                    "parents": [len(nodes) - 1],
                }
            )
    singles = [k for k, node in enumerate(nodes) if node["degree"] == 1]
    for i in range(0, len(singles) - 1, 2):
        a, b = singles[i], singles[i + 1]
        nodes.append(
            {
                "term": f"{nodes[a]['term']} * {nodes[b]['term']}",
                "order": 2,
                "degree": 2,
                "share": 0.3 * nodes[a]["share"],
                "active": True,
                "parents": [a, b],
            }
        )
    return nodes


def make_summary(
    n_effects=3,
    *,
    names=None,
    classes=None,
    steps=False,
    seed=0,
    path=True,
    search=True,
    certificate=True,
    cross_validated=True,
    graph=False,
    heavy=False,
    many=False,
):
    """A summary with effects of all kinds, as far as there are enough of them."""
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(max(8, n_effects))] if names is None else list(names)
    columns = []
    for i, name in enumerate(names):
        if i % 5 == 3:
            columns.append(category_column(name, CITIES if many else CITIES[:5], rng))
        elif i % 5 == 4:
            columns.append(category_column(name, ["False", "True"], rng, "boolean"))
        else:
            columns.append(number_column(name, rng, heavy=heavy and i == 0))
    sets = [
        (0,),
        (3,),
        (0, 1),
        (4,),
        (0, 3),
        (1,),
        (3, 4),
        (0, 1, 2),
        (0, 1, 3),
        (0, 3, 4),
        (0, 1, 2, 5),
    ]
    sets += [(i,) for i in range(2, len(names)) if i not in (3, 4)]
    sets += [(i, i + 1) for i in range(1, len(names) - 1)]
    sets += [(i, i + 2) for i in range(len(names) - 2)]
    sets = list(dict.fromkeys(sets))[:n_effects]
    assert len(sets) == n_effects
    shares = 0.8 ** np.arange(n_effects)
    shares /= shares.sum()
    outputs = 1 if classes is None or len(classes) == 2 else len(classes)
    effects = []
    for k, (members, share) in enumerate(zip(sets, shares, strict=True)):
        variables = [names[i] for i in members]
        effects.append(
            {
                "name": " * ".join(variables),
                "variables": variables,
                "order": len(members),
                "n_terms": 2,
                "share": float(share),
                "shape": "curve",
                "terms": [k],
                "view": None
                if graph
                else view_of(
                    [columns[i] for i in members], outputs, 3 * float(np.sqrt(share)), jumps=steps
                ),
            }
        )
    used = {i for members in sets for i in members}
    variables = [
        {
            "name": names[i],
            "share": float(sum(s for members, s in zip(sets, shares, strict=True) if i in members)),
            "alone": float(
                sum(s for members, s in zip(sets, shares, strict=True) if members == (i,))
            ),
        }
        for i in sorted(used)
    ]
    hull_shares = [0.0 if i % 4 == 1 else float(0.9**i) for i in range(len(used))]
    labels = [effect["name"] for effect in effects]
    task = "regression" if classes is None else "classification"
    kind = "identity" if classes is None else "logistic" if outputs == 1 else "softmax"
    out = {
        "schema": 1,
        "version": "0",
        "estimator": "HKLRegressorCV",
        "task": task,
        "target": "price",
        "classes": list(classes) if classes else None,
        "outputs": ["price"] if outputs == 1 else list(classes),
        "loss": "squared_error",
        "link": {"kind": kind, "words": ""},
        "settings": {"tol": 0.01},
        "alpha": float(np.geomspace(1.0, 1e-3, 15)[8]),
        "refit": "sparse",
        "refit_words": "The terms were estimated once more.",
        "intercept": [1.5] * outputs,
        "data": {
            "n_rows": 800,
            "n_columns": len(names),
            "has_columns": not graph,
            "weighted": False,
            "columns": [] if graph else columns,
        },
        "quality": {
            "kind": "cross-validation",
            "metric": "mean loss",
            "larger_is_better": False,
            "n_folds": 5,
            "model": 0.31,
            "standard_error": 0.01,
            "linear": 0.42,
            "constant": 1.0,
            "explained": 0.69,
            "linear_explained": 0.58,
            "words": "Cross-validation (5 folds): explains 69 %; a linear model 58 %.",
        },
        "effects": effects,
        "variables": [] if graph else variables,
        "terms": [
            {"term": label, "order": 1, "degree": 1, "norm": 1.0, "share": float(s), "effect": k}
            for k, (label, s) in enumerate(zip(labels, shares, strict=True))
        ],
        "hull": hull_of([names[i] for i in sorted(used)], hull_shares, deep=True),
        "path": path_of(n_effects, labels, cross_validated=cross_validated) if path else [],
        "search": search_of() if search else [],
        "certificate": {
            "certified": True,
            "kind": "exact",
            "gap": 0.0034,
            "tol": 0.01,
            "objective": 1.0,
            "bound": 0.9966,
            "confidence": 1.0,
            "n_kernels_in_graph": "about 10^14",
            "n_explored": 1050,
            "n_in_problem": 29,
            "words": "The graph has about 10^14 kernels; 1050 were looked at, 29 entered the "
            "problem. Proven: no choice among all of them has an objective more than 0.34 % below "
            "this model's.",
        }
        if certificate
        else None,
        "function": None,
        "function_note": "",
    }
    json.dumps(out)
    return out


def long_names(count):
    return [LONG.format(i) for i in range(count)]


def hostile_names(count):
    return [HOSTILE[i % len(HOSTILE)] + ("" if i < len(HOSTILE) else f" {i}") for i in range(count)]


FIVE = ["setosa", "a $ class", "versicolor of the long name and more of it", "", "virginica_2"]

CASES = {
    "three": lambda: make_summary(3),
    "one": lambda: make_summary(1),
    "eleven": lambda: make_summary(11),
    "sixty": lambda: make_summary(60, names=[f"column {i}" for i in range(40)]),
    "long": lambda: make_summary(14, names=long_names(14)),
    "hostile": lambda: make_summary(14, names=hostile_names(14)),
    "two classes": lambda: make_summary(11, classes=["no", "yes"]),
    "five classes": lambda: make_summary(11, classes=FIVE),
    "steps": lambda: make_summary(11, steps=True),
    "heavy tails": lambda: make_summary(11, heavy=True),
    "many categories": lambda: make_summary(11, many=True),
    "loaded": lambda: make_summary(11, path=False, search=False, certificate=False),
    "no cross-validation": lambda: make_summary(11, cross_validated=False),
    "graph": lambda: make_summary(6, graph=True),
}
