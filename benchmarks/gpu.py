"""What the torch engine does on one device, beside what the device could do at best.

    python benchmarks/gpu.py                  # everything, on a GPU: about ten minutes
    python benchmarks/gpu.py --scale 0.002    # the same with few rows, as a trial on any machine

First the rates of the device: products of large matrices in float64 and float32, and copies in its
memory. Then one line per task: seconds, the work that cannot be avoided (two operations per term of
a sum), the seconds that this work takes at the measured float64 rate, and the ratio of the two. The
work of a task is a lower bound, so a share of 100 % cannot be reached where kernels are made first.

The tasks: bounds of a frontier (all sets of up to five of 32 variables and some of six, level by
level); the sum over all 5^32 kernels; 1,000 bounds for many rows; scores of all extensions; a
certified path of ten alphas to a known hull; cross-validation beside the NumPy engine on two cores,
which gets ``--limit`` seconds in a process of its own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hikernel import HKLRegressorCV
from hikernel.columns import ColumnGrid
from hikernel.engines import choose_engine
from hikernel.engines.protocol import FloatArray, GridEngine, Node
from hikernel.engines.torch_device import TorchDevice
from hikernel.graphs import Grid, geometric_weights
from hikernel.losses import SquaredError
from hikernel.search import SearchSettings
from hikernel.selection import TrainingProblem, compute_path

P, DEGREE, WEIGHT_BASE = 32, 4, 3.0
N_FRONTIER, N_MANY, N_WHOLE = 4096, 131_072, 1_048_576
N_BOUNDS, N_MANY_BOUNDS, N_PREFIXES = 284_000, 1000, 7936

TRUTH: dict[Node, float] = {
    ((0, 1),): 1.0,
    ((3, 2),): 0.7,
    ((5, 1), (8, 1)): 1.0,
    ((1, 1), (2, 1), (4, 1)): 0.8,
    ((1, 1), (2, 1), (4, 1), (6, 1)): 1.0,
}
"""Terms of the path, of one to four variables."""


@dataclass(frozen=True)
class Result:
    """One task: seconds, and the operations that it cannot do without (None if uncounted)."""

    task: str
    seconds: float
    work: float | None
    note: str = ""

    def line(self, rate: float) -> str:
        """Return the line of the table, for operations per second of the device."""
        if self.work is None:
            return f"{self.task:<44} {self.seconds:9.2f} {'':>9} {'':>9} {'':>7}  {self.note}"
        least = self.work / rate
        share = 100.0 * least / self.seconds
        return (
            f"{self.task:<44} {self.seconds:9.2f} {self.work / 1e12:9.3g} {least:9.3g} "
            f"{share:6.1f}%  {self.note}"
        )


def best_of(times: int, run: Callable[[], Any]) -> float:
    """Return the least of some times, in seconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def rates(device: str, side: int) -> dict[str, float]:
    """Return operations per second of matrix products, and bytes per second of copies."""
    import torch

    def finish() -> None:
        if device != "cpu":
            torch.cuda.synchronize(device)

    out = {}
    for name, kind in (("float64", torch.float64), ("float32", torch.float32)):
        a = torch.rand((side, side), dtype=kind, device=device)
        b = torch.empty_like(a)

        def product(a: Any = a, b: Any = b) -> None:
            torch.mm(a, a, out=b)
            finish()

        product()
        out[name] = 2.0 * side**3 / best_of(5, product)

    def copy() -> None:
        b.copy_(a)
        finish()

    copy()
    out["copy"] = 2.0 * a.element_size() * a.numel() / best_of(5, copy)
    return out


def grid() -> Grid:
    """Return the grid of all products: 5^32 kernels."""
    return Grid(geometric_weights([DEGREE] * P, WEIGHT_BASE))


