"""One-variable kernels written naively from their formulas, dense and slow.

Nothing here is shared with the library: Hermite polynomials come from scipy, eigenvectors from
the full n x n Gram matrix, orthonormal polynomials from a QR factorisation. Every function takes
standardised training points and weights that sum to one, and evaluates at points x and z.
"""

import math
from fractions import Fraction

import numpy as np
from scipy.special import eval_hermite


def standardise(train, weights, points):
    weights = weights / weights.sum()
    mean = (weights * train).sum()
    std = np.sqrt((weights * (train - mean) ** 2).sum())
    return (points - mean) / std


def gaussian(x, z, b):
    return np.exp(-b * (x[:, None] - z[None, :]) ** 2)


def laplace(x, z, b):
    return np.exp(-b * np.abs(x[:, None] - z[None, :]))


def cubic_spline(x, z):
    values = np.zeros((len(x), len(z)))
    for i, xi in enumerate(x):
        for j, zj in enumerate(z):
            small, large = sorted((abs(xi), abs(zj)))
            values[i, j] = small**2 * (3 * large - small) if xi * zj > 0 else 0.0
    return values


def polynomial_levels(x, z, q):
    return [math.comb(q, j) * np.outer(x**j, z**j) for j in range(q + 1)]


def hermite_levels(x, z, q, a):
    return [
        (a / 2) ** j / math.factorial(j) * np.outer(eval_hermite(j, x), eval_hermite(j, z))
        for j in range(q + 1)
    ]


def mehler_term(x, z, j, b, s, factor=True):
    """Term j of the expansion of exp(-b (x - z)^2); ``factor=False`` is the paper's slip."""
    a = 1 / (4 * s)
    c = math.sqrt(a**2 + 2 * a * b)
    r = b / (a + b + c)
    front = r**j / (2.0**j * math.factorial(j)) * (math.sqrt(1 - r**2) if factor else 1.0)

    def function(points):
        return eval_hermite(j, math.sqrt(2 * c) * points) * np.exp(-r * (a + c) * points**2)

    return front * np.outer(function(x), function(z))


def mehler_levels(x, z, q, b, s, constant, remainder, n_series=110):
    """Levels of the Gaussian basis; the remainder is summed up to ``n_series`` terms."""
    singles = q + (not remainder) - constant
    terms = [mehler_term(x, z, j, b, s) for j in range(n_series if remainder else singles)]
    levels = [np.ones((len(x), len(z)))] if constant else []
    levels += terms[:singles]
    return [*levels, sum(terms[singles:])] if remainder else levels


def orthonormal_levels(x, z, train, weights, q):
    """QR of the weighted Vandermonde matrix in Chebyshev form; points clipped to the range."""
    low, high = train.min(), train.max()

    def vandermonde(points):
        points = np.minimum(np.maximum(points, low), high)
        return np.polynomial.chebyshev.chebvander((2 * points - low - high) / (high - low), q)

    _, triangle = np.linalg.qr(np.sqrt(weights)[:, None] * vandermonde(train))
    left, right = (np.linalg.solve(triangle.T, vandermonde(points).T) for points in (x, z))
    return [np.outer(left[j], right[j]) for j in range(q + 1)]


def asinh_levels(x, z, train, weights, q):
    """Orthonormal polynomials in asinh((x - m) / s), m the lower median, s from E|x - m|."""
    median = min(v for v in train if weights[train <= v].sum() > 0.5 - 1e-9)
    spread = np.sqrt(np.pi / 2) * np.average(np.abs(train - median), weights=weights)
    bent = [np.arcsinh((points - median) / spread) for points in (x, z, train)]
    return orthonormal_levels(*bent, weights, q)


def kernel_pca_levels(x, z, train, weights, kernel, q, constant):
    """Eigenvectors u of W^1/2 K W^1/2; direction j is k(., X) W^1/2 u_j / sqrt(lambda_j)."""
    root = np.sqrt(weights)
    eigenvalues, vectors = np.linalg.eigh(root[:, None] * kernel(train, train) * root)
    singles = q - constant
    levels = [np.ones((len(x), len(z)))] if constant else []
    rest = kernel(x, z)
    for j in range(1, min(singles, len(train)) + 1):
        u = root * vectors[:, -j] / np.sqrt(eigenvalues[-j])
        levels.append(np.outer(kernel(x, train) @ u, kernel(z, train) @ u))
        rest = rest - levels[-1]
    return [*levels, rest]


def residual_diagonal(kernel, train, pivots, points):
    """Diagonal of K - K_p K_pp^-1 K_p', by a dense least-squares solve."""
    cross = kernel(points, pivots)
    solution = np.linalg.lstsq(kernel(pivots, pivots), cross.T, rcond=1e-15)[0]
    return np.diag(kernel(points, points)) - (cross * solution.T).sum(axis=1)


