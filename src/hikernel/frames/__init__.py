"""Tables as users have them, turned into the float64 matrix that bases are fitted to.

Reading frames and arrays, the kind of each column, codes of categories and missing values live
here; what a basis makes of the numbers does not.
"""

from __future__ import annotations

from hikernel.frames.columns import ColumnTable
from hikernel.frames.kinds import Category, Kind
from hikernel.frames.reading import read_table, take_rows

__all__ = ["Category", "ColumnTable", "Kind", "read_table", "take_rows"]
