"""BokehJS, the library that draws the plots of the page, as text from the installed ``bokeh``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

__all__ = ["bokeh_scripts"]

NAMES = ("bokeh.min.js", "bokeh-api.min.js")
"""The core with its glyphs, and the plotting interface on top of it."""


@cache
def bokeh_scripts() -> tuple[str, ...]:
    """Return the scripts of BokehJS in the order in which a page runs them."""
    try:
        import bokeh.server
    except ImportError:
        raise ImportError(
            "A report is drawn with bokeh, which is not installed; "
            "install it with: pip install 'hikernel[report]'."
        ) from None
    folder = files(bokeh.server) / "static" / "js"
    return tuple((folder / name).read_text(encoding="utf-8") for name in NAMES)
