"""Memory is planned before it is taken."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hikernel.errors import MemoryPlanError

__all__ = ["MemoryPlan", "available_bytes", "require_memory"]


def available_bytes() -> int | None:
    """Return the memory that can be taken without swapping, or None where the system won't tell."""
    found = [free for free in (_free_in_container(), _free_on_machine()) if free is not None]
    return min(found, default=None)


def _free_on_machine() -> int | None:
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _free_in_container() -> int | None:
    """Return what a control group (version 2) leaves, or None without a limit."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = int((folder / "memory.max").read_text())
        return max(0, limit - int((folder / "memory.current").read_text()))
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class MemoryPlan:
    """What a piece of work will take, before it is taken.

    Attributes
    ----------
    kept : int
        Bytes that stay in use, those of the user's own matrices included.
    working : int
        Bytes on top of these while it works.
    to_take : int
        Bytes that are not in use yet.
    """

    kept: int
    working: int
    to_take: int

    def __str__(self) -> str:
        available = available_bytes()
        free = "" if available is None else f"; {available / 2**30:.2f} GiB are available"
        return (
            f"{self.kept / 2**30:.2f} GiB of matrices and {self.working / 2**30:.2f} GiB to work "
            f"with, of which {self.to_take / 2**30:.2f} GiB are still to be taken{free}"
        )


def require_memory(n_numbers: int, what: str, remedy: str) -> None:
    """Raise :class:`MemoryPlanError` unless ``n_numbers`` doubles fit into memory.

    Parameters
    ----------
    n_numbers : int
        Float64 numbers about to be allocated.
    what, remedy : str
        What needs them, and what the user can do about it.
    """
    available = available_bytes()
    needed = 8 * n_numbers
    if available is not None and needed > available:
        raise MemoryPlanError(
            f"{what} would take {needed / 2**30:.1f} GiB and {available / 2**30:.1f} GiB are "
            f"available. {remedy}"
        )
