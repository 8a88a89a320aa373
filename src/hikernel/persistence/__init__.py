"""Models in files: one file, no pickle, versioned, checked when loaded.

A model file is a zip archive of JSON and .npy members. Loading one reads data and makes objects of
a fixed list of classes of this package; no file can make it run anything. Predictions of a loaded
model equal those of the saved one to the last bit.

A file has no rows of X. Where a basis has knots (the kernel, spline and rank bases) it keeps some
standardised values of the column; ``dual_coef_`` has one number a training row and can be left out.
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
from hikernel.persistence.models import estimator_from_state, estimator_state

__all__ = [
    "FORMAT_VERSION",
    "MAX_BYTES",
    "estimator_from_state",
    "estimator_state",
    "load",
    "load_state",
    "save",
    "save_state",
]

_Path = str | os.PathLike[str]


def save(estimator: Any, path: _Path, *, dual_coef: bool = True) -> None:
    """Write a fitted estimator to a file.

    The file appears in one step: an error leaves what was there before.

    Parameters
    ----------
    estimator : HKLRegressor or HKLClassifier
        Fitted.
    path : str or path
        Where to; the extension is free, ".hik" by custom. An old file is replaced.
    dual_coef : bool, default=True
        Whether to keep ``dual_coef_``, whose size is that of the training data. Without it the
        file has the size of the terms and bases, and the loaded ``dual_coef_`` has no rows.

    Raises
    ------
    ValueError
        Where the estimator is not fitted, or holds what only pickle can store: a kernel, basis or
        loss of your own, or a random generator.
    OSError
        Where the path is a folder, its folder is not there, or it cannot be written to.

    Warns
    -----
    UserWarning
        Where ``cv`` or ``scoring`` is an object, which a file cannot hold: the loaded model
        predicts the same, and has the default of that parameter.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> from hikernel import HKLRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(100, 3))
    >>> model = HKLRegressor(alpha=0.01).fit(X, X[:, 0] * X[:, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, os.path.join(folder, "model.hik"))
    ...     again = load(os.path.join(folder, "model.hik"))
    >>> bool(np.all(again.predict(X) == model.predict(X)))
    True
    """
    state = estimator_state(estimator, dual_coef=dual_coef)
    save_state(path, state, type(estimator).__name__)


def load(path: _Path, *, max_bytes: int = MAX_BYTES) -> Any:
    """Read a fitted estimator from a file that :func:`save` wrote.

    Safe with files from anywhere: nothing in a file is executed, and loading takes memory and time
    in proportion to its size.

    The loaded model has the methods and fitted attributes of the saved one except for ``path_``:
    of a cross-validated model a file keeps the choice (``alpha_``, ``refit_``, ``cv_results_``,
    ``best_score_``) and the model at that alpha, and asking for ``path_`` is an AttributeError.
    Solve the path again with :func:`~hikernel.hkl_path`, or keep the model by pickle.
    ``dual_coef_`` has no rows where ``save`` was told to leave it out. Of the parameters, arrays
    come back as lists, and splitters and scorers as the defaults of ``cv`` and ``scoring``.

    Parameters
    ----------
    path : str or path
        The file.
    max_bytes : int, default=2**30
        Larger files are refused.

    Returns
    -------
    HKLRegressor, HKLClassifier, HKLRegressorCV or HKLClassifierCV

    Raises
    ------
    ModelFileError
        Where the file is damaged, of a newer version, or no hikernel model; the message says which.
    OSError
        Where it is not there or cannot be read.
    """
    kind, state = load_state(path, max_bytes=max_bytes)
    with _naming(path):
        return estimator_from_state(kind, state)


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
    with _naming(path):
        contents = read_file(path, max_bytes)
        arrays = ArrayReader(contents.arrays)
        state = Decoder(arrays).decode(contents.state)
        arrays.finish()
        if not isinstance(state, dict):
            raise ContentError("its state is not a mapping")
        return contents.kind, state


@contextmanager
def _naming(path: _Path) -> Iterator[None]:
    """Say of which file an error speaks."""
    try:
        yield
    except ContentError as error:
        raise ModelFileError(f"{os.fspath(path)!r} cannot be loaded: {error}.") from error
