"""Writes the page to a file: all of it or nothing."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

from hikernel.report.assembly import page

__all__ = ["write_report"]


def write_report(summary: dict[str, Any], path: str | os.PathLike[str]) -> Path:
    """Write the page about a fitted model to a file.

    The page is written beside the file and then put in its place: readers see the old file or the
    new one, never a part of it.

    Parameters
    ----------
    summary : dict
        What ``summary()`` of a fitted model returns.
    path : str or path-like
        The file, usually ending in ``.html``. Its folder must exist.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ImportError
        If bokeh is not installed.
    OSError
        If the path is a folder, its folder does not exist, or it cannot be written to.
    """
    target = _check_place(path)
    content = page(summary).encode("utf-8")
    partial = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(partial, "xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, target)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise type(error)(
                f"The report cannot be written to '{target}' ({error.strerror or error}); "
                "choose another file or folder."
            ) from error
        raise
    return target


def _check_place(path: str | os.PathLike[str]) -> Path:
    """Return the path to write to, with links resolved; raise if no file can be there."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"path must be the name of a file such as 'report.html', got {type(path).__name__}."
        )
    if not os.fspath(path):
        raise ValueError("path is empty; give the name of a file such as 'report.html'.")
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(
            f"'{target}' is a folder; give a file name such as '{target / 'report.html'}'."
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder '{target.parent}'; create it first.")
    return target
