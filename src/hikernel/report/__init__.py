"""The report: one self-contained HTML page about a fitted model.

It draws the plain dict of ``summary()`` and knows no estimator. Python only puts the file together;
the page itself is the template, the style sheets and the scripts of this folder.
"""

from __future__ import annotations

from hikernel.report.assembly import page
from hikernel.report.html_file import write_report

__all__ = ["page", "write_report"]
