"""Proofs on a device: every regression set of the paper at the alpha that cross-validation chose.

    python benchmarks/gpu_proofs.py                    # on a GPU: some minutes
    python benchmarks/gpu_proofs.py --engine numpy     # the same on the processor
    python benchmarks/gpu_proofs.py --alphas FILE      # what was chosen before is not chosen again

Training halves of seed 0. Alpha is chosen by ``HKLRegressorCV`` without a proof; then the same
alpha is fitted by ``HKLRegressor`` without a proof and with an exact one that nothing limits. The
time of a proof is the difference of the two, the least of two fits each. ``--alphas`` names a JSON
file of alphas by data set, which is read, and written with those that were not in it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
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
    parser.add_argument("--alphas", type=Path, help="JSON file of alphas that were chosen")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # what is not proven is in the table
    known = args.alphas is not None and args.alphas.exists()
    alphas: dict[str, float] = json.loads(args.alphas.read_text()) if known else {}
    head = ("data", "alpha", "terms", "explored", "gap", "CV", "fit", "proof")
    print("{:>14} {:>9} {:>6} {:>9} {:>8} {:>7} {:>7} {:>7}".format(*head))
    for name in args.datasets:
        X, y = load_paper(args.data, name)
        train, _ = halves(len(y), 0)
        X, y = X.iloc[train], y[train]
        cv_seconds = np.nan
        if name not in alphas:
            start = time.perf_counter()
            cv = HKLRegressorCV(certify="none", engine=args.engine, random_state=0).fit(X, y)
            cv_seconds = time.perf_counter() - start
            alphas[name] = float(cv.alpha_)
            if args.alphas:
                args.alphas.write_text(json.dumps(alphas))
        seconds = {}
        for certify in ("none", "exact"):
            model = HKLRegressor(
                alphas[name], certify=certify, proof_effort=EFFORT, refit=None, engine=args.engine
            )
            times = []
            for _ in range(2):
                start = time.perf_counter()
                model.fit(X, y)
                times.append(time.perf_counter() - start)
            seconds[certify] = min(times)
        proof = model.certificate_
        print(
            f"{name:>14} {alphas[name]:9.3g} {len(model.hull_):6d} {proof.n_explored:9d} "
            f"{proof.relative_gap:8.2g} {cv_seconds:7.1f} {seconds['none']:7.2f} "
            f"{seconds['exact'] - seconds['none']:7.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
