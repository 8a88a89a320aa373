"""General graphs at size: flat multiple kernel learning by blocks, and Gram matrices of full rank.

Blocks: 10,000 kernels of rank 5 without edges at n = 1,000 (400 MB of features), three of which
carry the signal. Grams: 200 Gaussian kernels of full rank at n = 4,096, each of three columns of
its own, stored in float32; their matrices come from kernel functions, so that predictions work.
Both print what memory and work lie ahead before they start, and run in processes of their own, so
that the peaks are theirs. The Grams of the default size take about 15 GB.

Ends with an error where a fit is not certified or misses a kernel of the truth.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from hikernel import HKLRegressor
from hikernel.graphs import KernelGraph

RANK = 5
COLUMNS = 3
TRUTH = 3
NOISE = 0.3


class Gaussian:
    """exp(-|x - z|^2 / (2 p)) of p columns; a class, so that a model can be pickled."""

    def __init__(self, columns: slice) -> None:
        self.columns = columns

    def __call__(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        a, b = X[:, self.columns], Z[:, self.columns]
        out = a @ b.T
        out *= 2.0
        out -= np.sum(a**2, axis=1)[:, None]
        out -= np.sum(b**2, axis=1)
        np.minimum(out, 0.0, out=out)
        out /= 2.0 * a.shape[1]
        return np.exp(out, out=out)


def peak_gib() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def flat_blocks(n: int, m: int) -> tuple[KernelGraph, np.ndarray, np.ndarray, set[int]]:
    """Return blocks of features without edges, rows, target, and the nodes behind it."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((n, m * RANK)) / np.sqrt(RANK)
    blocks = {k: features[:, RANK * k : RANK * (k + 1)] for k in range(m)}
    truth = {int(k) for k in rng.choice(m, TRUTH, replace=False)}
    signal = sum(blocks[k] @ rng.standard_normal(RANK) for k in sorted(truth))
    y = signal + NOISE * rng.standard_normal(n)
    print(f"blocks: {m:,} kernels of rank {RANK}, n = {n:,}", file=sys.stderr)
    print(
        f"  estimate: {8 * features.size / 2**30:.2f} GiB of features, and as much again as the "
        "engine keeps them; a round scores every kernel in "
        f"{2 * features.size / 1e9:.1f} billion operations",
        file=sys.stderr,
    )
    return KernelGraph(features=blocks), np.arange(n), y, truth


def full_rank(n: int, m: int) -> tuple[KernelGraph, np.ndarray, np.ndarray, set[int]]:
    """Return Gaussian kernels without edges, rows, target, and the nodes behind it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, m * COLUMNS))
    kernels = {k: Gaussian(slice(COLUMNS * k, COLUMNS * (k + 1))) for k in range(m)}
    graph = KernelGraph(kernels=kernels, dtype="float32")
    truth = {int(k) for k in rng.choice(m, TRUTH, replace=False)}
    signal = sum(np.sin(X[:, COLUMNS * k]) * X[:, COLUMNS * k + 1] for k in sorted(truth))
    y = signal + NOISE * rng.standard_normal(n)
    print(f"Grams: {m:,} kernels of full rank in float32, n = {n:,}", file=sys.stderr)
    print(
        f"  estimate: {graph.plan(n)}; a factorisation takes {n**3 / 3e9:.1f} billion operations, "
        f"a round reads every matrix, {4 * m * n**2 / 2**30:.1f} GiB",
        file=sys.stderr,
    )
    return graph, X, y, truth


CASES = {"blocks": (flat_blocks, 0.05), "grams": (full_rank, 0.003)}


def measure(case: str, n: int, m: int) -> dict[str, object]:
    """One fit in this process."""
    make, alpha = CASES[case]
    graph, X, y, truth = make(n, m)
    before = peak_gib()
    start = time.perf_counter()
    model = HKLRegressor(alpha, graph=graph).fit(X, y)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    error = float(np.mean((model.predict(X) - y) ** 2) / np.var(y))
    return {
        "seconds": seconds,
        "predict": time.perf_counter() - start,
        "peak": peak_gib(),
        "before": before,
        "certified": model.certificate_.certified,
        "gap": model.certificate_.relative_gap,
        "rounds": model.n_iter_,
        "hull": len(model.nodes_),
        "found": len(truth & set(model.nodes_)),
        "error": error,
    }


def in_fresh_process(**job: object) -> dict:
    """``measure`` in a process of its own, so that the peak is its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--job", json.dumps(job)],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Run both cases, a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, nargs=2, default=(1000, 10_000), metavar=("N", "M"))
    parser.add_argument("--grams", type=int, nargs=2, default=(4096, 200), metavar=("N", "M"))
    parser.add_argument("--cases", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(**json.loads(arguments.job))))
        return
    met = True
    for case in arguments.cases:
        n, m = getattr(arguments, case)
        row = in_fresh_process(case=case, n=n, m=m)
        print(
            f"{case}: fit {row['seconds']:.1f} s, predict {row['predict']:.2f} s, peak "
            f"{row['peak']:.2f} GiB ({row['before']:.2f} before the fit), "
            f"{'certified' if row['certified'] else 'not certified'} at a gap of {row['gap']:.1e} "
            f"after {row['rounds']} steps, hull of {row['hull']} with {row['found']} of {TRUTH} "
            f"true kernels, training error {100 * row['error']:.1f} %",
            flush=True,
        )
        met = met and row["certified"] and row["found"] == TRUTH
    if not met:
        sys.exit("A fit is not certified, or misses a kernel of the truth.")


if __name__ == "__main__":
    main()
