"""The model as one JSON document: f as plain data, and how predictions follow from it.

It is the ``function`` of ``summary()`` with what is needed around it, and nothing about the fit.
The other formats are written from this document.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from hikernel._version import SUMMARY_SCHEMA
from hikernel.explain.portable import NotPortableError

__all__ = ["LINKS", "SCHEMA", "json_document", "json_schema"]

SCHEMA = "urn:hikernel:model:1"
"""Name of the schema of the document; a change that breaks its readers gives it another number."""

LINKS = {
    "identity": "the prediction is f",
    "exp": "the prediction is exp(f)",
    "hazard": "the prediction is f, and the hazard is exp(f) times the baseline hazard",
    "logistic": "P(second class) = 1 / (1 + exp(-f)); the second class is predicted where f > 0",
    "softmax": "P(class k) is proportional to exp(f[k]); the largest f[k] is predicted",
    "sign": "the second class is predicted where f > 0",
    "argmax": "the class with the largest f[k] is predicted",
}
"""How predictions follow from f, for every kind of link that can be exported."""

_KINDS = ("number", "boolean", "category", "date", "duration")
"""Kinds of inputs that can be exported."""

_INPUT = ("column", "name", "kind", "labels", "values", "ordered", "zone")
_EFFECT = ("name", "variables", "share", "shape")

Data = dict[str, Any]


def json_document(summary: Mapping[str, Any]) -> Data:
    """Return the model as plain data that `json_schema` describes.

    Parameters
    ----------
    summary : dict
        What ``summary()`` of a fitted model returns.

    Returns
    -------
    dict
        Text, numbers, booleans, None, lists and dicts with text as keys. Floats written by
        ``json.dumps`` are read back without loss.

    Raises
    ------
    NotPortableError
        If f is not known as plain data, or if its link or the kind of an input is a new one.
    """
    _check(summary)
    function = summary["function"]
    effects = [{key: one[key] for key in _EFFECT} for one in summary["effects"]]
    return {
        "schema": SCHEMA,
        "version": summary["version"],
        "estimator": summary["estimator"],
        "task": summary["task"],
        "target": summary["target"],
        "classes": summary["class_values"],
        "outputs": list(summary["outputs"]),
        "loss": summary["loss"],
        "link": {"kind": summary["link"]["kind"], "words": _link_words(summary)},
        "offset": summary["data"]["offset"],
        "exposure": summary["data"]["exposure"],
        "alpha": summary["alpha"],
        "refit": summary["refit"],
        "n_rows": summary["data"]["n_rows"],
        "certificate": summary["certificate"]["words"],
        "columns": summary["data"]["names"],
        "effects": effects,
        "function": {
            "intercept": function["intercept"],
            "inputs": [{key: one[key] for key in _INPUT} for one in function["inputs"]],
            "variables": function["variables"],
            "terms": function["terms"],
        },
    }


@cache
def json_schema() -> Data:
    """Return the JSON Schema (draft 2020-12) of the document."""
    text = (files("hikernel.export") / "model.schema.json").read_text(encoding="utf-8")
    schema: Data = json.loads(text)
    return schema


def _link_words(summary: Mapping[str, Any]) -> str:
    """Return how predictions follow from f, and from what the rows of the fit had beside it."""
    words = [LINKS[summary["link"]["kind"]]]
    offset, exposure = summary["data"]["offset"], summary["data"]["exposure"]
    if offset is not None:
        words.append(
            f"the fit had an offset ({offset}), which is no part of this f: predictions are for an "
            "offset of 0, and that of a row is to be added to its f before anything else"
        )
    if exposure is not None:
        words.append(
            f"the fit had an exposure ({exposure}): predictions are for an exposure of 1, and are "
            "to be multiplied by that of a row"
        )
    return "; ".join(words)


def _check(summary: Mapping[str, Any]) -> None:
    if not isinstance(summary, Mapping) or "schema" not in summary:
        raise TypeError(
            "A model is exported from the dict that summary() of a fitted model returns, "
            f"got {type(summary).__name__}."
        )
    if summary["schema"] != SUMMARY_SCHEMA:
        raise ValueError(
            f"The summary has schema {summary['schema']!r}, this version of hikernel exports "
            f"schema {SUMMARY_SCHEMA}; export with the version that made the summary."
        )
    if summary["function"] is None:
        raise NotPortableError(f"The model cannot be exported. {summary['function_note']}")
    kind = summary["link"]["kind"]
    if kind not in LINKS:
        raise NotPortableError(
            f"The model cannot be exported: how its predictions follow from f ({kind!r}) is "
            f"known for {', '.join(LINKS)} only."
        )
    for one in summary["function"]["inputs"]:
        if one["kind"] not in _KINDS:
            raise NotPortableError(
                f"The model cannot be exported: its column {one['name']!r} is of the kind "
                f"{one['kind']!r}, and {', '.join(_KINDS)} can be exported; replace it by numbers "
                "before the fit."
            )
