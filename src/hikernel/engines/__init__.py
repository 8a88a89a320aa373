"""Engines: the only part of hikernel that knows how the rows are stored.

An engine holds the features of n rows and implements the methods of
:class:`~hikernel.engines.protocol.Engine`. Arrays of the size of the hull are plain NumPy arrays in
the layers above. To add an engine for a grid of columns, write one file and add one line to
``ENGINES``; the tests in ``tests/engines`` then run on it too.
"""

from __future__ import annotations

from hikernel.engines.numpy_engine import NumpyEngine
from hikernel.engines.protocol import Engine, GridEngineType, Node
from hikernel.engines.torch_device import LEAST_NUMBERS, TorchType, gpu_pays

__all__ = [
    "ENGINES",
    "Engine",
    "Node",
    "NumpyEngine",
    "choose_engine",
]

ENGINES: dict[str, GridEngineType] = {"numpy": NumpyEngine, "torch": TorchType()}
"""Engines for a grid of columns, by name. "torch" can be followed by a device, as in
"torch:cuda:1"."""


def choose_engine(name: object, n_numbers: int = 0) -> GridEngineType:
    """Return the engine class of a given name; raise if what it needs is not here.

    Parameters
    ----------
    name : str
        A key of ``ENGINES``, "torch:cpu", "torch:cuda" or "torch:cuda:1", or "auto": NumPy, or
        torch where there is a GPU and it pays.
    n_numbers : int
        Rows times stored columns, for "auto".

    Examples
    --------
    >>> choose_engine("auto").__name__
    'NumpyEngine'
    """
    if name == "auto":
        large = n_numbers >= LEAST_NUMBERS and gpu_pays(n_numbers)
        return ENGINES["torch"] if large else NumpyEngine
    if isinstance(name, str) and TorchType.is_name(name):
        TorchType(name).device()
        return TorchType(name)
    if isinstance(name, str) and name in ENGINES:
        return ENGINES[name]
    listed = ", ".join(repr(known) for known in ("auto", *ENGINES, "torch:cpu", "torch:cuda:0"))
    raise ValueError(f"engine must be one of {listed}, got {name!r}.")


def is_engine_name(name: object) -> bool:
    """Return whether ``choose_engine`` knows a name, even if what it needs is not here.

    >>> is_engine_name("torch:cuda:7"), is_engine_name("nupmy")
    (True, False)
    """
    return isinstance(name, str) and (name == "auto" or name in ENGINES or TorchType.is_name(name))


def engine_for_prediction(name: object) -> GridEngineType:
    """Return the engine class for new rows: NumPy for "auto", and where no GPU or torch is.

    A model predicts also where it could not have been fitted.
    """
    if name == "auto":
        return NumpyEngine
    try:
        return choose_engine(name)
    except (ImportError, ValueError):
        if not is_engine_name(name):
            raise
        return NumpyEngine
