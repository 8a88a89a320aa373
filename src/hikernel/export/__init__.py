"""A fitted model as a file that needs no hikernel: Python with NumPy, SQL, or JSON.

Everything is made from the plain dict of ``summary()``; no module here knows an estimator.
"""

from __future__ import annotations

from hikernel.export.document import json_document, json_schema
from hikernel.export.python_text import python_source
from hikernel.export.sql_query import sql_source

__all__ = ["json_document", "json_schema", "python_source", "sql_source"]