def rank_levels(x, z, train, weights, q, bound):
    """Polynomials orthonormal in the mid-rank, scaled down to the bound, linear in between."""
    values = np.unique(train)
    mass = np.array([weights[train == v].sum() for v in values])
    rank = np.array([weights[train < v].sum() for v in values]) + mass / 2
    powers = np.polynomial.chebyshev.chebvander(2 * rank - 1, min(q, len(values) - 1))
    _, triangle = np.linalg.qr(np.sqrt(mass)[:, None] * powers)
    heights = np.linalg.solve(triangle.T, powers.T)[1:]
    heights = [h * min(1.0, bound / np.abs(h).max()) for h in heights]
    return [np.ones((len(x), len(z)))] + [
        np.outer(np.interp(x, values, h), np.interp(z, values, h)) for h in heights
    ]


def number_between(low, high):
    """The number in [low, high) with the fewest decimals, of several the one nearest the middle."""
    for digits in range(-20, 20):
        unit = Fraction(10) ** -digits
        first, last = math.ceil(Fraction(low) / unit), math.ceil(Fraction(high) / unit) - 1
        if first <= last:
            middle = (Fraction(low) + Fraction(high)) / 2
            nearest = min(
                range(first, min(last, first + 100) + 1), key=lambda k: abs(k * unit - middle)
            )
            return float(nearest * unit)
    raise AssertionError


def steps_levels(x, z, train, weights, q):
    """Haar functions of the weighted distribution, part by part; a cut belongs to its left side."""

    def cut(values):
        """Where the weights of both sides are most equal: the last value of the left side."""
        left = [weights[(train >= values[0]) & (train <= v)].sum() for v in values[:-1]]
        whole = weights[(train >= values[0]) & (train <= values[-1])].sum()
        return values[int(np.argmin([round(abs(one / whole - 0.5), 8) for one in left]))]

    out, parts = [np.ones((len(x), len(z)))], [(-np.inf, np.inf)]
    for _ in range(q):
        functions, halves = [], []
        for low, high in parts:
            values = np.unique(train[(train > low) & (train <= high)])
            if len(values) < 2:
                continue
            last = cut(values)
            first = values[values > last][0]
            t = number_between(last, first)
            w_left = weights[(train > low) & (train <= last)].sum()
            w_right = weights[(train > last) & (train <= high)].sum()
            functions.append((low, t, high, w_left, w_right))
            halves += [(low, t), (t, high)]
        if not functions:
            break

        def values_at(points, functions=functions):
            columns = []
            for low, t, high, a, b in functions:
                inside = (points > low) & (points <= high)
                size = 1 / np.sqrt(len(functions) * (a + b))
                height = np.where(points <= t, -np.sqrt(b / a), np.sqrt(a / b)) * size
                columns.append(np.where(inside, height, 0.0))
            return np.column_stack(columns)

        out.append(values_at(x) @ values_at(z).T)
        parts = halves
    return out


def categorical_levels(x, z, train, weights, bound, most=32):
    """All K centred indicators, unseen values zero, scaled to total variance one or the bound.

    Above ``most`` categories: those of a pool against each other, the next pool as one of them.
    """
    values = np.unique(train)
    shares = np.array([weights[train == v].sum() for v in values])
    pools = [[[v] for v in values]]
    if len(values) > most:
        pool, step, pools = sorted(values, key=lambda v: -shares[values == v][0]), most // 2, []
        while pool:
            step = len(pool) if len(pool) <= 1.5 * step else step
            pools.append([[v] for v in pool[:step]])
            pool = pool[step:]
            if pool:
                pools[-1].append(pool)
            step = most * 2 ** (len(pools) - 1)
    out = [np.ones((len(x), len(z)))]
    for groups in pools:
        w = np.array([shares[np.isin(values, group)].sum() for group in groups])

        def indicators(points, groups=groups, w=w):
            marks = np.column_stack([np.isin(points, group) for group in groups]).astype(float)
            return np.where(marks.any(axis=1)[:, None], marks - w / w.sum(), 0.0)

        rows = indicators(np.array([group[0] for group in groups]))
        variance = (w * (rows**2).sum(axis=1)).sum()
        scale = min(1 / np.sqrt(variance), bound / np.sqrt((rows**2).sum(axis=1).max()))
        out.append(scale**2 * indicators(x) @ indicators(z).T)
    return out


def periodic_levels(x, z, train, weights, period, degree, bound):
    """Levels of waves: inner products of centred points on a circle, scaled as a block."""

    def circle(points, j):
        angle = 2.0 * np.pi * j * np.asarray(points) / period
        return np.exp(1j * angle)

    phases = np.unique(np.round(np.mod(train, period) / period, 9) % 1.0)
    levels = [np.ones((len(x), len(z)))]
    for j in range(1, min(degree, max(1, len(phases) // 2)) + 1):
        mean = np.sum(weights * circle(train, j)) / np.sum(weights)
        variance = np.sum(weights * np.abs(circle(train, j) - mean) ** 2) / np.sum(weights)
        if variance < 1e-6:
            break
        scale = min(1.0 / np.sqrt(variance), bound / (1.0 + abs(mean)))
        rows, columns = circle(x, j) - mean, circle(z, j) - mean
        levels.append(scale**2 * np.real(np.outer(rows, np.conj(columns))))
    return levels
