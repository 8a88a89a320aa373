"""Writes the page to a file: all of it or nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hikernel.persistence.whole_file import check_place, write_whole
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
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"path must be the name of a file such as 'report.html', got {type(path).__name__}."
        )
    if not os.fspath(path):
        raise ValueError("path is empty; give the name of a file such as 'report.html'.")
    target = check_place(path, "report.html")
    content = page(summary).encode("utf-8")
    try:
        write_whole(target, lambda stream: stream.write(content))
    except OSError as error:
        sentence = (
            f"The report cannot be written to '{target}' ({error.strerror or error}); "
            "choose another file or folder."
        )
        raise OSError(error.errno, sentence) from error
    return target
