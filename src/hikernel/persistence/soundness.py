"""Check that the parts of a model fit together: bases, graph, terms, coefficients, certificates.

The codec has already checked the type of every field. Here ranges and shapes are checked, and every
basis is evaluated at two points, so that every model that loads can also predict. The cost is
bounded by the size of the data that are checked: no number in a file can make the check (or a
prediction) take long or need much memory.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.bases import FittedBasis
from hikernel.checks import has_half_character
from hikernel.columns import ColumnTable
from hikernel.columns.shared_bases import SharedBases
from hikernel.graphs import Grid, Node
from hikernel.losses.breslow import BreslowBaseline
from hikernel.persistence.content import ContentError, conforms, reason, shown
from hikernel.search import Certificate
from hikernel.selection import FitRecord, TermModel
from hikernel.selection.record import QUANTILES, ColumnStatistics

__all__ = [
    "check_baseline",
    "check_bases",
    "check_certificate",
    "check_columns",
    "check_model",
    "check_record",
    "check_shared_bases",
]

_LARGEST_INTEGER = 100_000
"""Limit on integers in a fitted basis: degrees, numbers of directions, exponents of scale."""
_LARGEST_COUNT = 10**15
_WIDEST = 4096
"""Limit on the columns of a level: a level of categories takes the square of it in memory."""
_MOST_LEVELS, _ALL_LEVELS = 64, 2**18
"""Limits on the levels that a basis, and all together, may have beyond those that the graph lists.
A refit adds two. They are claimed by a number, the degree, and each of them is evaluated."""
_TRIAL = np.array([0.0, 1.0])


def check_bases(
    bases: Sequence[FittedBasis], graph: Grid, n_features: int, *, richer: bool = False
) -> None:
    """Raise unless every column has a valid basis with the levels of the graph.

    With ``richer``, as after a refit, a basis may have more levels than the graph.
    """
    if not len(bases) == graph.n_variables == n_features:
        raise ContentError(
            f"it has {n_features} columns, {len(bases)} bases, and a graph of "
            f"{graph.n_variables} variables"
        )
    checked: set[tuple[int, int, tuple[int, ...] | None]] = set()
    claimed = 0
    rule = graph.restriction
    if rule is not None:
        stars = [k for _, k in (*(rule.allowed or ()), *rule.forbidden)]
        fits = len(rule.column_of) == n_features >= rule.n_columns
        if not fits or max(stars, default=0) > _LARGEST_INTEGER:
            raise ContentError("the interactions that it allows are not about its columns")
    for m, basis in enumerate(bases):
        where = f"the basis of column {m}"
        tree = None if graph.level_parents is None else graph.level_parents[m]
        key = (id(basis), graph.max_level(m), tree)
        if key in checked:  # sparse columns share bases
            continue
        checked.add(key)
        _check_numbers(basis, where)
        try:
            widths = basis.widths
            more = len(widths) - 1 - graph.max_level(m)
            claimed += max(0, more)
            if more > _MOST_LEVELS or claimed > _ALL_LEVELS:
                raise ContentError(f"{where} has far more levels than the graph")
            if max(widths) > _WIDEST:
                raise ContentError(f"{where} has a level of more than {_WIDEST} columns")
            if more < 0 or (more > 0 and not richer):
                raise ContentError(f"{where} has other levels than the graph")
            if basis.parents[: graph.max_level(m)] != (tree or tuple(range(graph.max_level(m)))):
                raise ContentError(f"{where} has other branches than the graph")
            with np.errstate(all="ignore"):
                levels = basis.transform(_TRIAL)
            basis.scaler.center, basis.scaler.scale  # noqa: B018, they may overflow
        except ContentError:
            raise
        except Exception as error:  # parts that do not fit together fail in many ways
            raise ContentError(f"{where} cannot be evaluated ({reason(error)})") from error
        shapes = [np.shape(level) for level in levels]
        if shapes != [(len(_TRIAL), width) for width in widths]:
            raise ContentError(f"{where} has levels of the wrong shape")
        if any(np.isnan(level).any() for level in levels):
            raise ContentError(f"{where} has values that are not numbers")


def check_shared_bases(shared: SharedBases, columns: ColumnTable, graph: Grid) -> None:
    """Raise unless these can be the bases of sparse columns, which interact in pairs at most."""
    numbers = set(columns.kinds) <= {"number", "boolean"} and not columns.indicators
    if not shared.is_sound() or not numbers or graph.max_order not in (1, 2):
        raise ContentError("its bases are not those of sparse columns")


def check_baseline(baseline: BreslowBaseline) -> None:
    """Raise unless times and cumulative hazards are finite, and increase from zero or more."""
    times, hazards = baseline.times, baseline.hazards
    for name, array in (("times", times), ("hazards", hazards)):
        if array.dtype != np.float64 or len(times) == 0:
            raise ContentError(f"the {name} of its baseline hazard are not numbers")
        _check_array(f"{name} of its baseline hazard", array, (times.size,))
    ends = np.append(times, baseline.horizon)
    steps = (np.diff(times) > 0.0).all() and (np.diff(hazards) >= 0.0).all()
    if not (steps and times[0] >= 0.0 and hazards[0] >= 0.0 and ends[-1] >= ends[-2]):
        raise ContentError("its baseline hazard does not increase")
    if not math.isfinite(baseline.horizon):
        raise ContentError("its baseline hazard has no end")


def check_columns(columns: ColumnTable) -> None:
    """Raise unless the parts of a column table are consistent."""
    n_features, names = columns.n_features_in, columns.names
    n_parts = sum(len(date.parts) - 1 for date in columns.dates)
    if n_features < 1 or len(names) != n_features + n_parts + len(columns.indicators):
        raise ContentError("the names of its columns are not one a column")
    if any(map(has_half_character, names)):
        raise ContentError("the name of a column holds half a character")
    _check_dates(columns)
    if columns.feature_names_in is not None and len(columns.feature_names_in) != n_features:
        raise ContentError("the names of its columns are not one a column")
    if not len(names) == len(columns.kinds) == len(columns.categories) == len(set(names)):
        raise ContentError("the kinds of its columns are not one a column")
    for kind, categories in zip(columns.kinds, columns.categories, strict=True):
        if (kind == "category") != (categories is not None):
            raise ContentError("its categories are not those of its columns of categories")
        if categories is not None and len(set(categories)) != len(categories):
            raise ContentError("a category is there twice")
    if any(not 0 <= m < n_features or columns.categories[m] is None for m in columns.ordered):
        raise ContentError("it has an order for columns without categories")
    if not all(0 <= m < n_features for m in columns.indicators):
        raise ContentError("its missing values are marked for columns that it does not have")


def _check_dates(columns: ColumnTable) -> None:
    """Raise unless the dates are columns of the table, each once, with parts of their kind."""
    places = [date.column for date in columns.dates]
    if len(set(places)) != len(places) or not all(0 <= m < columns.n_features_in for m in places):
        raise ContentError("its dates are not columns that it has")
    for date in columns.dates:
        sound = bool(date.parts) and len(set(date.parts)) == len(date.parts)
        if not sound or (date.kind == "duration") != ("length" in date.parts):
            raise ContentError("a date of it has impossible parts")
        if not max(abs(date.start), abs(date.end)) < _LARGEST_COUNT:
            raise ContentError("a date of it starts at an impossible day")


def _check_numbers(value: Any, where: str) -> None:
    """Raise for NaN, infinities and huge integers anywhere in a dataclass."""
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if dataclasses.is_dataclass(item) and not isinstance(item, type):
            _check_numbers(item, where)
        elif isinstance(item, tuple):
            for part in item:
                if dataclasses.is_dataclass(part) and not isinstance(part, type):
                    _check_numbers(part, where)
        elif isinstance(item, (int, np.integer)):
            if abs(int(item)) > _LARGEST_INTEGER:
                raise ContentError(f"{field.name} in {where} is out of range: {shown(item)}")
        elif isinstance(item, (float, np.floating, np.ndarray)) and not np.all(np.isfinite(item)):
            raise ContentError(f"{field.name} in {where} is not finite")


def check_model(
    model: TermModel,
    bases: Sequence[FittedBasis],
    graph: Grid,
    n_outputs: int | None,
    *,
    richer: bool = False,
    hull: bool = False,
) -> None:
    """Raise unless the terms are in the graph and the arrays have matching shapes and values.

    Parameters
    ----------
    model : TermModel
        The model.
    bases, graph : sequence of FittedBasis, Grid
        Already checked by :func:`check_bases`.
    n_outputs : int or None
        Number of columns of the coefficients; None if they are a vector.
    richer : bool
        Whether the terms may use all levels of the bases, as after a refit.
    hull : bool
        Whether the parents of every term must be there, too, as before a refit.
    """
    if not 0.0 < model.lam < math.inf:
        raise ContentError(f"lambda is {shown(model.lam)}")
    levels = tuple((1.0,) * (basis.max_level + 1) for basis in bases)
    rich = Grid(levels, restriction=graph.restriction)
    _check_nodes(model.nodes, rich if richer else graph)
    if hull and not graph.is_hull(model.nodes):
        raise ContentError("a parent of one of its terms is missing")
    size = len(model.nodes)
    outputs = () if n_outputs is None else (n_outputs,)
    if model.widths.dtype.kind != "i" or model.widths.shape != (size,):
        raise ContentError("the widths of the terms are not one integer per term")
    if model.widths.tolist() != _node_widths(model.nodes, bases):
        raise ContentError("the widths of the terms are not those of their bases")
    shapes = {
        "coef": (int(np.sum(model.widths)), *outputs),
        "intercept": outputs,
        "dual_coef": (*model.dual_coef.shape[:1], *outputs),
        **dict.fromkeys(["eta", "zeta", "norms", "shares"], (size,)),
    }
    for name, shape in shapes.items():
        _check_array(name, getattr(model, name), shape)
    if model.dual_coef.ndim == 0 or np.any(model.norms < 0.0):
        raise ContentError("dual_coef is a number or norms are negative")
    check_certificate(model.certificate)
    for certificate in model.history:
        check_certificate(certificate)


def _check_array(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ContentError(f"{name} has shape {array.shape} and not {shape}")
    if not np.all(np.isfinite(array)):
        raise ContentError(f"{name} holds NaN or infinity")


def _check_nodes(nodes: object, graph: Grid) -> None:
    # The field is annotated for nodes of any graph, so the codec has not checked their type.
    if not conforms(nodes, list[Node]):
        raise ContentError("nodes of TermModel is of the wrong type")
    assert isinstance(nodes, list)
    for node in nodes:
        if node not in graph:
            raise ContentError(f"the term {shown(node)} is not in the graph of the bases")
    if len(set(nodes)) != len(nodes):
        raise ContentError("a term is there twice")


def _node_widths(nodes: Sequence[Node], bases: Sequence[FittedBasis]) -> list[int]:
    """Return the number of feature columns of each node.

    A basis without a constant level 0 contributes to every node.
    """
    widths = [basis.widths for basis in bases]
    everywhere = {m: 0 for m, basis in enumerate(bases) if not basis.constant_level}
    return [
        math.prod(widths[m][level] for m, level in {**everywhere, **dict(node)}.items())
        for node in nodes
    ]


def check_certificate(certificate: Certificate) -> None:
    """Raise for a certificate that no search can produce."""
    numbers = [certificate.objective, certificate.dual_bound, certificate.tol]
    counts = [certificate.n_vertices, certificate.n_explored, certificate.n_kernels]
    if (
        any(math.isnan(number) for number in numbers)
        or min(counts) < 0
        or not 0.0 <= certificate.confidence <= 1.0
        or certificate.kind not in ("exact", "statistical", "none")
    ):
        raise ContentError(f"it holds the impossible certificate {shown(certificate)}")


def check_record(record: FitRecord, n_columns: int) -> None:
    """Raise unless the record of a fit has finite numbers and belongs to these columns."""
    counts = (record.n_rows, *record.missing)
    if len(record.missing) != n_columns or not 0 <= min(counts) <= max(counts) <= _LARGEST_COUNT:
        raise ContentError("the record of its rows does not belong to its columns")
    for m, found in record.statistics.items():
        if not 0 <= m < n_columns or not _is_sound(found):
            raise ContentError(f"the statistics of column {m} are impossible")
    simpler = (record.simpler.constant, record.simpler.linear)
    numbers = [record.explained, *(score for score in simpler if score is not None)]
    for point in record.path:
        sizes = (point.n_terms, point.n_effects)
        if not 0 <= min(sizes) <= max(sizes) <= _LARGEST_COUNT or not point.alpha > 0.0:
            raise ContentError("a point of its path is impossible")
        numbers += [point.alpha, point.explained, *(share for _, share in point.effects)]
    if not all(map(_is_finite, numbers)):
        raise ContentError("the record of its path has numbers that are not finite")


def _is_finite(number: float) -> bool:
    """Return whether a number is finite as a float; integers may be of any size."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _is_sound(found: ColumnStatistics) -> bool:
    """Return whether the statistics of a column are finite, increasing and of matching lengths."""
    numbers = [*found.quantiles, *found.values, *found.edges, *found.shares]
    numbers += [found.low, found.high, found.mean]
    lengths = len(found.values) + max(0, len(found.edges) - 1)
    return (
        all(map(_is_finite, numbers))
        and len(found.quantiles) == len(QUANTILES)
        and len(found.shares) == lengths > 0
        and not (found.values and found.edges)
        and all(list(row) == sorted(row) for row in (found.quantiles, found.values, found.edges))
    )
