"""A table as numbers, for methods that read nothing else, and what a fitted method answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

__all__ = ["Fitted", "Numbers", "Polynomial", "is_number", "single_effects"]

LARGEST_PRODUCT = 20_000
"""Columns of all products of degree 2; where there are more, only numbers are multiplied."""


@dataclass
class Fitted:
    """A fitted method.

    Parameters
    ----------
    respond : callable
        From a frame to values of y, or to the shares of the classes, in sorted order.
    columns : int
        Number of columns of the table that it uses.
    effects : list of frozenset of str, optional
        The columns of each effect, for methods that have such a list.
    model : object
        What was fitted.
    """

    respond: Callable[[pd.DataFrame], np.ndarray]
    columns: int
    effects: list[frozenset[str]] | None = None
    model: Any = None


def is_number(column: pd.Series) -> bool:
    """Return whether a column holds numbers."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def single_effects(X: pd.DataFrame) -> list[frozenset[str]]:
    """Return one effect per column."""
    return [frozenset([str(name)]) for name in X.columns]


class Numbers:
    """Numbers standardised, text as indicators; a mark where a value is missing.

    A missing number becomes the mean, and a column that has some in training gets an indicator. A
    missing category is a category; one that was not seen in training has no indicator.
    ``owners`` has the column of the table for each one made, ``smooth`` whether it is a number.
    """

    def fit(self, X: pd.DataFrame) -> Numbers:
        self.parts: list[tuple[str, str, Any]] = []
        for name in X.columns:
            column = X[name]
            if is_number(column):
                values = column.to_numpy(float)
                mean, spread = np.nanmean(values), np.nanstd(values)
                if spread > 0.0:
                    self.parts.append((name, "number", (mean, spread)))
                if np.isnan(values).any():
                    self.parts.append((name, "missing", None))
            else:
                text = self._text(column)
                levels = np.unique(text)
                # Two categories need one indicator.
                kept = levels[1:] if len(levels) == 2 else levels
                self.parts += [(name, "category", level) for level in kept if len(levels) > 1]
        self.owners = [str(name) for name, _, _ in self.parts]
        self.smooth = np.array([kind == "number" for _, kind, _ in self.parts])
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        out = np.empty((len(X), len(self.parts)))
        for j, (name, kind, value) in enumerate(self.parts):
            if kind == "category":
                out[:, j] = self._text(X[name]) == value
                continue
            values = X[name].to_numpy(float)
            missing = np.isnan(values)
            if kind == "number":
                out[:, j] = np.where(missing, 0.0, (values - value[0]) / value[1])
            else:
                out[:, j] = missing
        return out

    @staticmethod
    def _text(column: pd.Series) -> np.ndarray:
        return column.astype(object).where(column.notna(), "missing").astype(str).to_numpy(str)


class Polynomial:
    """All products of degree 2 of a table's numbers, standardised, those of one effect together.

    Products of two indicators of one column are zero and left out, as are squares of indicators.
    ``sets`` has the columns of the table of each product, ``starts`` the first product of each set.
    """

    def fit(self, X: pd.DataFrame) -> Polynomial:
        self.numbers = Numbers().fit(X)
        owners, smooth = self.numbers.owners, self.numbers.smooth
        count = len(owners)
        made = [(frozenset([owners[j]]), (j,)) for j in range(count)]
        made += [(frozenset([owners[j]]), (j, j)) for j in np.flatnonzero(smooth).tolist()]
        self.all_pairs = count * (count + 1) // 2 <= LARGEST_PRODUCT
        usable = np.ones(count, bool) if self.all_pairs else smooth
        made += [
            (frozenset([owners[i], owners[j]]), (i, j))
            for i in range(count)
            for j in range(i + 1, count)
            if usable[i] and usable[j] and owners[i] != owners[j]
        ]
        made.sort(key=lambda part: (len(part[0]), sorted(part[0])))
        products = self._products(X, [part for _, part in made])
        kept = np.flatnonzero(products.std(axis=0) > 1e-9)
        self.parts = [made[j][1] for j in kept]
        self.sets = [made[j][0] for j in kept]
        self.scaler = StandardScaler().fit(products[:, kept])
        self.starts = np.array(
            [j for j in range(len(kept)) if j == 0 or self.sets[j] != self.sets[j - 1]]
        )
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        return np.asfortranarray(self.scaler.transform(self._products(X, self.parts)))

    def _products(self, X: pd.DataFrame, parts: list[tuple[int, ...]]) -> np.ndarray:
        Z = self.numbers.transform(X)
        out = np.empty((len(Z), len(parts)), order="F")
        for j, part in enumerate(parts):
            out[:, j] = Z[:, part[0]] if len(part) == 1 else Z[:, part[0]] * Z[:, part[1]]
        return out

    def effects(self, used: np.ndarray) -> list[frozenset[str]]:
        """Return the distinct sets of the products that are used."""
        return list(dict.fromkeys(self.sets[j] for j in np.flatnonzero(used)))
