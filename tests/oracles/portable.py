"""f(x) from its plain data, one row at a time, with nothing but the standard library.

Follows the text of ``hikernel.explain.portable`` word by word; knows nothing of the package.
"""

import datetime
import itertools
import math


def evaluate(function, row):
    """Return f per output for a row: a dict from input names to values, None where missing."""
    values = [_value(one, row.get(one["name"])) for one in function["inputs"]]
    variables = []
    for one in function["variables"]:
        x = values[one["input"]]
        if one["missing"]:
            x = 1.0 if x is None else 0.0
        elif one["part"] is not None and x is not None:
            x = _part(one["part"], x, one["start"])
        variables.append((one["levels"], x))
    out = list(function["intercept"])
    for term in function["terms"]:
        factors = [
            _level(*variables[v], level, w)
            for (v, level), w in zip(term["factors"], term["shape"], strict=True)
        ]
        products = [math.prod(numbers) for numbers in itertools.product(*factors)]
        for k, coefs in enumerate(term["coef"]):
            out[k] += math.fsum(a * b for a, b in zip(coefs, products, strict=True))
    return out


def _part(part, x, start):
    day = math.floor(x)
    date = datetime.date(1970, 1, 1) + datetime.timedelta(day)
    return {
        "days": lambda: x - start,
        "year": lambda: float(date.year),
        "day of year": lambda: float((date - datetime.date(date.year, 1, 1)).days + 1),
        "weekday": lambda: float((day + 3) % 7),
        "hour": lambda: round(24 * (x - day), 6),
        "length": lambda: x,
    }[part]()


def _value(one, value):
    if value is None:
        return None
    if one["kind"] == "category":
        known = one["values"] or one["labels"]
        if value in known:
            return float(known.index(value))
        return None if one["ordered"] else -1.0
    return float(value)


def _level(levels, x, level, width):
    if x is None:
        return [levels.get("absent", 1.0)] if level == 0 else [0.0] * width
    found = _levels(levels, x, level)
    assert len(found) == width
    return found


def _levels(levels, x, level):
    if levels["kind"] == "branches":
        if level == 0:
            return [1.0]
        part = max(i for i, start in enumerate(levels["starts"]) if start <= level)
        return _levels(levels["parts"][part], x, level - levels["starts"][part] + 1)
    return KINDS[levels["kind"]](levels, x)[level]


def _z(levels, x):
    return (x - levels["center"]) / levels["scale"]


def _lookup(levels, x):
    if levels["table"] == "category":
        return [[1.0], [float(code == x) for code in levels["codes"]]]
    place = sum(cut < x for cut in levels["cuts"])
    return [[1.0], [float(i == place) for i in range(len(levels["cuts"]) + 1)]]


def _orthonormal(levels, x):
    z = min(max(_z(levels, x), levels["low"]), levels["high"])
    p = [1.0]
    for j, norm in enumerate(levels["norms"]):
        c = z * p[j]
        for coefficients in levels["projections"][j]:
            for i in range(j + 1):
                c -= coefficients[i] * p[i]
        p.append(c / norm)
    return [[value] for value in p]


def _asinh(levels, x):
    return _orthonormal(
        levels["inner"], math.asinh((_z(levels, x) - levels["median"]) / levels["spread"])
    )


def _interpolation(levels, x):
    z, knots = _z(levels, x), levels["knots"]
    z = min(max(z, knots[0]), knots[-1])
    right = min(max(1, sum(knot <= z for knot in knots)), len(knots) - 1)
    share = (z - knots[right - 1]) / (knots[right] - knots[right - 1])
    low, high = levels["heights"][right - 1], levels["heights"][right]
    return [[1.0], *[[a + share * (b - a)] for a, b in zip(low, high, strict=True)]]


def _powers(levels, x):
    return [[factor * _z(levels, x) ** j] for j, factor in enumerate(levels["factors"])]


def _periodic(levels, x):
    out = [[1.0]]
    for j, (mean, scale) in enumerate(zip(levels["means"], levels["scales"], strict=True), 1):
        angle = 2 * math.pi * j * x / levels["period"]
        out.append([scale * (math.cos(angle) - mean[0]), scale * (math.sin(angle) - mean[1])])
    return out


def _series(start, t, ratio, n):
    h = [start]
    for j in range(n - 1):
        value = t * math.sqrt(2 * ratio / (j + 1)) * h[j]
        h.append(value - (ratio * math.sqrt(j / (j + 1)) * h[j - 1] if j else 0.0))
    return h


def _hermite(levels, x):
    return [[v] for v in _series(1.0, _z(levels, x), levels["ratio"], levels["n"])]


def _mehler(levels, x):
    z, rotation = _z(levels, x), levels["rotation"]
    n = levels["n_single"] + len(rotation or [])
    start = levels["height"] * math.exp(-levels["decay"] * z * z)
    h = _series(start, levels["root"] * z, levels["ratio"], n)
    out = [[1.0]] if levels["constant"] else []
    out += [[value] for value in h[: levels["n_single"]]]
    if rotation:
        rest = h[levels["n_single"] :]
        out.append(
            [
                sum(a * r for a, r in zip(rest, column, strict=True))
                for column in zip(*rotation, strict=True)
            ]
        )
    return out


def _kernel(levels, x):
    z, kernel = _z(levels, x), levels["kernel"]

    def k(p):
        if kernel["name"] == "gaussian":
            return math.exp(-kernel["b"] * (p - z) ** 2)
        if kernel["name"] == "laplace":
            return math.exp(-kernel["b"] * abs(p - z))
        small, large = sorted((abs(p), abs(z)))
        return small**2 * (3 * large - small) if p * z > 0 else 0.0

    u = []
    for pivot, row in zip(levels["pivots"], levels["factor"], strict=True):
        u.append((k(pivot) - sum(a * b for a, b in zip(row, u, strict=False))) / row[-1])
    if levels["rotation"] is not None:
        columns = zip(*levels["rotation"], strict=True)
        u = [sum(a * r for a, r in zip(u, column, strict=True)) for column in columns]
    out = [[1.0] if word == "one" else [z] for word in levels["before"]]
    for width in levels["widths"]:
        out.append(u[:width])
        u = u[width:]
    return out


KINDS = {
    "constant": lambda levels, x: [[1.0]],
    "lookup": _lookup,
    "orthonormal": _orthonormal,
    "asinh": _asinh,
    "interpolation": _interpolation,
    "periodic": _periodic,
    "powers": _powers,
    "hermite": _hermite,
    "mehler": _mehler,
    "kernel": _kernel,
}
