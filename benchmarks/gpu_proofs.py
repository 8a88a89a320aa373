"""Proofs on a device: every regression set of the paper at the alpha that cross-validation chose.

    python benchmarks/gpu_proofs.py                    # on a GPU: some minutes
    python benchmarks/gpu_proofs.py --engine numpy     # the same on the processor

Training halves of seed 0. Alpha is chosen by ``HKLRegressorCV`` without a proof; then the same
alpha is fitted by ``HKLRegressor`` without a proof and with an exact one that nothing limits. The
time of a proof is the difference of the two, the least of two fits each.
"""

from __future__ import annotations

import argparse
import time
import warnings

from common import add_data_folder
from problems import PAPER_REGRESSION, halves, load_paper

from hikernel import HKLRegressor, HKLRegressorCV

EFFORT = 1e4
"""Work of a proof, relative to the default: none of these proofs needs as much."""


def main() -> None:
    """Print a line per data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_folder(parser)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--datasets", nargs="*", default=PAPER_REGRESSION)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # what is not proven is in the table
    head = ("data", "alpha", "terms", "explored", "gap", "CV", "fit", "proof")
    print("{:>14} {:>9} {:>6} {:>9} {:>8} {:>7} {:>7} {:>7}".format(*head))
    for name in args.datasets:
        X, y = load_paper(args.data, name)
        train, _ = halves(len(y), 0)
        X, y = X.iloc[train], y[train]
        start = time.perf_counter()
        cv = HKLRegressorCV(certify="none", engine=args.engine, random_state=0).fit(X, y)
        cv_seconds = time.perf_counter() - start
        seconds = {}
        for certify in ("none", "exact"):
            model = HKLRegressor(
                cv.alpha_, certify=certify, proof_effort=EFFORT, refit=None, engine=args.engine
            )
            times = []
            for _ in range(2):
                start = time.perf_counter()
                model.fit(X, y)
                times.append(time.perf_counter() - start)
            seconds[certify] = min(times)
        proof = model.certificate_
        print(
            f"{name:>14} {cv.alpha_:9.3g} {len(model.hull_):6d} {proof.n_explored:9d} "
            f"{proof.relative_gap:8.2g} {cv_seconds:7.1f} {seconds['none']:7.2f} "
            f"{seconds['exact'] - seconds['none']:7.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
