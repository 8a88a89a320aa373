"""Engines: the only part of hikernel that knows how the rows are stored.

An engine holds the features of n rows and implements the methods of
:class:`~hikernel.engines.protocol.Engine`. Arrays of the size of the hull are plain NumPy arrays in
the layers above. To add an engine for a grid of columns, write one file and add one line to
``ENGINES``; the tests in ``tests/engines`` then run on it too.
"""

from __future__ import annotations

from hikernel.engines.numpy_engine import NumpyEngine
from hikernel.engines.protocol import Engine, GridEngineType, Node

__all__ = ["ENGINES", "Engine", "Node", "NumpyEngine", "choose_engine"]

ENGINES: dict[str, GridEngineType] = {"numpy": NumpyEngine}
"""Engines for a grid of columns, by name; "auto" means the first."""


def choose_engine(name: object) -> GridEngineType:
    """Return the engine class of a given name.

    Parameters
    ----------
    name : str
        A key of ``ENGINES``, or "auto".

    Examples
    --------
    >>> choose_engine("auto").__name__
    'NumpyEngine'
    """
    if name == "auto":
        return next(iter(ENGINES.values()))
    if isinstance(name, str) and name in ENGINES:
        return ENGINES[name]
    listed = ", ".join(repr(known) for known in ("auto", *ENGINES))
    raise ValueError(f"engine must be one of {listed}, got {name!r}.")
