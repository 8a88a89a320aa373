"""Model files: one file, no pickle, versioned, checked when loaded.

A model file is a zip archive of JSON and .npy members. Loading a file reads data and creates
objects of a fixed list of classes of this package; no file can make it run other code.

``container`` reads and writes the archive. ``codec`` turns values into JSON and back, and
``arrays`` stores their arrays. ``registry`` lists the classes, ``content`` checks types, and
``soundness`` checks that the parts of a model fit together. The layer above makes estimators of
these parts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hikernel.errors import ModelFileError
from hikernel.persistence.arrays import ArrayReader
from hikernel.persistence.codec import Decoder, Encoder
from hikernel.persistence.container import (
    FORMAT_VERSION,
    MAX_BYTES,
    Contents,
    read_file,
    write_file,
)
from hikernel.persistence.content import ContentError

__all__ = ["FORMAT_VERSION", "MAX_BYTES", "file_in_errors", "load_state", "save_state"]

_Path = str | os.PathLike[str]


def save_state(path: _Path, state: dict[str, Any], kind: str) -> None:
    """Write plain data, arrays and registered objects to a file.

    Parameters
    ----------
    path : str or path
        The file to write.
    state : dict
        Values that :mod:`hikernel.persistence.codec` can encode.
    kind : str
        What is saved: the name of an estimator.
    """
    encoder = Encoder()
    tree = encoder.encode(state)
    write_file(path, Contents(kind, tree, encoder.arrays.members()))


def load_state(path: _Path, *, max_bytes: int = MAX_BYTES) -> tuple[str, dict[str, Any]]:
    """Read what :func:`save_state` wrote: the kind and the state.

    Parameters
    ----------
    path : str or path
        The file.
    max_bytes : int, default=2**30
        Larger files are refused.

    Returns
    -------
    tuple of (str, dict)
        The kind and the state.

    Raises
    ------
    ModelFileError
        If the file is not a valid model file, or larger than ``max_bytes``.
    """
    with file_in_errors(path):
        contents = read_file(path, max_bytes)
        arrays = ArrayReader(contents.arrays)
        state = Decoder(arrays).decode(contents.state)
        arrays.finish()
        if not isinstance(state, dict):
            raise ContentError("its state is not a mapping")
        return contents.kind, state


@contextmanager
def file_in_errors(path: _Path) -> Iterator[None]:
    """Turn a ``ContentError`` into a ``ModelFileError`` that names the file."""
    try:
        yield
    except ContentError as error:
        raise ModelFileError(f"{os.fspath(path)!r} cannot be loaded: {error}.") from error
