"""Peak memory of a fit with 200,000 rows, 10 variables and 50 terms.

Prints the peak above the baseline after imports, in units of the feature matrix of those terms
(n times 50 doubles). The target is 5.
"""

from __future__ import annotations

import resource
import sys
import warnings

import numpy as np

from hikernel import HKLRegressor

N_ROWS, N_VARIABLES, N_TERMS = 200_000, 10, 50
TARGET = 5.0


def peak_bytes() -> int:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Fit once and report."""
    # A first small fit loads what is loaded lazily, so that the baseline is the imports' alone.
    rng = np.random.default_rng(0)
    HKLRegressor(1.0).fit(rng.standard_normal((20, 2)), rng.standard_normal(20))
    baseline = peak_bytes()
    X = rng.standard_normal((N_ROWS, N_VARIABLES))
    y = np.sum(X, axis=1) + np.sum(X[:, :-1] * X[:, 1:], axis=1) + rng.standard_normal(N_ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopping at max_kernels is the point
        model = HKLRegressor(1e-6, max_kernels=N_TERMS, certify="none").fit(X, y)
    peak = peak_bytes() - baseline
    features = 8 * N_ROWS * N_TERMS
    largest = max(certificate.n_kernels for certificate in model.history_)
    print(f"hull of {largest} kernels, {len(model.hull_)} kept")
    print(f"peak above the imports: {peak / 2**20:.0f} MiB (X alone: {X.nbytes / 2**20:.0f} MiB)")
    print(f"in units of the {features / 2**20:.0f} MiB feature matrix: {peak / features:.2f}")
    if peak > TARGET * features:
        sys.exit("Target missed.")


if __name__ == "__main__":
    main()
