"""Generated data with a known truth: tables, strings, point clouds, labelled graphs.

They are for examples, tests and benchmarks. The docstring of each function states the truth.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from hikernel.engines.protocol import FloatArray, Node

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "KnownTruth",
    "Molecule",
    "StructuredTruth",
    "make_clouds",
    "make_molecules",
    "make_motifs",
    "make_polynomial",
    "make_ringnorm",
    "make_twonorm",
]

T = TypeVar("T")

Molecule = tuple[tuple[str, ...], tuple[tuple[int, int], ...]]
"""(labels, edges): the element of every atom, and the pairs of bonded atoms."""


@dataclass(frozen=True)
class KnownTruth:
    """Generated rows and the function that generated them.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Normal inputs, correlation 0.3^|i - j| between columns i and j.
    y : ndarray of shape (n,)
        signal + noise.
    signal : ndarray of shape (n,)
        Sum over the terms: coefficient times the product of x_m^level over (m, level) in the term.
    terms : dict of Node to float
        Coefficient of each term.
    """

    X: FloatArray
    y: FloatArray
    signal: FloatArray
    terms: dict[Node, float]


def make_polynomial(
    n: int, p: int, terms: dict[Node, float], *, noise: float, seed: int
) -> KnownTruth:
    """Draw data from a sparse polynomial of correlated normal variables.

    Parameters
    ----------
    n, p : int
        Numbers of rows and variables.
    terms : dict of Node to float
        Coefficient of each term ((variable, power), ...).
    noise : float
        Standard deviation of the noise as a fraction of that of the signal.
    seed : int
        Seed of the generator.

    Examples
    --------
    >>> data = make_polynomial(100, 3, {((0, 1), (2, 2)): 2.0}, noise=0.0, seed=0)
    >>> bool(np.allclose(data.y, 2.0 * data.X[:, 0] * data.X[:, 2] ** 2))
    True
    """
    rng = np.random.default_rng(seed)
    covariance = 0.3 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    X = rng.multivariate_normal(np.zeros(p), covariance, size=n, method="cholesky")
    signal = np.zeros(n)
    for node, coefficient in terms.items():
        signal += coefficient * np.prod([X[:, m] ** power for m, power in node], axis=0)
    y = signal + noise * np.std(signal) * rng.standard_normal(n)
    return KnownTruth(X, y, signal, terms)


def make_twonorm(n: int, *, seed: int) -> pd.DataFrame:
    """Draw Breiman's twonorm: N(a, I) for target 0, N(-a, I) for target 1, a = 2/sqrt(20).

    Parameters
    ----------
    n : int
        Number of rows; each class has probability one half.
    seed : int
        Seed of the generator.

    Returns
    -------
    pandas.DataFrame of shape (n, 21)
        Columns ``x0`` to ``x19`` and ``target``.
    """
    rng = np.random.default_rng(seed)
    target = rng.integers(2, size=n)
    shift = 2.0 / np.sqrt(20.0) * (1.0 - 2.0 * target)
    return _labelled(rng.standard_normal((n, 20)) + shift[:, None], target)


def make_ringnorm(n: int, *, seed: int) -> pd.DataFrame:
    """Draw Breiman's ringnorm: N(0, 4 I) for target 0, N(a, I) for target 1, a = 2/sqrt(20).

    Parameters and return value are those of :func:`make_twonorm`.
    """
    rng = np.random.default_rng(seed)
    target = rng.integers(2, size=n)
    scale = 2.0 - target
    X = scale[:, None] * rng.standard_normal((n, 20)) + (2.0 / np.sqrt(20.0) * target)[:, None]
    return _labelled(X, target)


def _labelled(X: FloatArray, target: np.ndarray) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(X, columns=[f"x{m}" for m in range(X.shape[1])]).assign(target=target)


@dataclass(frozen=True)
class StructuredTruth(Generic[T]):
    """Generated objects and the function that generated them.

    Attributes
    ----------
    X : list
        The n objects.
    y : ndarray of shape (n,)
        signal + noise.
    signal : ndarray of shape (n,)
        Noise-free value of every object.
    truth : str
        Readable description of the signal.
    nodes : tuple
        The nodes of the graph that carry the signal: strings, or levels of a chain.
    """

    X: list[T]
    y: FloatArray
    signal: FloatArray
    truth: str
    nodes: tuple[Any, ...]


def make_motifs(
    n: int,
    length: int,
    motifs: Mapping[str, float] | None = None,
    *,
    alphabet: str = "ACGT",
    planted: float = 1.0,
    noise: float = 0.1,
    seed: int,
) -> StructuredTruth[str]:
    """Draw strings with signal = sum over the motifs of coefficient times number of occurrences.

    Letters are independent and uniform. Then every motif is written over the string at a Poisson
    number of random places. The signal counts all occurrences in the final string: planted ones,
    chance ones, and overlapping ones.

    Parameters
    ----------
    n, length : int
        Number of strings and their length.
    motifs : mapping of str to float, optional
        Coefficient of each motif; by default ACGT with 1 and TTG with -1.
    alphabet : str
        The letters.
    planted : float
        Mean number of times that each motif is written into a string.
    noise : float
        Standard deviation of the noise as a fraction of that of the signal.
    seed : int
        Seed of the generator.

    Examples
    --------
    >>> data = make_motifs(50, 40, {"ACGT": 2.0}, noise=0.0, seed=0)
    >>> data.truth, bool(np.allclose(data.y, [2.0 * s.count("ACGT") for s in data.X]))
    ('2 * count(ACGT)', True)
    """
    motifs = {"ACGT": 1.0, "TTG": -1.0} if motifs is None else dict(motifs)
    if not motifs or not all(0 < len(motif) <= length for motif in motifs):
        raise ValueError(f"motifs must have 1 to {length} letters, the length of a string.")
    rng = np.random.default_rng(seed)
    strings = []
    for row in rng.choice(list(alphabet), size=(n, length)):
        for motif in motifs:
            for _ in range(rng.poisson(planted)):
                start = rng.integers(length - len(motif) + 1)
                row[start : start + len(motif)] = list(motif)
        strings.append("".join(row))
    counts = np.array([[_occurrences(motif, s) for motif in motifs] for s in strings])
    signal = counts @ np.array(list(motifs.values()), dtype=np.float64)
    words = " + ".join(f"{c:g} * count({motif})" for motif, c in motifs.items())
    y = signal + noise * np.std(signal) * rng.standard_normal(n)
    return StructuredTruth(strings, y, signal, words.replace("+ -", "- "), tuple(motifs))


def _occurrences(motif: str, string: str) -> int:
    return sum(string.startswith(motif, i) for i in range(len(string)))


def make_clouds(
    n: int,
    resolution: int,
    *,
    dim: int = 2,
    points_per_cell: int = 4,
    noise: float = 0.1,
    seed: int,
) -> StructuredTruth[FloatArray]:
    """Draw point clouds with signal = share of points in the even cells of one resolution.

    A cell of level l is a box of side 2^-l in the unit cube. It is even if its integer coordinates
    have an even sum, like the squares of one colour on a chess board. Every cell of level
    ``resolution - 1`` gets the same number of points in every cloud. Histograms of levels coarser
    than ``resolution`` are therefore the same for all clouds and carry no signal. Every cloud
    contains both ends of the main diagonal, so its bounding box is the unit cube.

    Parameters
    ----------
    n : int
        Number of clouds.
    resolution : int
        The level that carries the signal, at least 1.
    dim : int
        Number of coordinates.
    points_per_cell : int
        Points drawn in each cell of level ``resolution - 1``.
    noise : float
        Standard deviation of the noise as a fraction of that of the signal.
    seed : int
        Seed of the generator.

    Examples
    --------
    >>> data = make_clouds(3, 2, seed=0)
    >>> [cloud.shape for cloud in data.X], data.nodes
    ([(18, 2), (18, 2), (18, 2)], (2,))
    """
    if resolution < 1:
        raise ValueError(f"resolution must be at least 1, got {resolution!r}.")
    rng = np.random.default_rng(seed)
    offsets = np.array(list(itertools.product([0, 1], repeat=dim)))
    is_even = offsets.sum(axis=1) % 2 == 0
    coarse = np.array(list(itertools.product(range(2 ** (resolution - 1)), repeat=dim)))
    corner = np.repeat(coarse, points_per_cell, axis=0)
    ends = np.array([np.zeros(dim), np.ones(dim)])
    end_is_even = np.array([True, dim % 2 == 0])  # the last cell of each axis has an odd coordinate
    clouds, signal = [], np.empty(n)
    for i in range(n):
        even = rng.random(len(corner)) < rng.random()
        child = np.where(
            even[:, None],
            rng.choice(offsets[is_even], size=len(corner)),
            rng.choice(offsets[~is_even], size=len(corner)),
        )
        # Keep points away from the faces, so that rounding cannot move one to the next cell.
        inside = rng.uniform(0.001, 0.999, size=corner.shape)
        clouds.append(np.concatenate([ends, (2 * corner + child + inside) * 2.0**-resolution]))
        signal[i] = np.mean(np.concatenate([end_is_even, even]))
    y = signal + noise * np.std(signal) * rng.standard_normal(n)
    words = f"share of points in the even cells of side 2^-{resolution}"
    return StructuredTruth(clouds, y, signal, words, (resolution,))


def make_molecules(
    n: int, *, n_carbons: int = 10, n_groups: int = 2, noise: float = 0.1, seed: int
) -> StructuredTruth[Molecule]:
    """Draw molecule-like graphs with signal = number of chains N-C-C-O.

    A ring of six carbons gets branches of carbon, up to ``n_carbons`` in all. Then ``n_groups``
    nitrogens and as many oxygens are bonded to carbons, at most one per carbon. No carbon has more
    than four bonds. All molecules have the same atoms, so the Weisfeiler-Lehman labels of depth 0
    carry no signal. The label of a carbon at depth 1 shows its direct neighbours: that one is an N,
    or that some are carbons, but not that one of these carbons is bonded to an O. That takes
    depth 2. (A chain N-C-O would not need depth 2: its carbon sees both ends at depth 1.)

    Parameters
    ----------
    n : int
        Number of molecules.
    n_carbons : int
        Number of carbons per molecule, at least six.
    n_groups : int
        Number of nitrogens per molecule, and of oxygens; at most half the number of carbons.
    noise : float
        Standard deviation of the noise as a fraction of that of the signal.
    seed : int
        Seed of the generator.

    Examples
    --------
    >>> data = make_molecules(20, noise=0.0, seed=0)
    >>> labels, bonds = data.X[0]
    >>> "".join(labels), len(bonds), data.nodes
    ('CCCCCCCCCCNNOO', 14, (2,))
    """
    if n_carbons < 6 or not 1 <= n_groups <= n_carbons // 2:
        raise ValueError(
            "n_carbons must be at least 6, and n_groups between 1 and half of it; "
            f"got {n_carbons!r} and {n_groups!r}."
        )
    rng = np.random.default_rng(seed)
    molecules, signal = [], np.empty(n)
    for i in range(n):
        skeleton = _skeleton(n_carbons, rng)
        holders, signal[i] = _place_groups(n_carbons, n_groups, skeleton, rng)
        bonds = (*skeleton, *((c, n_carbons + j) for j, c in enumerate(holders)))
        molecules.append((("C",) * n_carbons + ("N",) * n_groups + ("O",) * n_groups, bonds))
    y = signal + noise * np.std(signal) * rng.standard_normal(n)
    return StructuredTruth(molecules, y, signal, "number of chains N-C-C-O", (2,))


def _skeleton(n_carbons: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return the bonds of a ring of six carbons with branches; no carbon has more than three."""
    bonds = [(c, (c + 1) % 6) for c in range(6)]
    degree = np.array([2] * 6 + [0] * (n_carbons - 6))
    for new in range(6, n_carbons):
        old = int(rng.choice(np.flatnonzero((degree > 0) & (degree < 3))))
        bonds.append((old, new))
        degree[[old, new]] += 1
    return bonds


def _place_groups(
    n_carbons: int, n_groups: int, skeleton: Sequence[tuple[int, int]], rng: np.random.Generator
) -> tuple[list[int], int]:
    """Return the carbons that get an N, then those that get an O, and the number of chains N-C-C-O.

    A target number of chains is drawn first. Of up to 51 random placements the one nearest to the
    target is taken. The number of chains then varies more than under a single random placement,
    and depends less on how branched the skeleton is.
    """
    target = int(rng.integers(n_groups + 1))

    def draw() -> tuple[list[int], int]:
        holders = rng.permutation(n_carbons)[: 2 * n_groups].tolist()
        with_n, with_o = set(holders[:n_groups]), set(holders[n_groups:])
        both_ways = [*skeleton, *((v, u) for u, v in skeleton)]
        return holders, sum(u in with_n and v in with_o for u, v in both_ways)

    best = draw()
    for _ in range(50):
        if best[1] == target:
            break
        best = min(best, draw(), key=lambda placed: abs(placed[1] - target))
    return best
