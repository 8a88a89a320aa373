"""Engines: the only part of hikernel that knows where the rows live.

An engine holds features for n rows and answers the few questions of
:class:`~hikernel.engines.protocol.Engine`. Everything of the size of the hull is plain NumPy in
the layers above. A new engine of a grid of columns is one file and one line in ``ENGINES``; it then
joins ``tests/engines``.
"""

from __future__ import annotations

from hikernel.engines.numpy_engine import NumpyEngine
from hikernel.engines.protocol import Engine, GridEngineType, Node

__all__ = ["ENGINES", "Engine", "Node", "NumpyEngine", "choose_engine"]

ENGINES: dict[str, GridEngineType] = {"numpy": NumpyEngine}
"""Engines of a grid of columns by name; "auto" takes the first."""


def choose_engine(name: object) -> GridEngineType:
    """Return the class of an engine by its name.

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
