"""Summaries made by hand: every kind of view, any number of effects, names that mean harm."""

from __future__ import annotations

import math

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"quoted\" 'name' `tick`",
    "{{ template }} ${value} $$x$$ \\(y\\)",
    "line\u2028separator\u2029and\nbreak",
    "right\u202eto left\u200f",
    "lone \ud800 surrogate",
    "--> ]]> <!-- <style>*{display:none}</style>",
]


def number_axis(name, n=41, *, jumps=False):
    values = [-2.0 + 4.0 * i / (n - 1) for i in range(n)]
    if jumps:
        values = sorted([*values, 0.5, math.nextafter(0.5, 1.0)])
    return {"variable": name, "kind": "number", "values": values, "jumps": jumps}


def category_axis(name, labels):
    return {"variable": name, "kind": "category", "values": list(labels)}


def on_grid(axes, function):
    """Nested values of a function of the positions along the axes."""

    def nested(done, left):
        if not left:
            return function(*done)
        axis = left[0]
        places = axis["values"] if axis["kind"] == "number" else range(len(axis["values"]))
        return [nested((*done, place), left[1:]) for place in places]

    return nested((), axes)


def view(axes, function, n_outputs=1, held=()):
    values = [
        on_grid(axes, lambda *x, k=k: function(*x) * (1 if k == 0 else -0.5 * k))
        for k in range(n_outputs)
    ]
    return {"axes": axes, "values": values, "held": list(held)}


def views(names, labels, n_outputs=1):
    """One view of every kind; each with the names of its variables and its shape."""
    a, b, c = names
    curve = [number_axis(a, 81)]
    steps = [number_axis(a, jumps=True)]
    bars = [category_axis(c, labels)]
    surface = [number_axis(a, 31), number_axis(b, 31)]
    curves = [number_axis(a, 31), category_axis(c, labels)]
    tiles = [category_axis(b, labels), category_axis(c, labels)]
    slices = [number_axis(a, 21), number_axis(b, 21), number_axis(c, 3)]
    held = [{"variable": "d", "value": 0.25}]
    return [
        (view(curve, lambda x: math.sin(2 * x) + 0.3 * x, n_outputs), "curve"),
        (view(steps, lambda x: float(x > 0.5) + 0.1 * x, n_outputs), "steps"),
        (view(bars, lambda i: 0.7 - 0.5 * i, n_outputs), "bars"),
        (view(surface, lambda x, z: x * z, n_outputs), "surface"),
        (view(curves, lambda x, i: x * (i - 1), n_outputs), "curves"),
        (view(tiles, lambda i, j: (i - 1) * (j - 1.5), n_outputs), "table"),
        (view(slices, lambda x, y, z: x * y * (z + 1), n_outputs, held), "order 3"),
    ]


def histogram():
    weights = [math.exp(-(((i - 9.5) / 5) ** 2)) for i in range(20)]
    total = sum(weights)
    return {
        "edges": [-2.0 + 0.2 * i for i in range(21)],
        "shares": [weight / total for weight in weights],
    }


def column(name, labels=None, *, used=True):
    common = {
        "name": name,
        "kind": "category" if labels else "number",
        "used": used,
        "n_missing": 0,
        "basis": "orthonormal",
        "why": "a number without tails",
    }
    if not used:
        return common
    if labels:
        shares = [0.6 / 2**i for i in range(len(labels))]
        return common | {
            "categories": [
                {"label": label, "share": share}
                for label, share in zip(labels, shares, strict=True)
            ]
        }
    quantiles = {"0.01": -1.9, "0.05": -1.5, "0.25": -0.6, "0.5": 0.0, "0.75": 0.6}
    return common | {
        "min": -2.0,
        "max": 2.0,
        "mean": 0.1,
        "quantiles": quantiles | {"0.95": 1.5, "0.99": 1.9},
        "histogram": histogram(),
    }


def function(names, labels, n_outputs):
    """f = b + slope x_a + height of the category of c + slope of the indicator of a missing a."""
    powers = {"kind": "powers", "center": 0.0, "scale": 1.0, "factors": [1.0, 1.0]}
    return {
        "intercept": [0.5] * n_outputs,
        "inputs": [
            {
                "name": names[0],
                "kind": "number",
                "labels": None,
                "missing_allowed": True,
                "default": 0.25,
                "min": -2.0,
                "max": 2.0,
            },
            {
                "name": names[2],
                "kind": "category",
                "labels": list(labels),
                "missing_allowed": False,
                "default": labels[0],
            },
        ],
        "variables": [
            {"input": 0, "column": 0, "missing": False, "part": None, "levels": powers},
            {"input": 0, "column": 0, "missing": True, "part": None, "levels": powers},
            {
                "input": 1,
                "column": 2,
                "missing": False,
                "part": None,
                "levels": {
                    "kind": "lookup",
                    "table": "category",
                    "codes": [float(i) for i in range(len(labels))],
                },
            },
        ],
        "terms": [
            {"effect": 0, "factors": [[0, 1]], "shape": [1], "coef": [[2.0]] * n_outputs},
            {"effect": None, "factors": [[1, 1]], "shape": [1], "coef": [[-1.5]] * n_outputs},
            {
                "effect": 2,
                "factors": [[2, 1]],
                "shape": [len(labels)],
                "coef": [[0.7 - 0.5 * i for i in range(len(labels))]] * n_outputs,
            },
        ],
    }


