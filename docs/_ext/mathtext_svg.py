"""Formulas as inline SVG, drawn by matplotlib when the pages are built.

The usual renderers load a script from the network when a page is read. These pages need none: a
formula is part of the page, has the colour of the text around it, and carries its source as a label
for screen readers. What matplotlib cannot draw is a warning, and so an error of ``make docs``.
"""

from __future__ import annotations

import html
import io
import re
from functools import cache
from typing import Any

EM = 100.0
"""Points to an em of the page. Sizes are rounded to points, so that it is large."""

_INK = "#010203"
"""A colour that nothing else has; the colour of the text takes its place."""


@cache
def drawn(formula: str, scale: float) -> str:
    """Return a formula as an <svg> element, sized in em and set on the baseline of the text.

    Raises
    ------
    ValueError
        If matplotlib cannot read it.
    """
    from matplotlib import rc_context
    from matplotlib.font_manager import FontProperties
    from matplotlib.mathtext import math_to_image

    file = io.BytesIO()
    font = FontProperties(size=scale * EM, math_fontfamily="stix")
    clear = {"figure.facecolor": "none", "savefig.facecolor": "none"}  # pages may be dark
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "hikernel", **clear}):
        depth = math_to_image(f"${formula}$", file, font, dpi=72, format="svg", color=_INK)
    svg = file.getvalue().decode()
    width, height = (float(size) for size in re.findall(r'(?:width|height)="([\d.]+)pt"', svg)[:2])
    inside = svg[svg.index(">", svg.index("<svg")) + 1 :]
    inside = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", inside, flags=re.DOTALL)
    inside = inside.replace(_INK, "currentColor")
    label = html.escape(formula, quote=True)
    return (
        f'<svg class="formula" role="img" aria-label="{label}" viewBox="0 0 {width} {height}" '
        f'style="width:{width / EM:.3f}em;height:{height / EM:.3f}em;'
        f'vertical-align:{-depth / EM:.3f}em" xmlns:xlink="http://www.w3.org/1999/xlink">'
        + re.sub(r"\s+", " ", inside).strip()
    )


def _svg(node: Any, scale: float) -> str:
    from sphinx.util import logging

    formula = " ".join(node.astext().split())
    try:
        return drawn(formula, scale)
    except ValueError as problem:
        logging.getLogger(__name__).warning(
            "This formula cannot be drawn: %s\n%s", formula, problem, location=node
        )
        return f"<code>{html.escape(formula)}</code>"


def visit_inline(translator: Any, node: Any) -> None:
    """Write a formula in the text."""
    from docutils.nodes import SkipNode

    translator.body.append(_svg(node, 1.04))
    raise SkipNode


def visit_block(translator: Any, node: Any) -> None:
    """Write a formula on lines of its own; a wide one scrolls."""
    from docutils.nodes import SkipNode

    translator.body.append(f'<div class="formula-block">{_svg(node, 1.08)}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Make the renderer known under the name that conf.py chooses."""
    app.add_html_math_renderer("mathtext_svg", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
