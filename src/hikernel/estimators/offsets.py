"""Offsets and exposures: known numbers per row that a model adds to f, or multiplies means by.

    f(x_i) = o_i + b + sum_v <beta_v, Phi_v(x_i)>,    o_i = offset_i + log exposure_i.

They are arguments of ``fit``, ``predict`` and the like, not columns of X: nothing is estimated for
them. Where they are left out, o is zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hikernel.checks import name_of
from hikernel.engines.protocol import FloatArray
from hikernel.losses import Loss
from hikernel.selection import FitRecord

__all__ = ["RowOffset", "read_offset", "without_offset"]

_LARGEST = 700
"""Of offsets that are on a logarithmic scale or on that of margins; exp(710) overflows."""


@dataclass(frozen=True)
class RowOffset:
    """The offset of some rows.

    Attributes
    ----------
    values : ndarray of shape (n,) or (n, k)
        o, with log exposure in it.
    offset, exposure : str or None
        What each is called: the name of a column, or "offset" and "exposure"; None if not given.
    """

    values: FloatArray
    offset: str | None = None
    exposure: str | None = None

    def noted(self, record: FitRecord) -> FitRecord:
        """Return the record of a fit that also says what these were called."""
        return replace(record, offset=self.offset, exposure=self.exposure)


def without_offset(record: FitRecord) -> str:
    """Return what the offset and the exposure of a row are taken for where none is given.

    It is the end of a sentence; empty if the fit had neither.
    """
    values = ((record.offset, 0), (record.exposure, 1))
    known = [f"{name} = {value}" for name, value in values if name is not None]
    return f", here with {' and '.join(known)}" if known else ""


def read_offset(offset: Any, exposure: Any, loss: Loss, shape: tuple[int, ...]) -> RowOffset | None:
    """Return what ``fit`` or ``predict`` got as one offset; None if there is neither.

    Parameters
    ----------
    offset : array-like of shape (n,) or (n, k), optional
        Numbers on the scale of f.
    exposure : array-like of shape (n,), optional
        Positive numbers, for losses with a logarithmic link.
    loss : Loss
        The loss.
    shape : tuple of int
        Shape of f: (n,), or (n, k) for k outputs.

    Raises
    ------
    ValueError
        If there is not one finite number per row and output, if an exposure is not positive, if
        the loss has no logarithmic link and there is an exposure, if an offset is too large for
        the loss, or if that is a joint one.
    """
    if offset is None and exposure is None:
        return None
    if loss.joint:
        raise ValueError(
            f"The loss {loss.name!r} takes no offset and no exposure, which are for losses that "
            "are a mean over the rows; leave them out."
        )
    values = np.zeros(shape)
    if offset is not None:
        values = values + _numbers("offset", offset, shape)
    if exposure is not None:
        if loss.link != "log":
            raise ValueError(
                f"exposure multiplies means, which the loss {loss.name!r} has no logarithmic link "
                'for; use loss="poisson", "gamma" or "tweedie", or pass offset=.'
            )
        counts = _numbers("exposure", exposure, shape)
        if np.any(counts <= 0.0):
            row = int(np.argmax(counts <= 0.0))
            raise ValueError(
                f"exposure must be positive, but row {row} has {counts[row]:g}; leave out rows "
                "that were not exposed."
            )
        values = values + np.log(counts)
    if (loss.link == "log" or loss.for_labels) and np.any(np.abs(values) > _LARGEST):
        largest = values.flat[int(np.argmax(np.abs(values)))]
        raise ValueError(
            f"offset must be from -{_LARGEST} to {_LARGEST} with the loss {loss.name!r}, which has "
            f"an exponential or a margin of it, but there is {largest:g}."
        )
    return RowOffset(
        values,
        None if offset is None else name_of(offset) or "offset",
        None if exposure is None else name_of(exposure) or "exposure",
    )


def _numbers(name: str, given: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return one finite number per row and output; raise if there are none."""
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, one for each row ({error}).") from None
    if values.shape != shape:
        wanted = f"one number for each of the {shape[0]} rows"
        if len(shape) > 1:
            wanted += f" and each of the {shape[1]} classes, in the order of classes_"
        raise ValueError(f"{name} must have {wanted}; got an array of shape {values.shape}.")
    finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if not np.all(finite):
        row = int(np.argmin(finite))
        raise ValueError(
            f"{name} must be finite, but row {row} has {np.ravel(values[row])[0]:g}; fill it in, "
            "or leave out the row."
        )
    return values
