"""Files that are whole or not there: written beside their place, and then moved into it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

__all__ = ["check_place", "write_whole"]


def check_place(path: str | os.PathLike[str], example: str) -> Path:
    """Return the path to write to, with links resolved; raise if no file can be there.

    Parameters
    ----------
    path : str or path
        The file, as the user named it.
    example : str
        A name for it, for error messages.

    Raises
    ------
    OSError
        If the path is a folder, or if its folder does not exist.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(
            f"'{target}' is a folder; give a file name such as '{target / example}'."
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder '{target.parent}'; create it first.")
    return target


def write_whole(target: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file: readers see the old one or the new one, never a part of it.

    Parameters
    ----------
    target : Path
        The file, which is replaced if it exists.
    write : callable
        Writes the content to the stream that it gets.

    Raises
    ------
    OSError
        If the file cannot be written; it names ``target``. The old file is unchanged.
    """
    partial = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(partial, "xb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, target)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (str(partial), None):
            # Name the file of the user, who does not know of the temporary file. A full disk, found
            # while writing, names none.
            raise OSError(error.errno, error.strerror or str(error), str(target)) from error
        raise
