"""From a table of the user to the graph of all products of functions of its columns.

``reading`` extracts the columns of frames and arrays, ``kinds`` distinguishes numbers from
categories and encodes both, ``table`` stores the encoding for new tables, ``choices`` selects a
basis for every column, ``column_grid`` builds the graph, and ``column_design`` is the result.
"""

from hikernel.columns.basis_choice import BasisChoice
from hikernel.columns.choices import choose_bases
from hikernel.columns.column_design import ColumnDesign
from hikernel.columns.column_grid import ColumnGrid
from hikernel.columns.table import ColumnTable, TableRows

__all__ = [
    "BasisChoice",
    "ColumnDesign",
    "ColumnGrid",
    "ColumnTable",
    "TableRows",
    "choose_bases",
]
