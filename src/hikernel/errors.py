"""Warnings and errors that hikernel raises on its own account.

Mistakes in the input are plain ``ValueError`` with a sentence that says what to do; the classes
here are for what a caller may want to catch or silence by name.
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
    """The fitted model is valid but is not proven optimal to the tolerance asked for."""


class MemoryPlanError(MemoryError):
    """The work would need more memory than the machine has; raised before any of it is taken."""


class ModelFileError(ValueError):
    """A model file is damaged, of a newer version, or no model file; nothing of it was loaded."""


class UsageError(ValueError):
    """A command cannot do what it was asked: options that clash, or data that are not there."""
