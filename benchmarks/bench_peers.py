"""HKL with all defaults beside every peer, on the sets of the paper, tables, and known truths.

Error: 100 * mean squared error / variance of y, both on the test rows, or 100 * mean log loss for
classes; "wrong" is the percentage of wrong labels. Seconds: processor time of the fit with all its
choices, one thread, so that other work on the machine counts little; compiling (numba) and imports
are done before. A fit of more than ``--limit`` such seconds is ended, and that is saved.

Effects: how many the model has, where it has a list of them; columns: how many it uses.
Found: true effects that are in the list. Extra: effects in the list that are not true and not
part of a true one (x1 is part of x1 * x2).

Results are kept in a file of one line each (``--results``) and not computed again.
``peers_page.py`` makes the page of the documentation from it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
import warnings
from functools import partial
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pandas as pd
from common import add_data_folder, run_missing
from encoding import Fitted
from peers import OURS, PEERS, Method, hkl
from problems import GROUPS, Problem, default_tables, problem, score
from threadpoolctl import threadpool_limits

SEEDS = {"paper": [0], "tables": [17], "generated": [0, 1, 2]}
MEMORY = 12 * 2**30
PACKAGES = {
    OURS: "hikernel",
    "linear": "scikit-learn",
    "HistGB": "scikit-learn",
    "LightGBM": "lightgbm",
    "skglm": "skglm",
    "adelie": "adelie",
    "pyGAM": "pygam",
    "kernel ridge": "scipy",
    "GP": "scipy",
    "EBM": "interpret-core",
}


METHODS: dict[str, Method] = {**PEERS, OURS: hkl}


def recovery(data: Problem, fitted: Fitted) -> dict[str, int]:
    """Return how many true effects are in the list, and how many of the list are not true."""
    if not data.truth or fitted.effects is None:
        return {}
    extra = [e for e in fitted.effects if not any(e <= true for true in data.truth)]
    return {
        "true": len(data.truth),
        "found": sum(true in fitted.effects for true in data.truth),
        "extra": len(extra),
    }


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(data: Problem, method: str, seed: int) -> dict[str, Any]:
    """Return what one fit of one method has to show."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        start = processor_seconds()
        fitted = METHODS[method](data.X, data.y, data.classes, seed)
        seconds = processor_seconds() - start
        out: dict[str, Any] = score(data, fitted.respond(data.X_test))
    out |= {"seconds": round(seconds, 3), "columns": fitted.columns}
    if fitted.effects is not None:
        out["effects"] = len(fitted.effects)
    out |= recovery(data, fitted)
    if method == OURS:
        proof = fitted.model.certificate_
        out |= {
            "terms": len(fitted.model.terms_),
            "refit": fitted.model.refit_,
            "gap": float(proof.relative_gap),
            "certified": bool(proof.certified),
        }
    return out


def in_child(pipe: Connection, limit: int, data: Problem, method: str, seed: int) -> None:
    """Send the result of a fit, or the reason why there is none."""
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        pipe.send(measure(data, method, seed))
    except Exception as error:  # a peer that fails is a result
        pipe.send({"failure": f"{type(error).__name__}: {error}".partition("\n")[0][:200]})


def one_fit(args: argparse.Namespace, name: str, seed: int, method: str) -> dict[str, Any]:
    """Return the result of a fit in a process of its own, which a limit of time may end."""
    data = problem(args.data, args.tables, name, seed)
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    child = fork.Process(target=in_child, args=(theirs, args.limit, data, method, seed))
    child.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        child.join()
        over = child.exitcode in (-24, -9)  # SIGXCPU, and SIGKILL beyond the hard limit
        reason = f"more than {args.limit} s" if over else f"ended with status {child.exitcode}"
        found = {"failure": reason}
    child.join()
    group = next(group for group, names in GROUPS.items() if name in names)
    head = {"data": name, "group": group, "seed": seed, "method": method}
    return head | {"rows": len(data.y), "version": version(PACKAGES[method])} | found


def warm_up(method: str) -> None:
    """Fit once on few rows: the processes of the fits inherit imports and compiled code."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    y = frame["a"].to_numpy() + 0.1 * rng.normal(size=80)
    for classes, target in ((False, y), (True, (y > 0.0).astype(int))):
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            METHODS[method](frame, target, classes, 0).respond(frame)


def describe(row: dict[str, Any]) -> str:
    """Return a result in a few words."""
    if "failure" in row:
        return str(row["failure"])
    text = f"{row['error']:8.3f} {row['seconds']:7.1f} s {row['columns']} columns"
    if "effects" in row:
        text += f", {row['effects']} effects"
    if "found" in row:
        text += f", {row['found']} of {row['true']} found, {row['extra']} extra"
    return text


def main() -> None:
    names = [name for group in GROUPS.values() for name in group]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_data_folder(parser)
    parser.add_argument("--tables", type=FilePath, default=default_tables())
    parser.add_argument("--datasets", nargs="+", default=names, choices=names)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--limit", type=int, default=600, help="processor seconds of a fit")
    parser.add_argument("--results", type=FilePath, default=FilePath("docs/peers/peers.jsonl"))
    args = parser.parse_args()
    for method in args.methods:
        try:
            warm_up(method)
        except ImportError as error:
            print(f"{method} is left out: {error}")
            continue
        for group in ("generated", "tables", "paper"):
            chosen = [name for name in args.datasets if name in GROUPS[group]]
            job = argparse.Namespace(
                results=args.results,
                seeds=SEEDS[group],
                methods=[method],
                datasets=chosen,
                n_jobs=1,
            )
            run_missing(job, partial(one_fit, args), describe)


if __name__ == "__main__":
    main()
