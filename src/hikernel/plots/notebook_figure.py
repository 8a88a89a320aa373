"""A figure that a notebook shows once.

The inline backend shows every open figure at the end of a cell, and IPython shows the value of its
last line as well: a function that returns a figure would be seen twice.
"""

from __future__ import annotations

import matplotlib
from matplotlib._pylab_helpers import Gcf
from matplotlib.figure import Figure

__all__ = ["NotebookFigure"]


class NotebookFigure(Figure):
    """A figure of matplotlib, displayed by IPython only where the backend will not do it."""

    def _ipython_display_(self) -> None:
        """Display nothing, or hand over to the usual display by ``NotImplementedError``."""
        open_ones = [manager.canvas.figure for manager in Gcf.get_all_fig_managers()]
        if "inline" not in matplotlib.get_backend() or self not in open_ones:
            raise NotImplementedError
