"""Formulas evaluated as a reader would: from the text alone, with Python for the arithmetic."""

import re

import numpy as np

_ZERO = r"(?:, and 0 where .* is missing)?"
_ARGUMENT = re.compile(r"  (z\((.*?)\)) = (.*?)(?:, (\S+) <= (.*) <= (\S+))?")
_POLYNOMIAL = re.compile(rf"  ([a-y]+\d+\((.*?)\)) = (.*?){_ZERO}")
_KNOTS = re.compile(rf"  (q\d+\((.*?)\)): (?:about )?(.*); linear between, constant beyond{_ZERO}")
_TABLE = re.compile(r"  ([ch]\d+(?:\[.*?\])?\((.*?)\)): (.*), 0 for others")


def evaluate_text(text, X, names, labels=None):
    """Return the value of every left-hand side at the rows of X.

    ``labels`` has for the columns of categories, by position, the label of each code. What is not
    told to be zero where a value is missing is NaN there.
    """
    sides, _, rest = text.partition("\n\nwhere\n")
    functions = {}
    for line in rest.partition("\n\n")[0].splitlines():
        found = next((m for p in _READERS if (m := p.fullmatch(line))), None)
        if found:
            read = _READERS[found.re]
            m = names.index(found[2])
            value = read(found, X[:, m], functions, (labels or {}).get(m, {}))
            told = "is missing" in line.removeprefix(found[1]) and ", and 0 where" in line
            functions[found[1]] = np.where(np.isnan(X[:, m]), 0.0, value) if told else value
    out = {}
    for side in re.split(r"\n(?! )", sides):
        label, _, expression = side.replace("\n", " ").partition(" = ")
        out[label] = _calculate(expression, functions) + np.zeros(len(X))
    return out


def _calculate(expression, functions):
    ordered = sorted(functions, key=len, reverse=True)
    for i, what in enumerate(ordered):
        expression = expression.replace(what, f"v[{i}]")
    return eval(expression.replace("^", "**"), {"v": [functions[what] for what in ordered]})


def _argument(found, x, functions, labels):
    _, name, meaning, low, _, high = found.groups()
    if low is not None:
        x = np.clip(x, float(low), float(high))
    return eval(meaning.replace(name, "x"), {"x": x, "asinh": np.arcsinh})


def _polynomial(found, x, functions, labels):
    return _calculate(found[3], functions)


def _knots(found, x, functions, labels):
    pairs = [part.split(" at ") for part in found[3].split(", ")]
    heights, points = np.array(pairs, dtype=float).T
    return np.interp(x, points, heights)


def _table(found, x, functions, labels):
    pairs = [part.split(" for ") for part in found[3].split(", ")]
    values = {label: float(value) for value, label in pairs}
    return np.array([values.get(labels.get(code, f"{code:g}"), 0.0) for code in x])


_READERS = {_ARGUMENT: _argument, _POLYNOMIAL: _polynomial, _KNOTS: _knots, _TABLE: _table}
