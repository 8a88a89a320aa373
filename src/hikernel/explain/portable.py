"""The fitted function as plain data: f(x), exact, for programs that know nothing of hikernel.

`portable_function` gives a dict of numbers, names and lists. Anything that can add, multiply, look
up and evaluate a few elementary functions computes f from it, a report page in a browser for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hikernel.bases.anova import FittedAnova
from hikernel.bases.asinh import FittedAsinhPolynomial
from hikernel.bases.basis import FittedBasis, FittedConstant
from hikernel.bases.branches import FittedBranches
from hikernel.bases.categorical import FittedCategorical
from hikernel.bases.gaussian import FittedGaussian
from hikernel.bases.hermite import FittedHermite
from hikernel.bases.kernel_pca import FittedKernelPCA
from hikernel.bases.kernels import CubicSplineKernel, GaussianKernel, LaplaceKernel
from hikernel.bases.lowrank import LowRankMap
from hikernel.bases.orthonormal import FittedOrthonormalPolynomial
from hikernel.bases.periodic import FittedPeriodic
from hikernel.bases.polynomial import FittedPolynomial
from hikernel.bases.rank import FittedRankPolynomial
from hikernel.bases.recurrence import binomial_powers
from hikernel.bases.spline import FittedSpline
from hikernel.bases.steps import FittedSteps
from hikernel.columns import ColumnDesign
from hikernel.engines.protocol import FloatArray
from hikernel.selection import TermModel

__all__ = ["NotPortableError", "portable_function"]

Data = dict[str, Any]

_MOST_NUMBERS = 100_000
"""Largest number of coefficients that are written."""


class NotPortableError(ValueError):
    """A basis or kernel that is known to its author only, and not as plain data."""


def portable_function(model: TermModel, design: ColumnDesign) -> Data:
    """Return f as plain data.

    Parameters
    ----------
    model : TermModel
        The model.
    design : ColumnDesign
        Its columns and fitted bases.

    Returns
    -------
    dict
        "intercept", a list with one number per output; "inputs", the columns of the table that f
        depends on (position in the table, name, kind, labels of the categories, their "values" if
        these are no text, and whether they are "ordered": a category that is not among the labels
        is then missing; for dates the time "zone", or None); "variables", the arguments of f
        (position of the input; position of the "column" in the matrix of the model; whether it is
        the indicator, 1 or 0, of a missing input; the "part" of a date that it is, and the "start"
        of its days, or None; and its "levels"); "terms" (factors, shape, coef).

    Raises
    ------
    NotPortableError
        If a basis or a kernel is not one of this package.

    Notes
    -----
    With the levels phi_vl(x) in R^w of every variable v,

        f_k(x) = intercept_k + sum over terms t of < coef_tk, outer product of phi_vl(x) over the
                 factors (v, l) of t >,

    where coef_tk is flat, in C order of the shape of the term, and its factors are in order.
    Where an input is missing, all levels of its variables are zero, except for level 0, which is
    "absent", and except for indicators.

    An input of kind "date" is the number x of days since 1970-01-01, 0:00, on the clock of its
    zone, with the time of day as a fraction; one of kind "duration" its length in days. A variable
    with a "part" has a value that follows from x in place of x: "days" x - start, "year" and
    "day of year" (1 to 366) those of the day floor(x) in the Gregorian calendar, "weekday"
    (floor(x) + 3) modulo 7, 0 for Monday, "hour" 24 (x - floor(x)), rounded to six decimals, and
    "length" x.

    The levels of a variable are a dict with a "kind", where z = (x - center) / scale:

    lookup
        One level, the unit vector of a position: with "table" "category", the position of x in
        "codes" (the zero vector if it is not there), where x is the position of the label for an
        input of kind "category", 0 or 1 for "boolean", and the number itself for "number" and for
        parts of dates; with "table" "steps", the number of "cuts" below x, where a cut that equals
        x is not below it. All levels of a lookup are summed up into one.
    orthonormal
        z is clipped to "low" and "high"; p_0 = 1, and p_{j+1} = c / norms[j], where c starts as
        z p_j, and projections[j][a][i] p_i is subtracted for both a and all i <= j. Level j is p_j.
    asinh
        "inner", an orthonormal one, at asinh((z - median) / spread).
    interpolation
        Level j is heights[:, j - 1] at "knots", linear between them at z and constant beyond.
    powers
        Level j is factors[j] z^j.
    hermite
        h_0 = 1 and h_{j+1} = z sqrt(2 ratio/(j+1)) h_j - ratio sqrt(j/(j+1)) h_{j-1}; level j is
        h_j, j < n.
    mehler
        As hermite with t = root z in place of z and h_0 = height exp(-decay z^2). The levels are
        the constant one if "constant", then the first n_single of the h_j, one each, then, if there
        is a "rotation", one level: the remaining h_j (as many as it has rows) times the rotation.
    periodic
        Level j is scales[j - 1] times (cos(2 pi j x / period), sin(2 pi j x / period)) minus the
        pair means[j - 1].
    kernel
        u solves L u = k(p, z) for the lower triangle "factor" (rows of L) and "pivots" p, where k
        is "kernel": {"name": "gaussian", "b"} exp(-b d^2), {"name": "laplace", "b"}
        exp(-b |d|), d = p - z, or {"name": "cubic"}, m^2 (3 M - m) if p z > 0 and zero otherwise,
        with m and M the smaller and the larger of |p| and |z|. With a "rotation", u is then
        u' rotation. The levels are "before" (a list of "one" and "z"), then u in pieces of
        "widths".
    branches
        Level l belongs to the last of the "parts" whose start in "starts" is at most l, and is its
        level l - start + 1.
    constant
        No level above 0.
    """
    used = sorted({m for node in model.kept().nodes for m, _ in node} | set(_bumps(design)))
    table = design.table
    inputs = sorted({table.input_of(m) for m in used})
    place = {m: i for i, m in enumerate(used)}
    return {
        "intercept": np.atleast_1d(model.intercept).tolist(),
        "inputs": [_input(design, m) for m in inputs],
        "variables": [
            {
                "input": inputs.index(table.input_of(m)),
                "column": m,
                "missing": m >= table.n_values,
                **_part(design, m),
                "levels": _part_levels(design, m),
            }
            for m in used
        ],
        "terms": _terms(model, design, place),
    }


def _bumps(design: ColumnDesign) -> list[int]:
    """Return the variables whose level 0 is not constant: they are in every term."""
    return [m for m, basis in enumerate(design.bases) if not basis.constant_level]


def _input(design: ColumnDesign, m: int) -> Data:
    """Return what is known of a column of the table."""
    table = design.table
    out: Data = {"column": m, "name": table.input_names[m]}
    found = table.part(m)
    if found is not None:
        date, _ = found
        empty = {"labels": None, "values": None, "ordered": False}
        return out | {"kind": date.kind, **empty, "zone": date.zone}
    return out | {
        "kind": table.kinds[m],
        "labels": _labels(table.categories[m]),
        "values": _values(table.categories[m]),
        "ordered": m in table.ordered,
        "zone": None,
    }


def _part(design: ColumnDesign, m: int) -> Data:
    """Return the part of a date that a variable is, and from where its days are counted."""
    found = design.table.part(m) if m < design.table.n_values else None
    if found is None:
        return {"part": None, "start": None}
    date, part = found
    return {"part": part, "start": date.start if part == "days" else None}


def _part_levels(design: ColumnDesign, m: int) -> Data:
    """Return the levels of a variable; categories of a part of a date by values, not positions."""
    levels, known = _levels(design.bases[m]), design.table.categories[m]
    part = _part(design, m)["part"]
    if part is not None and part != "weekday" and known is not None and "codes" in levels:
        levels["codes"] = [float(known[int(code)]) for code in levels["codes"]]
    return levels


def _labels(categories: tuple[Any, ...] | None) -> list[str] | None:
    return None if categories is None else [str(label) for label in categories]


def _values(categories: tuple[Any, ...] | None) -> list[Any] | None:
    """Return the categories as they are in the table, None if all are text."""
    if categories is None or all(isinstance(label, str) for label in categories):
        return None
    return list(categories)


def _terms(model: TermModel, design: ColumnDesign, place: Mapping[int, int]) -> list[Data]:
    """Return the terms; levels of one lookup are summed up."""
    kept = model.kept()
    n_outputs = model.coef.shape[1] if model.coef.ndim > 1 else 1
    always = _bumps(design)
    found: dict[tuple[tuple[int, int], ...], FloatArray] = {}
    for node, block in zip(kept.nodes, kept.blocks, strict=True):
        present = {m for m, _ in node}
        pairs = sorted([*node, *((m, 0) for m in always if m not in present)])
        widths = [design.bases[m].widths[level] for m, level in pairs]
        tensor = block.reshape(*widths, n_outputs)
        key = []
        for axis, (m, level) in enumerate(pairs):
            values, shown = _lookup(design.bases[m], level)
            if values is not None and tensor.size // tensor.shape[axis] * len(values) > 10**7:
                raise NotPortableError("The function has too many numbers to write it down.")
            if values is not None:
                tensor = np.moveaxis(np.tensordot(values, tensor, (1, axis)), 0, axis)
            key.append((m, shown))
        before = found.get(tuple(key))
        found[tuple(key)] = tensor if before is None else before + tensor
        if sum(one.size for one in found.values()) > _MOST_NUMBERS:
            raise NotPortableError(
                f"The function has more than {_MOST_NUMBERS:,} numbers, since products of columns "
                "with many categories have one for every pair of them."
            )
    return [
        {
            "factors": [[place[m], level] for m, level in key],
            "shape": list(tensor.shape[:-1]),
            "coef": tensor.reshape(-1, n_outputs).T.tolist(),
        }
        for key, tensor in found.items()
    ]


def _lookup(basis: FittedBasis, level: int) -> tuple[FloatArray | None, int]:
    """Return the values of a level at every position of a lookup, and the level of the lookup.

    None, and the level itself, if the level is no lookup.
    """
    if level == 0:
        return None, 0
    branch, own = basis.branch(level)
    if isinstance(branch, (FittedCategorical, FittedSteps)):
        return branch.level_heights(own), level - own + 1
    return None, level


def _levels(basis: FittedBasis) -> Data:
    """Return the levels of a basis as plain data."""
    write = _WRITERS.get(type(basis))
    if write is None:
        raise NotPortableError(
            f"The basis {type(basis).__name__.removeprefix('Fitted')} is not one of this package, "
            "so that its levels cannot be written as plain data."
        )
    data = write(basis)
    if not basis.constant_level:
        data["absent"] = basis.absent
    return data


def _scaled(basis: FittedBasis, kind: str) -> Data:
    return {"kind": kind, "center": basis.scaler.center, "scale": basis.scaler.scale}


def _constant(basis: FittedConstant) -> Data:
    return {"kind": "constant"}


def _categorical(basis: FittedCategorical) -> Data:
    return {"kind": "lookup", "table": "category", "codes": basis.codes.tolist()}


def _steps(basis: FittedSteps) -> Data:
    return {"kind": "lookup", "table": "steps", "cuts": basis.cuts.tolist()}


def _orthonormal(basis: FittedOrthonormalPolynomial) -> Data:
    return _scaled(basis, "orthonormal") | {
        "low": basis.low,
        "high": basis.high,
        "projections": basis.projections.tolist(),
        "norms": basis.norms.tolist(),
    }


def _asinh(basis: FittedAsinhPolynomial) -> Data:
    return _scaled(basis, "asinh") | {
        "median": basis.center,
        "spread": basis.spread,
        "inner": _orthonormal(basis.polynomial),
    }


def _rank(basis: FittedRankPolynomial) -> Data:
    return _scaled(basis, "interpolation") | {
        "knots": basis.knots.tolist(),
        "heights": basis.heights.tolist(),
    }


def _polynomial(basis: FittedPolynomial) -> Data:
    factors = binomial_powers(np.ones(1), basis.degree)[:, 0]
    return _scaled(basis, "powers") | {"factors": factors.tolist()}


def _hermite(basis: FittedHermite) -> Data:
    return _scaled(basis, "hermite") | {"ratio": basis.a, "n": basis.degree + 1}


def _gaussian(basis: FittedGaussian) -> Data:
    series = basis.series
    return _scaled(basis, "mehler") | {
        "ratio": series.r,
        "root": math.sqrt(2.0 * series.c),
        "decay": 2.0 * series.c * series.r / (1.0 + series.r),
        "height": (2.0 * series.a / (series.a + series.c) * (1.0 + series.r)) ** 0.25,
        "constant": basis.constant_level,
        "n_single": basis.n_single,
        "rotation": basis.rotation.tolist() if basis.rotation.shape[1] else None,
    }


def _kernel(basis: FittedBasis, low_rank: LowRankMap, before: list[str]) -> Data:
    kernel = low_rank.kernel
    if isinstance(kernel, GaussianKernel):
        named: Data = {"name": "gaussian", "b": kernel.b}
    elif isinstance(kernel, LaplaceKernel):
        named = {"name": "laplace", "b": kernel.b}
    elif isinstance(kernel, CubicSplineKernel):
        named = {"name": "cubic"}
    else:
        raise NotPortableError(
            "A kernel that was given as a function cannot be written as plain data; kernels with a "
            "name can."
        )
    rows = [row[: i + 1].tolist() for i, row in enumerate(low_rank.factor)]
    return _scaled(basis, "kernel") | {
        "kernel": named,
        "pivots": low_rank.pivots.tolist(),
        "factor": rows,
        "rotation": None,
        "before": before,
        "widths": list(basis.widths[len(before) :]),
    }


def _spline(basis: FittedSpline) -> Data:
    return _kernel(basis, basis.low_rank, ["one", "z"])


def _anova(basis: FittedAnova) -> Data:
    return _kernel(basis, basis.low_rank, ["one"])


def _kernel_pca(basis: FittedKernelPCA) -> Data:
    before = ["one"] if basis.constant_level else []
    return _kernel(basis, basis.low_rank, before) | {"rotation": basis.rotation.tolist()}


def _branches(basis: FittedBranches) -> Data:
    starts = np.cumsum([1, *[branch.max_level for branch in basis.branches[:-1]]])
    return {
        "kind": "branches",
        "parts": [_levels(branch) for branch in basis.branches],
        "starts": starts.tolist(),
    }


def _periodic(basis: FittedPeriodic) -> Data:
    return {
        "kind": "periodic",
        "period": basis.period,
        "means": basis.means.tolist(),
        "scales": basis.scales.tolist(),
    }


_WRITERS: dict[type[FittedBasis], Callable[[Any], Data]] = {
    FittedConstant: _constant,
    FittedCategorical: _categorical,
    FittedSteps: _steps,
    FittedOrthonormalPolynomial: _orthonormal,
    FittedAsinhPolynomial: _asinh,
    FittedRankPolynomial: _rank,
    FittedPeriodic: _periodic,
    FittedPolynomial: _polynomial,
    FittedHermite: _hermite,
    FittedGaussian: _gaussian,
    FittedKernelPCA: _kernel_pca,
    FittedSpline: _spline,
    FittedAnova: _anova,
    FittedBranches: _branches,
}
