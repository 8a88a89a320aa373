"""The numbers of a formula, evaluated on rows of a matrix, one product after the other."""

from __future__ import annotations

import numpy as np

from hikernel.explain import formula_terms
from hikernel.explain.legend import PowerFactor, step_branch


def factor_values(factor, design, X):
    """One factor at the rows of X, shape (n,)."""
    basis, x = design.bases[factor.variable], np.ascontiguousarray(X[:, factor.variable])
    if isinstance(factor, PowerFactor):
        return basis.argument(x) ** factor.power
    return basis.transform(x)[factor.level][:, 0]


def step_values(basis, heights, x):
    """A step function of one variable at some points, zero where they are missing."""
    cuts = step_branch(basis).cuts
    return np.where(np.isnan(x)[:, None], 0.0, heights[np.sum(x[:, None] > cuts, axis=1)])


class WrittenFormula:
    """The terms of a formula; ``model`` only serves rows that no formula can write down."""

    def __init__(self, model, design):
        self.model, self.design = model, design
        self.terms = formula_terms(model, design)
        self.products, self.wide, self.text = self.terms.products, self.terms.wide, self.terms.text
        self.factors = {factor for product in self.products for factor in product}

    @property
    def exact(self):
        """Whether the formula and its legend write out all functions, as polynomials."""
        return not (self.wide or self.terms.steps) and all(
            isinstance(factor, PowerFactor)
            or self.design.bases[factor.variable].level_polynomial(factor.level) is not None
            for factor in self.factors
        )

    def evaluate(self, X):
        """f at the rows of X, shape (n,) or (n, k), equal to ``model.predict`` up to rounding.

        At a missing value all levels of its variable are zero. For a variable that is expanded
        into powers a formula cannot say so (the constants of its polynomials would have to vanish
        too), and such rows are left to the model.
        """
        out = np.zeros((len(X), self.terms.n_outputs))
        complete = self._complete(X)
        rows = X[complete]
        out[complete] = self._products(rows).sum(axis=0)
        for m, heights in self.terms.steps.items():
            out[complete] += step_values(self.design.bases[m], heights, rows[:, m])
        if self.wide:
            variables = {m for node in self.wide for m, _ in node}
            engine = self.design.engine(rows, np.ones(len(rows)), variables)
            out[complete] += engine.apply(list(self.wide), np.concatenate([*self.wide.values()]))
        if not np.all(complete):
            left = self.model.predict(self.design, X[~complete])
            out[~complete] = left.reshape(-1, out.shape[1])
        return out[:, 0] if self.terms.single else out

    def cancellation(self, X):
        """max_x sum_P |coefs[P] P(x)| / max_x |f(x)|: its logarithm is the number of digits lost.

        One or two digits are usual; levels that would lose more than six are not expanded.
        """
        X = X[self._complete(X)]
        size = np.max(np.abs(self._products(X)).sum(axis=0), initial=0.0)
        largest = np.max(np.abs(self.evaluate(X)), initial=0.0)
        return float(size / largest) if largest > 0.0 else 1.0

    def _complete(self, X):
        """Which rows have no missing value in a variable that is expanded into powers."""
        powers = {factor.variable for factor in self.factors if isinstance(factor, PowerFactor)}
        return ~np.any(np.isnan(X[:, sorted(powers)]), axis=1)

    def _products(self, X):
        """coefs[P] P(x), shape (n_products, n, k)."""
        values = {factor: factor_values(factor, self.design, X) for factor in self.factors}
        return np.array(
            [
                np.outer(np.prod([np.ones(len(X)), *map(values.get, product)], axis=0), coefs)
                for product, coefs in self.products.items()
            ]
        )
