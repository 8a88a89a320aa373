"""Results that survive a kill: one line of JSON per finished job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Job", "Result", "Store"]


@dataclass(frozen=True)
class Job:
    """What is computed at once: one method with one kernel on one split of one data set."""

    data: str
    kernel: str
    method: str
    seed: int

    def __str__(self) -> str:
        return f"{self.data} {self.kernel} {self.method} seed {self.seed}"


@dataclass(frozen=True)
class Result:
    """Errors of a job along its grid of regularisation parameters.

    Attributes
    ----------
    job : Job
        What was computed.
    n, p : int
        Rows and columns of the data as used.
    grid : list of float
        Regularisation parameters, from much to little.
    test : list of float
        Error on the test half for each, in percent (of the variance, or of the rows).
    cv : list of float
        Criterion of the cross-validation inside the training half for each; its least picks the
        honest parameter.
    terms : list of int
        Kernels in use for each; empty where that means nothing.
    seconds : float
        Time of the job.
    note : str
        Why a path ended early, or nothing.
    """

    job: Job
    n: int
    p: int
    grid: list[float]
    test: list[float]
    cv: list[float]
    terms: list[int]
    seconds: float
    note: str = ""

    def to_json(self) -> str:
        """Return one line."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Result:
        """Read a line back."""
        row: dict[str, Any] = json.loads(line)
        return cls(job=Job(**row.pop("job")), **row)


class Store:
    """A file of results, appended to, read whole.

    A line that was cut off by a kill is left out when reading; its job counts as not done.

    Parameters
    ----------
    file : Path
        The file; its folder is made when the first result comes.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def __iter__(self) -> Iterator[Result]:
        if not self.file.exists():
            return
        for line in self.file.read_text(encoding="utf-8").splitlines():
            try:
                yield Result.from_json(line)
            except (ValueError, TypeError, KeyError):
                continue

    def results(self) -> dict[Job, Result]:
        """Return the results by job; of one that was done twice, the last."""
        return {result.job: result for result in self}

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs without a result, in their order, each once."""
        done = self.results()
        return [job for job in dict.fromkeys(jobs) if job not in done]

    def add(self, result: Result) -> None:
        """Append a result and see it on the disk before returning."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a+b") as out:
            # A kill may have left half a line without its end.
            if out.tell() > 0:
                out.seek(-1, 2)
                if out.read(1) != b"\n":
                    out.write(b"\n")
            out.write(result.to_json().encode() + b"\n")
            out.flush()
