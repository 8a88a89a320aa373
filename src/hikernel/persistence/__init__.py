"""Model files: one file, no pickle, versioned, checked when loaded.

A model file is a zip archive of JSON and .npy members. Loading one reads data and makes objects of
a fixed list of classes of this package; no file can make it run anything. ``container`` is the
file, ``codec`` turns values into JSON and ``arrays``, ``registry`` lists the classes, ``content``
checks types, ``soundness`` whether the parts of a model fit together. Estimators are made of these
parts one layer up.
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

__all__ = ["FORMAT_VERSION", "MAX_BYTES", "load_state", "naming", "save_state"]

_Path = str | os.PathLike[str]


def save_state(path: _Path, state: dict[str, Any], kind: str) -> None:
    """Write plain data, arrays and registered objects to a file.

    Parameters
    ----------
    path : str or path
        Where to.
    state : dict
        What :mod:`hikernel.persistence.codec` can encode.
    kind : str
        What the state is of.
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

    Raises
    ------
    ModelFileError
        Where the file is not one that hikernel wrote.
    """
    with naming(path):
        contents = read_file(path, max_bytes)
        arrays = ArrayReader(contents.arrays)
        state = Decoder(arrays).decode(contents.state)
        arrays.finish()
        if not isinstance(state, dict):
            raise ContentError("its state is not a mapping")
        return contents.kind, state


@contextmanager
def naming(path: _Path) -> Iterator[None]:
    """Say of which file an error speaks."""
    try:
        yield
    except ContentError as error:
        raise ModelFileError(f"{os.fspath(path)!r} cannot be loaded: {error}.") from error
