"""Results that survive a kill: one line of JSON per finished job."""

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
        Why a path ended early, in words, or nothing.
    end : str
        The same as a name of :class:`~hikernel.selection.PathEnd`; empty for other methods.
    settings : str
        Fingerprint of the choices behind the job.
    source : str
        Where the rows came from: "file", "openml", "formula" or "generated"; empty is unknown.
    reached : int
        Points of the grid that the path really reached; 0 is all.
    n_vertices : str
        Kernels of the graph, 10^22, where the method counted them.
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
        """Return one line."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Result:
        """Read a line back."""
        row: dict[str, Any] = json.loads(line)
        return cls(job=Job(**row.pop("job")), **row)


class Store:
    """A file of results, appended to, read whole.

    A line that was cut off by a kill is left out when reading; its job counts as not done. So does
    the job of a line that was computed with other settings or from other data.

    Parameters
    ----------
    file : Path
        The file; its folder is made when the first result comes.
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
        """Return the numbers of lines that cannot be read, but for the last, which a kill cuts."""
        lines = self._lines()
        return [i for i, line in enumerate(lines[:-1], 1) if line.strip() and _read(line) is None]

    def results(self, sources: Mapping[str, str] | None = None) -> dict[Job, Result]:
        """Return the results by job; of one that was done twice, the last.

        Lines of other settings, or from another source than the one given here for their data set,
        are left out; where ``sources`` does not say, it stays.
        """
        return {result.job: result for result in self if _current(result, sources or {})}

    def outdated(self, sources: Mapping[str, str] | None = None) -> list[Job]:
        """Return the jobs whose only results are of other settings or other data."""
        kept = self.results(sources)
        return [job for job in dict.fromkeys(result.job for result in self) if job not in kept]

    def missing(self, jobs: Iterable[Job], sources: Mapping[str, str] | None = None) -> list[Job]:
        """Return the jobs without a result that holds, in their order, each once."""
        done = self.results(sources)
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
            os.fsync(out.fileno())


def _read(line: str) -> Result | None:
    try:
        return Result.from_json(line)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _current(result: Result, sources: Mapping[str, str]) -> bool:
    """Whether settings and source are those that the job would have now."""
    expected = sources.get(result.job.data, "")
    if expected and result.source != expected:
        return False
    return result.settings == fingerprint(result.job)
