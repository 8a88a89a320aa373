"""Kill hikernel with SIGKILL at random points, and check what is left on the disk.

Three kinds of work are killed in turn: models that are fitted and saved one after the other, one
file that is saved again and again, and ``hikernel reproduce``. After each kill no file that has the
name of a model or of a result may be a part of one, nothing that was announced as saved may be
missing, and what goes on from there must end with the files of a run that was never killed.

``python tools/faults.py --kills 100 --seed 0``; ``make faults`` does that.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from hikernel import HKLRegressor, load
from hikernel.experiments.figure import figure_jobs
from hikernel.experiments.store import Store

N_MODELS = 12
"""Models that the work "fit" fits and saves."""
N_SAVED_ROWS = 40_000
"""Rows of the models of the work "save": a file of a megabyte takes some time to write."""
N_SEEDS = 12
"""Draws of the figure that ``hikernel reproduce`` computes: short jobs, so that many are saved."""
DATA, METHODS = "synthetic-plain-4", ("greedy", "L2")
JOBS = [job for job in figure_jobs(N_SEEDS) if job.data == DATA and job.method in METHODS]
KILLED = "One of the processes was killed from outside"


class FaultError(Exception):
    """Something was lost, or a part of a file was taken for the whole."""


# -- what is killed: `python tools/faults.py --victim NAME FOLDER` -------------------------------


def model_of(number: int, rows: int = 150) -> HKLRegressor:
    """Return the fitted model of a number, always the same one."""
    rng = np.random.default_rng(number)
    X = rng.uniform(-1.0, 1.0, size=(rows, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(rows)
    return HKLRegressor(alpha=0.01, max_order=2, certify="none").fit(X, y)


def fit_and_save(folder: Path) -> None:
    """Fit and save the models that are missing; say each number once its file is there."""
    for number in range(N_MODELS):
        path = folder / f"{number}.hik"
        if not path.exists():
            model_of(number).save(path)
        print(number, flush=True)


def save_forever(folder: Path) -> None:
    """Save two models to the same file by turns, until killed."""
    models = [load(folder / name) for name in ("first", "second")]
    while True:
        for model in models:
            model.save(folder / "model.hik")
            print("saved", flush=True)


VICTIMS: dict[str, Callable[[Path], None]] = {"fit": fit_and_save, "save": save_forever}


def command_of(name: str, folder: Path) -> list[str]:
    """Return the command line of a kind of work."""
    if name == "reproduce":
        seeds = [str(seed) for seed in range(N_SEEDS)]
        words = ["reproduce", "figure2", "--datasets", DATA, "--methods", *METHODS]
        words += ["--seeds", *seeds, "--n-jobs", "2", "--results", str(folder)]
        return [sys.executable, "-m", "hikernel", *words]
    return [sys.executable, __file__, "--victim", name, str(folder)]


# -- who kills -----------------------------------------------------------------------------------


@contextmanager
def running(name: str, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Start the work in a session of its own; give the process and the file of what it says.

    At the end, what is left of it is killed, workers included.
    """
    said = folder.parent / "said"
    with open(said, "wb") as out:
        process = subprocess.Popen(
            command_of(name, folder),
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
    try:
        yield process, said
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def kill_at_random(name: str, folder: Path, rng: random.Random, span: float) -> list[str]:
    """Run the work, kill it at a random moment after its first line; return the lines it said.

    Parameters
    ----------
    name : str
        The kind of work.
    folder : Path
        Where it writes.
    rng : random.Random
        Draws the moment.
    span : float
        Seconds after the first line within which it is killed.
    """
    with running(name, folder) as (process, said):
        while said.stat().st_size == 0 and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, span))
        workers = workers_of(process.pid)
        if workers and rng.random() < 0.4:
            with suppress(ProcessLookupError):
                os.kill(rng.choice(workers), signal.SIGKILL)
            process.wait(timeout=60)
            if process.returncode != 0 and KILLED not in said.read_text():
                raise FaultError(f"a killed worker ends in: {said.read_text()[-500:]}")
        else:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        text = said.read_text()
    return text[: text.rfind("\n") + 1].splitlines()  # a line that was cut off announces nothing


