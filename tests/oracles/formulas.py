"""The numbers of a formula, evaluated on rows of a matrix, one product after the other."""

from __future__ import annotations

import numpy as np

from hikernel.explain import formula_terms
from hikernel.explain.cells import step_branch
from hikernel.explain.legend import PowerFactor


def factor_values(factor, design, X):
    """One factor at the rows of X, shape (n,)."""
    basis, x = design.bases[factor.variable], np.ascontiguousarray(X[:, factor.variable])
    if isinstance(factor, PowerFactor):
        return basis.argument(x) ** factor.power
    return basis.transform(x)[factor.level][:, 0]


def cells(axis, design, X):
    """The cell of every row on an axis, shape (n,); -1 if it is in none."""
    basis, x = design.bases[axis.variable], X[:, axis.variable]
    if axis.kind == "steps":
        return np.where(np.isnan(x), -1, np.sum(x[:, None] > step_branch(basis).cuts, axis=1))
    codes = [0.0, 1.0] if axis.kind == "boolean" else list(basis.branch(1)[0].codes)
    return np.array([codes.index(code) if code in codes else -1 for code in x])


class WrittenFormula:
    """The terms of a formula, evaluated; equal to ``model.predict`` up to rounding."""

    def __init__(self, model, design):
        self.model, self.design = model, design
        self.terms = formula_terms(model, design)
        self.text = self.terms.text

    @property
    def products(self):
        """All products of factors."""
        tables = [table for effect in self.terms.effects for table in effect.tables.values()]
        return [product for table in tables for product in table]

    @property
    def exact(self):
        """Whether the formula and its legend write out all functions, as polynomials."""
        return all(
            not effect.rest and set(effect.tables) <= {()} for effect in self.terms.effects
        ) and all(isinstance(factor, PowerFactor) for p in self.products for factor in p)

    def evaluate(self, X):
        """f at the rows of X, shape (n,) or (n, k)."""
        out = self.terms.intercept + np.zeros((len(X), 1))
        for effect in self.terms.effects:
            out = out + self.effect(effect, X)
        return out[:, 0] if self.terms.single else out

    def effect(self, effect, X):
        """One effect at the rows of X, shape (n, k): zero where one of its variables is missing."""
        parts = self._summands(effect, X)
        out = np.sum(parts, axis=0) if parts else np.zeros((len(X), self.terms.n_outputs))
        if effect.rest:
            variables = {m for node in effect.rest for m, _ in node}
            engine = self.design.engine(X, np.ones(len(X)), variables)
            out = out + engine.apply(list(effect.rest), np.concatenate([*effect.rest.values()]))
        missing = np.isnan(X[:, list(effect.variables)]).any(axis=1)
        return np.where(missing[:, None], 0.0, out)

    def cancellation(self, X):
        """max_x sum_P |coefs[P] P(x)| / max_x |f(x)|: its logarithm is the number of digits lost.

        One or two digits are usual; levels that would lose more than six are not expanded.
        """
        parts = [part for effect in self.terms.effects for part in self._summands(effect, X)]
        size = np.max(np.nansum(np.abs(parts), axis=0), initial=0.0)
        largest = np.max(np.abs(self.evaluate(X)), initial=0.0)
        return float(size / largest) if largest > 0.0 else 1.0

    def _summands(self, effect, X):
        """coefs[cells of x] P(x) for all products P, each of shape (n, k)."""
        out = []
        for axes, sums in effect.tables.items():
            places = [cells(axis, self.design, X) for axis in axes]
            inside = np.all([place >= 0 for place in places], axis=0) | (not places)
            for product, coefs in sums.items():
                values = [factor_values(factor, self.design, X) for factor in product]
                value = np.prod([np.ones(len(X)), *values], axis=0) * inside
                out.append(value[:, None] * (coefs[tuple(places)] if places else coefs))
        return out
