"""The model as a Python module that needs NumPy and nothing else.

The numbers of the model come first, effect by effect, then the functions that use them: those of
`hikernel.export.evaluator` that this model needs, word by word.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from hikernel.export.document import json_document

__all__ = ["effects_words", "printable", "python_source"]

Data = dict[str, Any]

_WIDTH = 100
_ALWAYS = ("read_inputs", "contributions")
_MODULES = {
    "datetime": "import datetime",
    "math": "import math",
    "numbers": "import numbers",
    "zoneinfo": "import zoneinfo",
    "Decimal": "from decimal import Decimal",
}


def python_source(summary: Mapping[str, Any]) -> str:
    """Return the model as the text of a Python module.

    Parameters
    ----------
    summary : dict
        What ``summary()`` of a fitted model returns.

    Returns
    -------
    str
        A module with ``predict(X)``, ``decision_function(X)``, ``effects(X)`` and, for classes with
        probabilities, ``predict_proba(X)``. X is a mapping from names to columns (a dict, a data
        frame) or rows in the order of the training columns. The same model gives the same text.

    Raises
    ------
    NotPortableError
        If the model cannot be written as plain data.
    """
    document = json_document(summary)
    function = document["function"]
    table, needed = _needed_functions(
        {
            "READERS": {one["kind"] for one in function["inputs"]},
            "PARTS": {one["part"] for one in function["variables"]},
            "LEVELS": {k for one in function["variables"] for k in _kinds_in(one["levels"])},
        }
    )
    helpers = "\n\n\n".join(needed)
    imports = [line for name, line in _MODULES.items() if name in _names_in(helpers)]
    imports = sorted(imports, key=lambda line: line.startswith("from"))
    parts = [
        _docstring(document),
        "from __future__ import annotations\n",
        "\n".join([*imports, "from typing import Any\n\nimport numpy as np\n"]),
        _constants(document),
        "\n\n" + _PUBLIC[document["link"]["kind"]].strip() + "\n",
        "\n" + _SHARED.strip() + "\n",
        "\n# What follows is the same for every model: how inputs are read and levels computed.\n",
        "\n" + helpers + "\n",
        "\n" + table,
    ]
    return "\n".join(parts)


def printable(text: str) -> str:
    r"""Return a text in one line: what is not printed is escaped, as in ``'\n'``.

    >>> print(printable("one\ntwo \u2028 three"))
    one\ntwo \u2028 three
    """
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def effects_words(document: Data) -> str:
    """Return how many effects there are."""
    n = len(document["effects"])
    return "1 effect" if n == 1 else f"{n:,} effects"


def _docstring(document: Data) -> str:
    """Return the docstring: what the module predicts, from what, and how well it is known."""
    target = document["target"] or "y"
    what = {"classification": "The class", "survival": "The risk score"}.get(
        document["task"], "Predictions"
    )
    used = ", ".join(one["name"] for one in document["function"]["inputs"]) or "no column"
    paragraphs = [
        f"{what} of {target}: a model of hikernel {document['version']} as plain Python.",
        f"{document['estimator']} with loss {document['loss']}, fitted to {document['n_rows']:,} "
        f"rows of {len(document['columns'])} columns. It uses {used}. It has "
        f"{effects_words(document)}. The file needs Python 3.10 and NumPy, and neither "
        "hikernel nor the data.",
        f"predict(X) takes a mapping from names to columns (a dict, a data frame), or rows with "
        f"all {len(document['columns'])} columns in the order of COLUMNS. A missing value is "
        "None or NaN. A category that is not listed adds nothing (one with an order counts as "
        "missing). decision_function(X) is f itself, and effects(X) what each effect adds to it: "
        f"{document['link']['words']}.",
        "The model knows the rows that it was fitted to. Beyond their range it is extrapolation; "
        "fit again where the columns mean something else, or their values have moved.",
        document["certificate"],
    ]
    lines = [
        "\n".join(textwrap.wrap(printable(one), _WIDTH, break_long_words=False))
        for one in paragraphs
    ]
    # A docstring cannot end early, nor can names in it escape anything.
    text = "\n\n".join(lines).replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{text}\n"""\n'


