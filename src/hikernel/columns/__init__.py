"""Columns: a table as its user has it, and the graph that its columns span.

``reading`` takes the columns out of frames and arrays, ``kinds`` tells numbers from categories and
encodes both, ``table`` keeps how that was done, ``choices`` gives every column a basis, ``grid``
makes a graph of them.
"""

from hikernel.columns.choices import BasisChoice, choose_bases
from hikernel.columns.column_grid import ColumnDesign, ColumnGrid
from hikernel.columns.table import ColumnTable, TableRows

__all__ = [
    "BasisChoice",
    "ColumnDesign",
    "ColumnGrid",
    "ColumnTable",
    "TableRows",
    "choose_bases",
]
