"""Families of sets of variables by their definition, and random ones."""

import itertools

from hikernel.graphs.restriction import Restriction

__all__ = ["all_supports", "naive_permits", "random_restriction"]


def naive_permits(rule, support):
    """Whether a set of variables is in the family, word for word."""
    columns = [rule.column_of[m] for m in support]
    if len(set(columns)) < len(columns):
        return False
    s = set(columns)
    if len(s) <= 1:
        return True
    if rule.allowed is not None and not any(len(s - set(n)) <= k for n, k in rule.allowed):
        return False
    return not any(set(b) <= s and len(s - set(b)) >= k for b, k in rule.forbidden)


def all_supports(rule):
    p = len(rule.column_of)
    return [s for size in range(p + 1) for s in itertools.combinations(range(p), size)]


def random_restriction(rng, n_columns, *, indicators=1):
    """Up to three allowed and three forbidden groups of columns and stars."""

    def group():
        size = int(rng.integers(0, 4))
        stars = int(rng.integers(max(0, 2 - size), 3)) if rng.random() < 0.4 or size < 2 else 0
        columns = sorted(rng.choice(n_columns, size, replace=False).tolist())
        return tuple(columns), stars

    owners = rng.choice(n_columns, indicators, replace=False).tolist()
    allowed = None if rng.random() < 0.4 else tuple(group() for _ in range(rng.integers(0, 4)))
    forbidden = tuple(group() for _ in range(rng.integers(0, 4)))
    return Restriction((*range(n_columns), *owners), allowed, forbidden)
