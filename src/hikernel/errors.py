"""Warning and error classes of hikernel, and the reasons why something ended.

Invalid input raises a plain ``ValueError`` whose message says what to do. The classes here are for
the cases that a caller may want to catch or silence by name.
"""

from __future__ import annotations

from enum import Enum

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "CertificateWarning",
    "ConvergenceWarning",
    "MemoryPlanError",
    "ModelFileError",
    "OutOfTime",
    "Reason",
    "UsageError",
]


class CertificateWarning(UserWarning):
    """The fitted model is valid, but not proven optimal to the requested tolerance."""


class MemoryPlanError(MemoryError):
    """A step would need more memory than is available; raised before it is allocated."""


class ModelFileError(ValueError):
    """A file is damaged, from a newer version, or not a model file; nothing was loaded from it."""


class OutOfTime(Exception):  # noqa: N818  # it is raised and caught inside a fit
    """The user wants an end: the time budget is spent, or Ctrl-C asked to keep what there is."""


class UsageError(ValueError):
    """A command cannot run: its options conflict, or its data are missing."""


class Reason(Enum):
    """Why a solve, a search or a path ended; the value is a sentence, with a remedy if needed."""

    @property
    def sentence(self) -> str:
        """What happened, and what to do about it."""
        return str(self.value)

    def __str__(self) -> str:
        return self.sentence
