"""Storage of results in a file, one line of JSON per finished job, safe against interrupts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hikernel.experiments.fingerprint import fingerprint

__all__ = ["Job", "Result", "Store"]


@dataclass(frozen=True)
class Job:
    """The unit of computation: one method with one kernel on one split of one data set."""

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
        The job.
    n, p : int
        Number of rows and columns of the data as used.
    grid : list of float
        Regularisation parameters, from most to least regularisation.
    test : list of float
        Error on the test half for each parameter, in percent (of the variance, or of the rows).
    cv : list of float
        Criterion of the cross-validation inside the training half for each parameter. The parameter
        with the smallest value is the "honest" one.
    terms : list of int
        Number of kernels in use for each parameter; for lasso-alpha, of nonzero dual coefficients.
        Empty for L2.
    seconds : float
        Wall-clock time of the job.
    note : str
        How the path ended, as text; may be empty.
    end : str
        How the path ended, as a name of :class:`~hikernel.selection.PathEnd`; empty for methods
        other than HKL and MKL.
    settings : str
        Fingerprint of the settings of the job.
    source : str
        Source of the data: "file", "openml", "formula" or "generated"; empty if unknown.
    reached : int
        Number of points of the grid that the path reached; 0 means all.
    n_vertices : str
        Number of kernels in the graph, such as "10^22"; empty if the method did not count them.
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
    end: str = ""
    settings: str = ""
    source: str = ""
    reached: int = 0
    n_vertices: str = ""

    def to_json(self) -> str:
        """Return the result as one line of JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Result:
        """Return the result from a line of ``to_json``."""
        row: dict[str, Any] = json.loads(line)
        return cls(job=Job(**row.pop("job")), **row)


class Store:
    """A file of results; new results are appended.

    Lines that cannot be read, such as one truncated by an interrupt, are skipped. Their jobs count
    as not done. So do jobs whose results were computed with other settings or from other data.

    Parameters
    ----------
    file : Path
        The file. Its folder is created when the first result is added.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def __iter__(self) -> Iterator[Result]:
        for line in self._lines():
            result = _read(line)
            if result is not None:
                yield result

    def _lines(self) -> list[str]:
        return self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []

    def unreadable(self) -> list[int]:
        """Return the numbers of the lines that cannot be read, counted from 1.

        The last line is not reported: an interrupt may have truncated it.
        """
        lines = self._lines()
        return [i for i, line in enumerate(lines[:-1], 1) if line.strip() and _read(line) is None]

    def results(self, sources: Mapping[str, str] | None = None) -> dict[Job, Result]:
        """Return the results by job; the last one if a job has several.

        Results with other settings than the current ones are left out. So are results whose source
        differs from ``sources[name of the data set]``; a data set that is not in ``sources`` may
        have any source.
        """
        return {result.job: result for result in self if _current(result, sources or {})}

    def outdated(self, sources: Mapping[str, str] | None = None) -> list[Job]:
        """Return the jobs that have only results with other settings or from other data."""
        kept = self.results(sources)
        return [job for job in dict.fromkeys(result.job for result in self) if job not in kept]

    def missing(self, jobs: Iterable[Job], sources: Mapping[str, str] | None = None) -> list[Job]:
        """Return the jobs without a valid result, in the given order, without duplicates."""
        done = self.results(sources)
        return [job for job in dict.fromkeys(jobs) if job not in done]

    def add(self, result: Result) -> None:
        """Append a result; it is on disk (fsync) when the method returns.

        Raises
        ------
        OSError
            If it cannot be written, as on a full disk; the results before it stay as they were.
        """
        self.file.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._append(result)
        except OSError as error:
            why = error.strerror or str(error)
            remedy = "what was done before is saved, and the same command goes on from there"
            raise OSError(error.errno, f"{why}; {remedy}", str(self.file)) from error

    def _append(self, result: Result) -> None:
        with self.file.open("a+b") as out:
            # An interrupted run may have left a line without a newline at its end.
            if out.tell() > 0:
                out.seek(-1, 2)
                if out.read(1) != b"\n":
                    out.write(b"\n")
            out.write(result.to_json().encode() + b"\n")
            out.flush()
            os.fsync(out.fileno())


def _read(line: str) -> Result | None:
    try:
        return Result.from_json(line)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _current(result: Result, sources: Mapping[str, str]) -> bool:
    """Whether the settings and the source of a result are the current ones of its job."""
    expected = sources.get(result.job.data, "")
    if expected and result.source != expected:
        return False
    return result.settings == fingerprint(result.job)
