"""How predictions follow from f in SQL: the columns of the result, for every kind of link."""

from __future__ import annotations

from typing import Any

from hikernel.export.sql_text import INDENT, literal, total

__all__ = ["link_functions", "link_results", "link_stages"]

Data = dict[str, Any]

_DEEP = INDENT * 3


def link_functions(document: Data) -> set[str]:
    """Return the functions of the engine that the link needs."""
    return {"EXP"} if document["link"]["kind"] in ("exp", "logistic", "softmax") else set()


def link_stages(document: Data) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Return table expressions after f: their names, and columns with a comment each."""
    if document["link"]["kind"] != "softmax":
        return []
    names = [f"f{k + 1}" for k in range(len(document["classes"]))]
    return [("top", [("top", _first_largest(names, names), "")]), ("weights", _weights(names))]


def link_results(document: Data) -> list[tuple[str, str]]:
    """Return the columns of the result: name and expression."""
    return _RESULTS[document["link"]["kind"]](document)


def _identity(document: Data) -> list[tuple[str, str]]:
    return [("prediction", "f1")]


def _exponential(document: Data) -> list[tuple[str, str]]:
    # Rows so far outside the training data have no prediction in Python either.
    bounded = "CASE WHEN f1 < -700 THEN 0.0e0 WHEN f1 <= 500 THEN EXP(f1) END"
    return [("prediction", bounded), ("f", "f1")]


def _sign(document: Data) -> list[tuple[str, str]]:
    no, yes = map(literal, document["classes"])
    return [("prediction", f"CASE WHEN f1 > 0 THEN {yes} ELSE {no} END"), ("f", "f1")]


def _logistic(document: Data) -> list[tuple[str, str]]:
    def chance(f: str) -> str:
        return (
            f"CASE WHEN {f} > 700 THEN 0.0e0 WHEN {f} < -700 THEN 1.0e0 "
            f"ELSE 1.0e0 / (1.0e0 + EXP({f})) END"
        )

    no, yes = document["classes"]
    chances = [(f"probability_{no}", chance("f1")), (f"probability_{yes}", chance("(-f1)"))]
    return [*_sign(document), *chances]


def _argmax(document: Data) -> list[tuple[str, str]]:
    labels = [literal(label) for label in document["classes"]]
    names = [f"f{k + 1}" for k in range(len(labels))]
    chosen = ("prediction", _first_largest(names, labels))
    return [chosen, *((f"f_{c}", f) for c, f in zip(document["classes"], names, strict=True))]


def _softmax(document: Data) -> list[tuple[str, str]]:
    labels = document["classes"]
    sums = total([f"+ w{k + 1}" if k else "w1" for k in range(len(labels))], INDENT * 2)
    chances = [(f"probability_{c}", f"w{k + 1} / ({sums})") for k, c in enumerate(labels)]
    return [*_argmax(document), *chances]


def _weights(names: list[str]) -> list[tuple[str, str, str]]:
    """Return exp(f - the largest f) per class."""
    out = []
    for k, name in enumerate(names):
        d = f"{name} - top"
        out.append((f"w{k + 1}", f"CASE WHEN {d} < -700 THEN 0.0e0 ELSE EXP({d}) END", ""))
    return out


def _first_largest(names: list[str], values: list[str]) -> str:
    """Return the value of the first name that is largest: the first that no later one exceeds."""
    cases = []
    for k, name in enumerate(names[:-1]):
        test = " AND ".join(f"{name} >= {other}" for other in names[k + 1 :])
        cases.append(f"\n{_DEEP}WHEN {test} THEN {values[k]}")
    return f"CASE{''.join(cases)}\n{_DEEP}ELSE {values[-1]}\n{INDENT * 2}END"


_RESULTS = {
    "identity": _identity,
    "exp": _exponential,
    "hazard": _identity,
    "logistic": _logistic,
    "softmax": _softmax,
    "sign": _sign,
    "argmax": _argmax,
}
"""Results for every kind of link."""