def made_engine(name: str, n: int) -> tuple[GridEngine, FloatArray]:
    """Return an engine over Legendre polynomials of uniform columns, and a dual vector."""
    rng = np.random.default_rng(0)

    def levels() -> Iterator[list[FloatArray]]:
        for _ in range(P):
            x = rng.uniform(-1.0, 1.0, n)
            table = np.polynomial.legendre.legvander(x, DEGREE) * np.sqrt(
                2.0 * np.arange(DEGREE + 1) + 1.0
            )
            yield [table[:, [j]] for j in range(DEGREE + 1)]

    make = choose_engine(name)
    engine = make([(1,) * (DEGREE + 1)] * P, levels(), np.ones(n), [True] * P)
    alpha = np.random.default_rng(1).standard_normal(n)
    return engine, alpha - alpha.mean()


def known_data(n: int, p: int) -> tuple[FloatArray, FloatArray]:
    """Return uniform columns, and a target of the terms of ``TRUTH`` and noise half as large."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), (n, p))
    signal = np.zeros(n)
    for term, size in TRUTH.items():
        # Squares have no linear part, and their mean is zero.
        signal += size * np.prod([X[:, m] ** j - float(j == 2) for m, j in term], axis=0)
    return X, signal + 0.5 * np.std(signal) * rng.standard_normal(n)


def supports(most: int, sizes: range) -> Iterator[list[Node]]:
    """Yield the sets of variables of each size, as nodes, up to a number in all."""
    for size in sizes:
        sets = itertools.combinations(range(P), size)
        nodes = [tuple((m, 1) for m in s) for s in itertools.islice(sets, most)]
        most -= len(nodes)
        if nodes:
            yield nodes


def bounds(task: str, name: str, n: int, most: int, sizes: range) -> Result:
    """Descendant sums of sets of variables, one call per size as in a proof."""
    engine, alpha = made_engine(name, n)
    scales, work = grid().tail_scales(), 0.0
    start = time.perf_counter()
    for nodes in supports(most, sizes):
        engine.tail_sums(nodes, alpha, scales)
        work += n * (n + 1) / 2 * (2.0 * len(nodes) + 2.0 * 2 * P * DEGREE)
    return Result(task, time.perf_counter() - start, work)


def whole_tail(task: str, name: str, n: int) -> Result:
    """The sum over all kernels."""
    engine, alpha = made_engine(name, n)
    start = time.perf_counter()
    engine.tail_sums([()], alpha, grid().own_scales())
    seconds = time.perf_counter() - start
    return Result(task, seconds, n * (n + 1) / 2 * P * (2.0 * DEGREE + 1.0))


def scores(task: str, name: str, n: int) -> Result:
    """Scores of all one-variable extensions of products of two levels, the best of three."""
    engine, alpha = made_engine(name, n)
    pairs = [(a, b) for a, b in itertools.combinations(engine.level_pairs, 2) if a[0] != b[0]]
    prefixes = pairs[:N_PREFIXES]
    seconds = best_of(3, lambda: engine.extension_squares(prefixes, alpha, rounded_up=False))
    return Result(task, seconds, 2.0 * n * len(prefixes) * len(engine.level_pairs))


def path(task: str, name: str, n: int) -> Result:
    """Ten alphas with a proof each, from the table in the memory of the host to the models."""
    X, y = known_data(n, 12)
    # No limit on the work of a proof: the usual one is what two cores do in a minute.
    settings = SearchSettings(certify="statistical", max_work=np.inf)
    start = time.perf_counter()
    source = ColumnGrid(engine=name)
    problem = TrainingProblem.make(source, source.read(X), y, np.ones(n), SquaredError())
    found = compute_path(problem, np.geomspace(0.003, 0.00003, 10), settings)
    seconds = time.perf_counter() - start
    truth = Grid(geometric_weights([DEGREE] * 12, 2.0)).hull(TRUTH)
    exact = sum(set(point.model.nodes) == truth for point in found.points)
    proven = sum(point.model.certificate.certified for point in found.points)
    note = f"{len(found.points)} alphas, {proven} proven, true hull at {exact}"
    return Result(task, seconds, None, note)


def cross_validated(name: str, n: int) -> float:
    """Return the seconds of a cross-validated fit."""
    X, y = known_data(n, P)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it could not prove is not the point
        HKLRegressorCV(engine=name, random_state=0).fit(X, y)
    return time.perf_counter() - start


def beside_numpy(task: str, name: str, n: int, limit: float) -> Result:
    """Cross-validation with this engine, and with the NumPy engine in a process of its own."""
    seconds = cross_validated(name, n)
    threads = {f"{kind}_NUM_THREADS": "2" for kind in ("OPENBLAS", "OMP", "MKL")}
    command = [sys.executable, __file__, "--job", json.dumps({"name": "numpy", "n": n})]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, check=True, env=os.environ | threads, timeout=limit
        )
        other = float(done.stdout.split()[-1])
        note = f"NumPy on two cores: {other:.1f} s, {other / seconds:.1f} times as long"
    except subprocess.TimeoutExpired:
        note = f"NumPy on two cores: more than {limit:.0f} s, {limit / seconds:.1f} times as long"
    return Result(task, seconds, None, note)


def tasks(name: str, scale: float, limit: float) -> dict[str, Callable[[], Result]]:
    """Return the tasks by name, with rows times ``scale``."""

    def rows(n: int) -> int:
        return max(64, int(scale * n))

    few, many, all_rows = rows(N_FRONTIER), rows(N_MANY), rows(N_WHOLE)
    n_bounds = max(600, int(min(1.0, scale) * N_BOUNDS))
    whole = f"sum over 5^{P} kernels, n = {all_rows}"
    n_many = f"{N_MANY_BOUNDS} bounds, n = {many}"
    n_scores = f"{N_PREFIXES * P * DEGREE} scores, n = {all_rows}"
    return {
        "frontier": lambda: bounds(
            f"{n_bounds} bounds, n = {few}", name, few, n_bounds, range(1, 7)
        ),
        "whole": lambda: whole_tail(whole, name, all_rows),
        "many": lambda: bounds(n_many, name, many, N_MANY_BOUNDS, range(2, 4)),
        "scores": lambda: scores(n_scores, name, all_rows),
        "path": lambda: path(f"path, n = {all_rows}, p = 12", name, all_rows),
        "cv": lambda: beside_numpy(f"HKLRegressorCV, n = {many}, p = {P}", name, many, limit),
    }


def main() -> None:
    """Print the rates and the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", default="torch", help='"torch:cuda:1", "torch:cpu", "numpy"')
    parser.add_argument("--scale", type=float, default=1.0, help="factor on all numbers of rows")
    parser.add_argument("--only", nargs="*", help="frontier, whole, many, scores, path, cv")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for the NumPy engine")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        print(cross_validated(**args.job))
        return
    chosen = tasks(args.engine, args.scale, args.limit)
    unknown = set(args.only or ()) - set(chosen)
    if unknown:
        sys.exit(f"No task is called {', '.join(sorted(unknown))}: there are {', '.join(chosen)}.")
    device = "cpu" if args.engine == "numpy" else choose_engine(args.engine).device().name
    with TorchDevice(device).working():  # with the threads that the engine takes
        found = rates(device, max(1024, int(min(1.0, args.scale) * 8192)))
    print(
        f"{args.engine} on {device}: float64 {found['float64'] / 1e12:.3g} TFLOP/s, "
        f"float32 {found['float32'] / 1e12:.3g} TFLOP/s, copies {found['copy'] / 1e9:.3g} GB/s"
    )
    small = tasks(args.engine, 0.0, 0.0)
    print(f"{'task':<44} {'seconds':>9} {'TFLOP':>9} {'at best':>9} {'share':>7}")
    for task in args.only or chosen:
        if task != "cv":
            small[task]()  # loads and compiles what is used for the first time
        print(chosen[task]().line(found["float64"]), flush=True)


if __name__ == "__main__":
    main()
