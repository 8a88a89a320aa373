"""Engines: the only part of hikernel that knows where the rows live.

An engine holds one-variable level features for n rows and answers the few questions of
:class:`~hikernel.engines.protocol.Engine`. Everything of the size of the hull is plain NumPy in
the layers above.
"""

from hikernel.engines.numpy_engine import NumpyEngine
from hikernel.engines.protocol import Engine, Node

__all__ = ["Engine", "Node", "NumpyEngine"]
