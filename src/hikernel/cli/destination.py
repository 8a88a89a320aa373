"""Where a command writes: checked before the work starts, and written whole after it.

Nothing that exists is overwritten without --force, and what is not complete is not seen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from hikernel.cli.console import BadInput, WorkFailed

__all__ = ["check_destination", "force_option", "write_new"]

force_option = click.option("--force", is_flag=True, help="Overwrite files that exist.")


def check_destination(path: str, *, force: bool, inputs: Sequence[str] = ()) -> Path:
    """Return the path to write to, with links resolved; raise BadInput if nothing can be there.

    Parameters
    ----------
    path : str
        The file, as the user named it.
    force : bool
        Whether it may exist.
    inputs : sequence of str
        Files that the command reads, which are never overwritten.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise BadInput(f"'{path}' is a folder; name a file in it.")
    if not target.parent.is_dir():
        raise BadInput(f"There is no folder '{target.parent}' for '{path}'; create it first.")
    if target.exists():
        if not target.is_file():
            raise BadInput(f"'{path}' is no regular file; name another one.")
        if any(os.path.exists(name) and os.path.samefile(name, target) for name in inputs):
            raise BadInput(f"'{path}' is a file that this command reads; name another one.")
        if not force:
            raise BadInput(f"'{path}' exists; name another file, or overwrite it with --force.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise BadInput(f"The folder '{target.parent}' cannot be written to; name another one.")
    return target


def write_new(target: Path, write: Callable[[Path], object], *, force: bool) -> None:
    """Have ``write`` write the target, all of it or nothing.

    Parameters
    ----------
    target : Path
        The file, from ``check_destination``.
    write : callable
        Writes to the path that it gets, and leaves no part of a file.
    force : bool
        Whether the target may exist; it may have come into being since it was checked.
    """
    if target.exists() and not force:
        raise WorkFailed(f"'{target}' was written by somebody else meanwhile, and is kept.")
    try:
        write(target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise WorkFailed(f"'{target}' cannot be written: {reason}.") from error