def workers_of(parent: int) -> list[int]:
    """Return the processes that compute the jobs of ``hikernel reproduce``."""
    found = []
    for task in Path("/proc", str(parent), "task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            with suppress(FileNotFoundError):
                if b"LokyProcess" in Path("/proc", str(child), "cmdline").read_bytes():
                    found.append(child)
    return found


def finish(name: str, folder: Path) -> None:
    """Run the work to its end."""
    with running(name, folder) as (process, said):
        process.wait(timeout=300)
        if process.returncode != 0:
            raise FaultError(f"{name} does not go on after a kill: {said.read_text()[-500:]}")


# -- what must hold after each kill --------------------------------------------------------------


def check_fit(folder: Path, lines: list[str], expected: dict[str, bytes]) -> None:
    """Every file that has its name is whole, and every file that was announced is there."""
    names = {path.name for path in folder.iterdir() if path.suffix == ".hik"}
    for name in names:
        if (folder / name).read_bytes() != expected[name]:
            raise FaultError(f"{name} is not the file that an undisturbed run writes")
        load(folder / name)
    lost = {f"{line}.hik" for line in lines} - names
    if lost:
        raise FaultError(f"{sorted(lost)} were announced as saved and are not there")


def check_save(folder: Path, lines: list[str], expected: dict[str, bytes]) -> None:
    """The file is one of the two models, whole; a file that was not there stays away."""
    path = folder / "model.hik"
    if path.exists():
        if path.read_bytes() not in expected.values():
            raise FaultError("model.hik is none of the two files")
        load(path)
    elif lines:
        raise FaultError("model.hik was announced as saved and is not there")


def check_reproduce(folder: Path, lines: list[str], expected: dict[str, str]) -> None:
    """Every saved result is that of an undisturbed run, and none that was announced is missing."""
    store = Store(folder / "figure2.jsonl")
    saved = store.results()
    for job, result in saved.items():
        if numbers_of(result.to_json()) != expected[str(job)]:
            raise FaultError(f"the saved result of {job} is not that of an undisturbed run")
    announced = {str(job) for job in JOBS if any(f"] {job}: " in line for line in lines)}
    if announced - {str(job) for job in saved}:
        raise FaultError(f"{announced} were announced as done, and not all of them are saved")


def numbers_of(line: str) -> str:
    """Return a result as text without its time."""
    row = json.loads(line)
    del row["seconds"]
    return json.dumps(row, sort_keys=True)


# -- the rounds ----------------------------------------------------------------------------------


def kill_fits(folder: Path, kills: int, rng: random.Random) -> int:
    """Kill a run of fits, go on with it, kill it again; return how many files were half written."""
    whole = folder / "whole"
    whole.mkdir()
    fit_and_save_quietly(whole)
    expected = {path.name: path.read_bytes() for path in whole.iterdir()}
    work = _fresh(folder, 0)
    for kill in range(kills):
        before = {path.name for path in work.glob("*.hik")}
        check_fit(work, kill_at_random("fit", work, rng, 0.4), expected)
        if before - {path.name for path in work.glob("*.hik")}:
            raise FaultError("files that were there before a kill are gone")
        if len(before) == N_MODELS:
            work = _fresh(folder, kill + 1)
    finish("fit", work)
    check_fit(work, [str(number) for number in range(N_MODELS)], expected)
    return len(list(folder.rglob(".*.tmp")))


def fit_and_save_quietly(folder: Path) -> None:
    """Fit and save all models in this process."""
    for number in range(N_MODELS):
        model_of(number).save(folder / f"{number}.hik")


def kill_saves(folder: Path, kills: int, rng: random.Random) -> int:
    """Kill saves to one file; return how many files were half written."""
    work = _fresh(folder, 0)
    for number, name in enumerate(("first", "second")):
        model_of(number, N_SAVED_ROWS).save(work / name)
    expected = {name: (work / name).read_bytes() for name in ("first", "second")}
    for _ in range(kills):
        check_save(work, kill_at_random("save", work, rng, 0.2), expected)
    load(work / "first").save(work / "model.hik")
    if (work / "model.hik").read_bytes() != expected["first"]:
        raise FaultError("model.hik cannot be saved any more")
    return len(list(folder.rglob(".*.tmp")))


def kill_reproductions(folder: Path, kills: int, rng: random.Random) -> int:
    """Kill ``hikernel reproduce`` and go on with it; return how many lines were cut off."""
    whole = folder / "whole"
    whole.mkdir()
    finish("reproduce", whole)
    results = Store(whole / "figure2.jsonl").results()
    if set(results) != set(JOBS):
        raise FaultError("an undisturbed run does not do all jobs")
    expected = {str(job): numbers_of(result.to_json()) for job, result in results.items()}
    work = _fresh(folder, 0)
    for kill in range(kills):
        check_reproduce(work, kill_at_random("reproduce", work, rng, 4.0), expected)
        if not Store(work / "figure2.jsonl").missing(JOBS):
            work = _fresh(folder, kill + 1)
    finish("reproduce", work)
    check_reproduce(work, [f"] {job}: " for job in JOBS], expected)
    return sum(len(Store(file).unreadable()) for file in folder.rglob("figure2.jsonl"))


def _fresh(folder: Path, number: int) -> Path:
    made = folder / f"work{number}"
    made.mkdir()
    return made


ROUNDS = {"fit": kill_fits, "save": kill_saves, "reproduce": kill_reproductions}
_SHARES = {"fit": 0.35, "save": 0.35, "reproduce": 0.3}


def main() -> int:
    """Run the rounds that are asked for; return 1 if one of them finds a fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="of all kinds of work together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=ROUNDS, help="one kind of work")
    parser.add_argument("--victim", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.victim:
        VICTIMS[given.victim[0]](Path(given.victim[1]))
        return 0
    faults = 0
    for name in [given.only] if given.only else list(ROUNDS):
        kills = given.kills if given.only else max(1, round(_SHARES[name] * given.kills))
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                partial = ROUNDS[name](Path(folder), kills, random.Random(f"{name}{given.seed}"))
            except FaultError as fault:
                faults += 1
                print(f"{name}: FAULT: {fault}", flush=True)
                continue
        took = time.monotonic() - began
        print(f"{name}: {kills} kills, {partial} in the middle of a file, {took:.0f} s", flush=True)
    print(f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
