"""The graph of the substrings of the training strings, built length by length when needed.

A node is a string of 1 to k letters. Its parents are the string without its last letter and the
string without its first. Its feature is the number of its occurrences. Only strings that occur are
ever visited: a node that does not occur has score zero, and so has every string that contains it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.features import by_output, rounding_margin
from hikernel.engines.protocol import FloatArray
from hikernel.graphs.interface import Exploration
from hikernel.graphs.weight_base import WEIGHT_RANGE

__all__ = ["SubstringIndex"]

IntArray = NDArray[np.int32] | NDArray[np.int64]

_EPS = float(np.finfo(np.float64).eps)

_LARGEST_DUAL = 1e100
"""Limit on dual variables: squares of their sums must not overflow."""


@dataclass(frozen=True)
class _Level:
    """The substrings of one length, numbered in alphabetical order.

    ``names[p]`` is the number of the substring that starts at position p of the text, or -1 if none
    is kept there. ``rows[starts[j]:starts[j + 1]]`` are the rows that contain substring j, in
    ascending order and without repetition. The same slice of ``counts`` holds its number of
    occurrences in each of these rows.
    """

    names: IntArray
    first: IntArray  # position of the first occurrence, where the substring can be read
    keys: NDArray[np.int64]  # number of the prefix * alphabet + last letter, ascending
    suffixes: IntArray  # number of the substring without its first letter
    starts: NDArray[np.intp]
    rows: IntArray
    counts: IntArray

    @property
    def size(self) -> int:
        return len(self.first)

    @property
    def n_bytes(self) -> int:
        short = self.first.nbytes + self.keys.nbytes + self.suffixes.nbytes + self.starts.nbytes
        return short + self.names.nbytes + self.rows.nbytes + self.counts.nbytes


class SubstringIndex:
    """Phi_s(x) = number of occurrences of s in x, for all strings s of 1 to k letters.

    Occurrences may overlap. The graph has A^1 + ... + A^k nodes over an alphabet of A letters;
    those that do not occur in the training strings are never visited.

    Parameters
    ----------
    strings : sequence of str
        The training strings x_1 .. x_n. Their letters are the alphabet.
    max_length : int
        k, the length of the longest node.
    binary : bool
        Whether Phi_s(x) is 1 if s occurs in x and 0 if not, instead of the number of occurrences.
    memory : int
        Bytes of the index that may be kept between calls; the text itself is not counted.

    Notes
    -----
    All substrings of one length form a level and are processed together. A substring of length
    l + 1 is one of length l and one more letter, so one sort of the positions numbers them, and
    their scores are one sum over the positions. A level takes 12 to 36 bytes per letter of the
    training strings, 36 if all its substrings differ. The first level is always kept, the next
    ones while ``memory`` has room for that worst case. Longer ones are built anew in each
    exploration, from the level before and for open nodes only.

    Examples
    --------
    >>> index = SubstringIndex(["ABABA", "BB"], max_length=3)
    >>> index.column("ABA").tolist(), index.ancestors("ABA")
    ([2.0, 0.0], ['A', 'B', 'AB', 'BA', 'ABA'])
    >>> index.n_vertices
    14
    """

    def __init__(
        self,
        strings: Sequence[str],
        max_length: int,
        binary: bool = False,
        *,
        memory: int = 2**28,
    ) -> None:
        strings = _check_strings(strings)
        if isinstance(max_length, bool) or not isinstance(max_length, (int, np.integer)):
            raise ValueError(f"max_length must be a whole number, got {max_length!r}.")
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, got {max_length}.")
        self.max_length = int(max_length)
        self.binary = bool(binary)
        self.memory = memory
        self.n_rows = len(strings)
        # A separator after every string: no substring extends beyond the end of its row.
        self._text = "".join(string + "\n" for string in strings)
        lengths = np.array([len(string) + 1 for string in strings])
        points = np.frombuffer(self._text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        is_letter = np.ones(len(points), dtype=bool)
        is_letter[np.cumsum(lengths) - 1] = False
        letters, codes = np.unique(points[is_letter], return_inverse=True)
        if len(letters) == 0:
            raise ValueError("All strings are empty; there is no substring to learn from.")
        self.alphabet: tuple[str, ...] = tuple(map(chr, letters.tolist()))
        self._code = {letter: code for code, letter in enumerate(self.alphabet)}
        # 32 bits take half the memory and sort faster; a text of 2^31 letters needs 64 bits.
        self._dtype = np.dtype(np.int32 if len(points) < 2**31 else np.int64)
        self._codes = np.full(len(points), -1, dtype=self._dtype)
        self._codes[is_letter] = codes
        self._row = np.repeat(np.arange(self.n_rows, dtype=self._dtype), lengths)
        everywhere = np.flatnonzero(is_letter)
        self._levels = [self._name(everywhere, self._codes[everywhere].astype(np.int64), None)]

    @property
    def n_vertices(self) -> int:
        """Number of vertices of the whole graph, a Python int: A^1 + ... + A^k."""
        return sum(len(self.alphabet) ** length for length in range(1, self.max_length + 1))

    def __contains__(self, node: object) -> bool:
        return (
            isinstance(node, str)
            and 1 <= len(node) <= self.max_length
            and all(letter in self._code for letter in node)
        )

    def ancestors(self, node: str) -> list[str]:
        """Return A(v), all substrings of the node including itself, shortest first."""
        self._check_node(node)
        size = len(node)
        pieces = [node[i : i + m] for m in range(1, size + 1) for i in range(size - m + 1)]
        return list(dict.fromkeys(pieces))

    def column(self, node: str) -> FloatArray:
        """Return the feature of the node on the training strings, shape (n,)."""
        self._check_node(node)
        out = np.zeros(self.n_rows)
        if len(node) <= len(self._levels):
            number = self._find(node)
            if number is not None:
                level = self._levels[len(node) - 1]
                part = slice(*level.starts[number : number + 2])
                out[level.rows[part]] = level.counts[part]
        else:
            out += np.bincount(self._row[self._occurrences(node)], minlength=self.n_rows)
        return np.minimum(out, 1.0) if self.binary else out

    def count(self, node: str, strings: Sequence[str]) -> FloatArray:
        """Return the feature of the node on new strings, shape (n_new,).

        Neither the node nor its letters need to occur in the training strings.
        """
        if not isinstance(node, str) or not node:
            raise ValueError(f"A node is a string of at least one letter, got {node!r}.")
        strings = _check_strings(strings)
        if self.binary:
            return np.array([node in string for string in strings], dtype=np.float64)
        # Occurrences can overlap only if a proper suffix of the node is also a prefix of it.
        if not any(node.startswith(node[i:]) for i in range(1, len(node))):
            return np.array([string.count(node) for string in strings], dtype=np.float64)
        return np.array([_count_overlapping(node, string) for string in strings], dtype=np.float64)

    def explore(
        self,
        dual_coef: FloatArray,
        threshold: float,
        weights: Sequence[float],
        *,
        max_nodes: int | None = None,
    ) -> Exploration:
        """Return all s with |a_s|^2 / d_s^2 above a threshold, a_s = sum_i alpha_i Phi_s(x_i).

        Counts never increase as a string grows. So for a strict superstring w of s, |a_w| is at
        most the larger of the positive and the negative part of a_s: (sum_i |alpha_i| Phi_s(x_i) +
        |a_s|) / 2. If this bound, divided by the smallest weight of a longer string and squared, is
        at most the threshold, s is closed. A node is visited only if none of its parents is closed.

        Parameters
        ----------
        dual_coef : ndarray of shape (n,) or (n, k)
            Dual variables alpha; squares are added over the k outputs.
        threshold : float
            At least 0.
        weights : sequence of float
            ``weights[l - 1]`` is d of the strings of length l, for l = 1 .. max_length.
        max_nodes : int, optional
            Stop before a length that would bring the number of explored nodes above this limit.
            ``rest`` then includes the bounds of the nodes that are still open.

        Returns
        -------
        Exploration
        """
        outputs, d = self._check_exploration(dual_coef, threshold, weights)
        violators: dict[str, float] = {}
        rest, n_explored = 0.0, 0
        here = self._levels[0]
        nodes = np.arange(here.size)
        for length in range(1, self.max_length + 1):
            n_explored += len(nodes)
            score, bound = self._squares(here, nodes, outputs)
            score = score / d[length - 1] ** 2
            above = score > threshold
            for j, value in zip(nodes[above], score[above], strict=True):
                violators[self._text[here.first[j] : here.first[j] + length]] = float(value)
            rest = max(rest, score[~above].max(initial=0.0))
            if length == self.max_length:
                break
            bound = bound / min(d[length:]) ** 2
            open_nodes = bound > threshold
            rest = max(rest, bound[~open_nodes].max(initial=0.0))
            if not open_nodes.any():
                break
            is_open = np.zeros(here.size, dtype=bool)
            is_open[nodes[open_nodes]] = True
            here = self._next(here, length, is_open)
            prefixes = here.keys // len(self.alphabet)
            nodes = np.flatnonzero(is_open[prefixes] & is_open[here.suffixes])
            if max_nodes is not None and n_explored + len(nodes) > max_nodes:
                rest = max(rest, bound[open_nodes].max())
                break
        return Exploration(violators, float(rest), n_explored)

    def _squares(
        self, level: _Level, nodes: NDArray[np.intp], outputs: list[FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return |a_s|^2 and the bound on |a_w|^2 of superstrings w, both rounded up."""
        if len(nodes) == 0:
            return np.zeros(0), np.zeros(0)
        sizes = np.diff(level.starts)[nodes]
        starts = np.cumsum(sizes) - sizes
        rows, counts = level.rows, level.counts
        if len(nodes) < level.size:
            entries = np.arange(sizes.sum()) + np.repeat(level.starts[nodes] - starts, sizes)
            rows, counts = rows[entries], counts[entries]
        score, bound = np.zeros(len(nodes)), np.zeros(len(nodes))
        margin = rounding_margin(self.n_rows)
        for dual_coef in outputs:
            products = dual_coef[rows] if self.binary else dual_coef[rows] * counts
            a = np.abs(np.add.reduceat(products, starts))
            total = np.add.reduceat(np.abs(products), starts)
            score += (a + margin * total) ** 2
            bound += (0.5 * (a + total) + margin * total) ** 2
        up = 1.0 + len(outputs) * _EPS
        return score * up, bound * up

    def _next(self, level: _Level, length: int, is_open: NDArray[np.bool_]) -> _Level:
        """Return the next level: complete if it is kept, else only the part below open nodes."""
        if length < len(self._levels):
            return self._levels[length]
        kept = sum(known.n_bytes for known in self._levels)
        if length > len(self._levels) or kept + 36 * len(self._codes) > self.memory:
            return self._extend(level, length, is_open)
        self._levels.append(self._extend(level, length, None))
        return self._levels[-1]

    def _extend(self, level: _Level, length: int, is_open: NDArray[np.bool_] | None) -> _Level:
        names = level.names
        keep = (names[:-1] >= 0) & (names[1:] >= 0)
        if is_open is not None:
            keep &= is_open[names[:-1]] & is_open[names[1:]]
        at = np.flatnonzero(keep)
        keys = names[at].astype(np.int64) * len(self.alphabet) + self._codes[at + length]
        return self._name(at, keys, names)

    def _name(
        self, at: NDArray[np.intp], keys: NDArray[np.int64], shorter: IntArray | None
    ) -> _Level:
        """Return the level of the substrings that start at ``at``; equal ones have equal keys."""
        order = np.argsort(keys, kind="stable")
        at, keys = at[order], keys[order]
        rows = self._row[at]
        new_node = np.ones(len(at), dtype=bool)
        new_node[1:] = keys[1:] != keys[:-1]
        new_pair = new_node.copy()
        new_pair[1:] |= rows[1:] != rows[:-1]
        pairs = np.flatnonzero(new_pair)
        first = at[new_node]
        names = np.full(len(self._codes), -1, dtype=self._dtype)
        names[at] = np.cumsum(new_node) - 1
        return _Level(
            names=names,
            first=first.astype(self._dtype),
            keys=keys[new_node],
            suffixes=np.zeros(0, self._dtype) if shorter is None else shorter[first + 1],
            starts=np.append(np.flatnonzero(new_node[pairs]), len(pairs)),
            rows=rows[pairs],
            counts=np.diff(pairs, append=len(at)).astype(self._dtype),
        )

    def _find(self, node: str) -> int | None:
        """Return the number of a node in its level, which must be kept; None if it is not there."""
        number = 0
        for letter, level in zip(node, self._levels, strict=False):
            key = number * len(self.alphabet) + self._code[letter]
            number = int(np.searchsorted(level.keys, key))
            if number == level.size or level.keys[number] != key:
                return None
        return number

    def _occurrences(self, node: str) -> NDArray[np.intp]:
        """Return the positions of a node, from those of its longest prefix in a kept level."""
        known = min(len(node), len(self._levels))
        number = self._find(node[:known])
        if number is None:
            return np.zeros(0, dtype=np.intp)
        at = np.flatnonzero(self._levels[known - 1].names == number)
        for ahead in range(known, len(node)):
            at = at[self._codes[at + ahead] == self._code[node[ahead]]]
        return at

    def _check_node(self, node: str) -> None:
        if node not in self:
            raise ValueError(
                f"A node is a string of 1 to {self.max_length} letters of the training strings, "
                f"got {node!r}."
            )

    def _check_exploration(
        self, dual_coef: FloatArray, threshold: float, weights: Sequence[float]
    ) -> tuple[list[FloatArray], list[float]]:
        dual_coef = np.asarray(dual_coef, dtype=np.float64)
        if dual_coef.ndim not in (1, 2) or len(dual_coef) != self.n_rows:
            raise ValueError(
                f"dual_coef must have shape ({self.n_rows},) or ({self.n_rows}, k), got "
                f"{dual_coef.shape}."
            )
        if not (np.abs(dual_coef) < _LARGEST_DUAL).all():
            raise ValueError(f"dual_coef must be finite and below {_LARGEST_DUAL:g}.")
        if not threshold >= 0.0:
            raise ValueError(f"threshold must be at least 0, got {threshold!r}.")
        d = [float(weight) for weight in weights]
        low, high = WEIGHT_RANGE
        if len(d) != self.max_length or not all(low <= x <= high for x in d):
            raise ValueError(
                f"weights must be {self.max_length} numbers between {low:g} and {high:g}, one for "
                f"each length, got {weights!r}."
            )
        return [np.ascontiguousarray(column) for column in by_output(dual_coef).T], d


def _check_strings(strings: Any) -> list[str]:
    """Return the strings as a list; raise unless there is at least one and all are strings."""
    if isinstance(strings, (str, bytes)):
        raise ValueError(
            "strings must be a sequence of strings, got a single one; put it in a list."
        )
    out = list(strings)
    if not out:
        raise ValueError("strings is empty; at least one string is needed.")
    for i, string in enumerate(out):
        if not isinstance(string, str):
            raise ValueError(
                f"strings must hold strings only, number {i} is of type {type(string).__name__}."
            )
    return out


def _count_overlapping(node: str, string: str) -> int:
    count, at = 0, string.find(node)
    while at >= 0:
        count, at = count + 1, string.find(node, at + 1)
    return count
