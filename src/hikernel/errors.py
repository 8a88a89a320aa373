"""Warning and error classes of hikernel.

Invalid input raises a plain ``ValueError`` whose message says what to do. The classes here are for
the cases that a caller may want to catch or silence by name.
"""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "CertificateWarning",
    "ConvergenceWarning",
    "MemoryPlanError",
    "ModelFileError",
    "UsageError",
]


class CertificateWarning(UserWarning):
    """The fitted model is valid, but not proven optimal to the requested tolerance."""


class MemoryPlanError(MemoryError):
    """A step would need more memory than is available; raised before it is allocated."""


class ModelFileError(ValueError):
    """A file is damaged, from a newer version, or not a model file; nothing was loaded from it."""


class UsageError(ValueError):
    """A command cannot run: its options conflict, or its data are missing."""
