"""Puts the page together: template, styles, scripts, BokehJS and the summary as JSON.

Nothing that comes from data is written as markup. The summary is inert JSON in which the characters
that could end a script element are escaped, and the content security policy of the page lists the
hashes of our scripts, so that a browser runs these and nothing else, and loads nothing.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from hikernel._version import SUMMARY_SCHEMA
from hikernel.report.bokeh_files import bokeh_scripts
from hikernel.report.rounding import lighter

__all__ = ["SCRIPTS", "page", "script_json"]

PACKED = 500_000
"""Characters of JSON from which on it is deflated: steps times steps shrink to a tenth."""

SCRIPTS = (
    "evaluate.js",
    "format.js",
    "spelling.js",
    "dom.js",
    "theme.js",
    "figure.js",
    "tooltip.js",
    "views.js",
    "curves.js",
    "bars.js",
    "surface.js",
    "number_table.js",
    "effect_view.js",
    "thumbnail.js",
    "head.js",
    "quality.js",
    "effects.js",
    "variables.js",
    "waterfall.js",
    "inputs.js",
    "whatif.js",
    "certificate.js",
    "hull_layout.js",
    "hull.js",
    "path_plot.js",
    "path.js",
    "about.js",
    "main.js",
)
"""Our scripts in the order in which the page runs them."""
STYLES = ("base.css", "parts.css", "print.css")

_PLACE = re.compile(r"\[\[(policy|title|css|summary|scripts)\]\]")
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
# What HTML allows in no text, and marks that turn the direction of what follows.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


def page(summary: Mapping[str, Any]) -> str:
    """Return the page about a fitted model as text.

    Parameters
    ----------
    summary : dict
        What ``summary()`` of a fitted model returns.

    Returns
    -------
    str
        A complete HTML document that needs no other file and no network.
    """
    _check(summary)
    scripts = [*bokeh_scripts(), _own_script()]
    parts = {
        "policy": _policy(scripts),
        "title": html.escape(_title(summary)),
        "css": "\n".join(_read(name) for name in STYLES),
        "summary": _data_block(script_json(lighter(summary))),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    # One pass: what is put in is not looked at again.
    return _PLACE.sub(lambda match: parts[match[1]], _read("template.html"))


def script_json(value: Any) -> str:
    r"""Return JSON in ASCII that is safe inside a script element.

    Examples
    --------
    >>> print(script_json("</script>"))
    "\u003c/script\u003e"
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda match: _ESCAPES[match[0]], text)


def _data_block(text: str) -> str:
    """Return the element with the summary, which is data to a browser and not a script."""
    if len(text) < PACKED:
        return f'<script type="application/json" id="summary">{text}</script>'
    packed = base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")
    return f'<script type="application/octet-stream" id="summary">{packed}</script>'


def _check(summary: Mapping[str, Any]) -> None:
    if not isinstance(summary, Mapping) or "schema" not in summary:
        raise TypeError(
            "A report is made from the dict that summary() of a fitted model returns, "
            f"got {type(summary).__name__}."
        )
    if summary["schema"] != SUMMARY_SCHEMA:
        raise ValueError(
            f"The summary has schema {summary['schema']!r}, this version of hikernel draws "
            f"schema {SUMMARY_SCHEMA}; make the report with the version that made the summary."
        )


def _title(summary: Mapping[str, Any]) -> str:
    target = summary.get("target")
    words = f"A model of {target}" if target else f"A {summary.get('task', '')} model"
    return _UNSEEN.sub(" ", words).strip()[:120]


def _policy(scripts: list[str]) -> str:
    """Return the content security policy: these scripts, inline styles, no network."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in scripts]
    listed = " ".join(f"'sha256-{digest.decode()}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {listed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def _own_script() -> str:
    return "\n".join(_read(name) for name in SCRIPTS)


@cache
def _read(name: str) -> str:
    return (files("hikernel.report") / name).read_text(encoding="utf-8")