def hull(n):
    """A root, its children, their children and so on, each layer with more than one parent."""
    nodes = [{"term": "1", "order": 0, "degree": 0, "share": 0.0, "active": False, "parents": []}]
    for i in range(1, n):
        parents = sorted({(i - 1) // 3, (i - 1) // 4})
        order = 1 + nodes[parents[-1]]["order"]
        nodes.append(
            {
                "term": f"term {i}",
                "order": order,
                "degree": order,
                "share": 0.0 if i % 3 == 0 else 1.0 / (i + 1),
                "active": i % 3 != 0,
                "parents": parents,
            }
        )
    return nodes


def path(names, n=20):
    points = []
    for i in range(n):
        effects = [[name, 1.0 / (k + 1)] for k, name in enumerate(names[: i // 2])]
        error = 0.3 + 0.7 * math.exp(-0.4 * i) + 0.004 * max(0, i - 11)
        points.append(
            {
                "alpha": 10.0 ** (-0.2 * i),
                "n_terms": i,
                "n_effects": i // 2,
                "explained": 1.0 - math.exp(-0.3 * i),
                "cv": {
                    "None": {"mean": error + 0.05, "se": 0.02},
                    "sparse": {"mean": error, "se": 0.02},
                },
                "chosen": i == 12,
                "effects": effects,
            }
        )
    return points


def made(
    n_effects=3,
    *,
    names=("income", "age", "town"),
    labels=("Oslo", "Bergen", "Rome"),
    target="price",
    classes=None,
    n_hull=7,
):
    """A summary of schema 1 with ``n_effects`` effects, of every kind in turn."""
    names, labels = list(names), list(labels)
    n_outputs = len(classes) if classes and len(classes) > 2 else 1
    outputs = list(classes) if n_outputs > 1 else [target or "f"]
    pictures = views(names, labels, n_outputs)
    effects = []
    for i in range(n_effects):
        drawn, shape = pictures[i % len(pictures)]
        variables = [axis["variable"] for axis in drawn["axes"]]
        effects.append(
            {
                "name": " * ".join(variables) + (f" ({i})" if i >= len(pictures) else ""),
                "variables": variables,
                "order": len(variables),
                "n_terms": 1 + i % 4,
                "share": 0.5 / (i + 1) ** 1.2,
                "shape": shape,
                "terms": [i],
                "view": drawn,
            }
        )
    terms = [
        {"term": f"term {i + 1}", "order": 1, "degree": 1, "norm": 1.0, "share": 0.1, "effect": i}
        for i in range(n_effects)
    ]
    task = "classification" if classes else "regression"
    kind = "identity" if not classes else ("logistic" if n_outputs == 1 else "softmax")
    fitted = function(names, labels, n_outputs)
    for term in fitted["terms"]:
        if term["effect"] is not None and term["effect"] >= n_effects:
            term["effect"] = None
    return {
        "schema": 1,
        "version": "1.0",
        "estimator": "HKLRegressorCV",
        "task": task,
        "target": target,
        "classes": list(classes) if classes else None,
        "outputs": outputs,
        "loss": "squared_error",
        "link": {"kind": kind, "words": ""},
        "settings": {"degree": 4, "basis": "auto", "n_jobs": None, "names": names[0]},
        "alpha": 0.004,
        "refit": "sparse",
        "refit_words": "The selected terms were estimated once more with an l1 penalty.",
        "intercept": [0.5] * n_outputs,
        "data": {
            "n_rows": 1234,
            "n_columns": 20,
            "has_columns": True,
            "weighted": False,
            "columns": [
                column(names[0]),
                column(names[1]),
                column(names[2], labels),
                *(column(f"unused {i}", used=False) for i in range(17)),
            ],
        },
        "quality": {
            "kind": "cross-validation",
            "metric": "mean loss",
            "larger_is_better": False,
            "n_folds": 5,
            "model": 0.31,
            "standard_error": 0.012,
            "linear": 0.42,
            "constant": 1.0,
            "explained": 0.69,
            "linear_explained": 0.58,
            "words": "Cross-validation (5 folds): explains 69 %; a linear model 58 %.",
        },
        "effects": effects,
        "variables": [
            {"name": names[0], "share": 0.7, "alone": 0.5},
            {"name": names[1], "share": 0.3, "alone": 0.0},
            {"name": names[2], "share": 0.2, "alone": 0.2},
        ],
        "terms": terms,
        "hull": hull(n_hull),
        "path": path([effect["name"] for effect in effects]),
        "search": [
            {
                "step": i,
                "kernels": 2 + i,
                "explored": 10 * (i + 1),
                "objective": 1.0,
                "bound": 0.9,
                "gap": 0.4 * 0.5**i,
            }
            for i in range(8)
        ],
        "certificate": {
            "certified": True,
            "kind": "exact",
            "gap": 0.0035,
            "tol": 0.01,
            "objective": 1.0,
            "bound": 0.9965,
            "confidence": 1.0,
            "n_kernels_in_graph": "about 10^14",
            "n_explored": 97,
            "n_in_problem": 7,
            "words": "The graph has about 10^14 kernels; 97 were looked at.",
        },
        "function": fitted,
        "function_note": "",
    }
