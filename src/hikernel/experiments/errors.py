"""The error of the reproduction that its user can put right."""

from __future__ import annotations

__all__ = ["UsageError"]


class UsageError(ValueError):
    """Options that clash, data or results that are not there; the message says what to do."""