def _constants(document: Data) -> str:
    """Return the assignments of the numbers of the model."""
    function = document["function"]
    names = [one["name"] for one in document["effects"]]
    positions = [len(names) if t["effect"] is None else t["effect"] for t in function["terms"]]
    names += ["(base)"] if len(names) in positions else []
    order = sorted(range(len(positions)), key=positions.__getitem__)
    out = [
        _assignment("COLUMNS", document["columns"], "Columns of the table, in their order."),
        _assignment("INPUTS", [*map(_input, function["inputs"])], "Columns that the model uses."),
    ]
    if document["classes"] is not None:
        out.append(_assignment("CLASSES", document["classes"], "Labels, in the order of outputs."))
    out += [
        _assignment("EFFECTS", names, "Effects, the largest share of the variance first."),
        _assignment("INTERCEPT", function["intercept"], "Of every output of f."),
        "# Arguments of f: an input, or the indicator of its missing values, and its levels.",
        "VARIABLES: list[dict[str, Any]] = [",
    ]
    for v, one in enumerate(function["variables"]):
        name = function["inputs"][one["input"]]["name"]
        part = " is missing" if one["missing"] else f" ({one['part']})" if one["part"] else ""
        out += [f"    # {printable(name)}{part}"]
        used = [level for term in function["terms"] for w, level in term["factors"] if w == v]
        shorter = {"input": one["input"], "missing": one["missing"]}
        if one["part"] is not None:
            shorter |= {"part": one["part"], "start": one["start"]}
        shorter["levels"] = _up_to(one["levels"], max(used, default=0))
        out += [*_written(shorter, 4, ",")]
    out += [
        "]",
        "# Products of levels, [variable, level] each, with their coefficients per output.",
        "TERMS: list[dict[str, Any]] = [",
    ]
    shown = None
    for i in order:
        if positions[i] != shown:
            shown = positions[i]
            out.append(f"    # {printable(names[shown])}{_share(document, shown)}")
        out += [*_written(function["terms"][i] | {"effect": positions[i]}, 4, ",")]
    return "\n".join([*out, "]"])


def _input(one: Data) -> Data:
    """Return what a reader of a column needs to know."""
    further = {"category": ["labels", "values", "ordered"], "date": ["zone"]}
    return {key: one[key] for key in ["column", "name", "kind", *further.get(one["kind"], [])]}


def _up_to(levels: Data, highest: int) -> Data:
    """Return levels without the numbers of those above the highest one that is used."""
    kind = levels["kind"]
    if kind == "interpolation":
        return levels | {"heights": [row[:highest] for row in levels["heights"]]}
    if kind == "orthonormal":
        both = levels["projections"][:highest]
        shorter = [[one[: j + 1] for one in pair] for j, pair in enumerate(both)]
        return levels | {"projections": shorter, "norms": levels["norms"][:highest]}
    if kind == "asinh":
        return levels | {"inner": _up_to(levels["inner"], highest)}
    return levels


def _share(document: Data, effect: int) -> str:
    if effect >= len(document["effects"]):
        return ""
    return f": {100.0 * document['effects'][effect]['share']:.3g} % of the variance"


def _assignment(name: str, value: Any, comment: str) -> str:
    first, *rest = _written(value, 0, "")
    return "\n".join([f"# {comment}", f"{name} = {first}", *rest])


def _written(value: Any, indent: int, end: str) -> Iterator[str]:
    """Yield the lines of a value as Python writes it, at most 100 characters where possible."""
    room = " " * indent
    text = repr(value)
    fits = indent + len(text) + len(end) + (len("'projections': ") if indent > 4 else 0) <= _WIDTH
    if fits or not isinstance(value, (list, dict)):
        yield f"{room}{text}{end}"
    elif isinstance(value, dict):
        yield f"{room}{{"
        for key, item in value.items():
            first, *rest = _written(item, indent + 4, ",")
            yield f"{room}    {key!r}: {first.lstrip()}"
            yield from rest
        yield f"{room}}}{end}"
    elif any(isinstance(item, (list, dict)) for item in value):
        yield f"{room}["
        for item in value:
            yield from _written(item, indent + 4, ",")
        yield f"{room}]{end}"
    else:
        yield f"{room}["
        yield from _packed([repr(item) for item in value], indent + 4)
        yield f"{room}]{end}"


def _packed(items: list[str], indent: int) -> Iterator[str]:
    """Yield lines that hold as many items as fit."""
    line = " " * indent
    for item in items:
        if len(line) > indent and len(line) + len(item) + 2 > _WIDTH:
            yield line.rstrip()
            line = " " * indent
        line += f"{item}, "
    yield line.rstrip()


def _kinds_in(levels: Data) -> Iterator[str]:
    yield levels["kind"]
    for part in levels.get("parts", []):
        yield from _kinds_in(part)


@cache
def _evaluator() -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Return the functions of the evaluator as text, and its tables of functions by kind."""
    text = (files("hikernel.export") / "evaluator.py").read_text(encoding="utf-8")
    functions, tables = {}, {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = ast.get_source_segment(text, node) or ""
        target = getattr(node, "target", None) or next(iter(getattr(node, "targets", [])), None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Dict):
            tables[target.id] = {
                ast.literal_eval(k): ast.unparse(v)
                for k, v in zip(value.keys, value.values, strict=True)
                if k is not None
            }
    return functions, tables


def _needed_functions(used: dict[str, set[str]]) -> tuple[str, list[str]]:
    """Return the tables of functions by kind, and the functions themselves, in their order."""
    functions, tables = _evaluator()
    chosen = {
        table: {kind: name for kind, name in tables[table].items() if kind in kinds}
        for table, kinds in used.items()
    }
    wanted = [*_ALWAYS, *(name for table in chosen.values() for name in table.values())]
    found: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in found:
            found.add(name)
            wanted += [other for other in _names_in(functions[name]) if other in functions]
    text = ""
    for name, table in chosen.items():
        items = "".join(f'    "{kind}": {function},\n' for kind, function in table.items())
        text += f"{name}: dict[str, Any] = {{\n{items}}}\n"
    return text, [text for name, text in functions.items() if name in found]


def _names_in(source: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


_REGRESSION = '''
def predict(X: Any) -> Any:
    """Return the predictions, shape (n,)."""
    return {value}
'''
_PROBABILITIES = '''


def predict_proba(X: Any) -> Any:
    """Return the probabilities of CLASSES, shape (n, number of classes)."""
    f = decision_function(X)
    {body}
'''
_TWO = '''
def predict(X: Any) -> Any:
    """Return the labels, shape (n,): the second class where f > 0."""
    return np.array(CLASSES)[(decision_function(X) > 0.0).astype(int)]
'''
_SEVERAL = '''
def predict(X: Any) -> Any:
    """Return the labels, shape (n,): the class with the largest f."""
    return np.array(CLASSES)[np.argmax(decision_function(X), axis=1)]
'''
_EXP = '''
def predict(X: Any) -> Any:
    """Return the predicted means, shape (n,)."""
    f = decision_function(X)
    if np.any(f > 500.0):
        raise ValueError(f"Row {np.argmax(f > 500.0)} lies far outside the training data.")
    return np.exp(f)
'''
_LOGISTIC = """p = np.exp(-np.logaddexp(0.0, np.abs(f)))  # of the less likely class
    return np.column_stack([np.where(f > 0.0, p, 1.0 - p), np.where(f > 0.0, 1.0 - p, p)])"""
_SOFTMAX = """weights = np.exp(f - np.max(f, axis=1, keepdims=True))
    return weights / np.sum(weights, axis=1, keepdims=True)"""

_PUBLIC = {
    "identity": _REGRESSION.format(value="decision_function(X)"),
    "exp": _EXP,
    "hazard": _REGRESSION.format(value="decision_function(X)"),
    "logistic": _TWO.rstrip() + _PROBABILITIES.format(body=_LOGISTIC),
    "softmax": _SEVERAL.rstrip() + _PROBABILITIES.format(body=_SOFTMAX),
    "sign": _TWO,
    "argmax": _SEVERAL,
}
"""What users call, for every kind of link."""

_SHARED = '''

def decision_function(X: Any) -> Any:
    """Return f(x), shape (n,), or (n, number of outputs) if there are several."""
    values = read_inputs(X, INPUTS, COLUMNS, READERS)
    f = np.zeros((len(values[0]), len(INTERCEPT))) + np.array(INTERCEPT)
    for part in contributions(values, VARIABLES, TERMS, len(INTERCEPT), LEVELS, PARTS):
        f = f + part
    return f[:, 0] if len(INTERCEPT) == 1 else f


def effects(X: Any) -> dict[str, Any]:
    """Return what each effect adds to f; with the intercept, they sum to f."""
    values = read_inputs(X, INPUTS, COLUMNS, READERS)
    out = {name: np.zeros((len(values[0]), len(INTERCEPT))) for name in EFFECTS}
    parts = contributions(values, VARIABLES, TERMS, len(INTERCEPT), LEVELS, PARTS)
    for term, part in zip(TERMS, parts, strict=True):
        out[EFFECTS[term["effect"]]] += part
    return {name: one[:, 0] if len(INTERCEPT) == 1 else one for name, one in out.items()}
'''
