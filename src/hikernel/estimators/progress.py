"""What a fit shows on standard error while it runs, for ``verbose`` of 1 and more.

In a terminal or a notebook every stage of a fit is a line of tqdm with a running count. In a file
it is one line of text, and a few more if the stage takes long. With 2 and
more, the records of the logger "hikernel" are written there, too.
"""

from __future__ import annotations

import datetime
import logging
import math
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Protocol, Self

from hikernel.engines.watch import watching
from hikernel.search import SearchStep
from hikernel.selection import PathPoint

__all__ = ["FitProgress"]

_FIRST_WAIT, _LONGEST_WAIT = 5.0, 60.0
"""Seconds between two lines of one stage in a file; they double from one line to the next."""

_LEAST_PACE = 1.0
"""Seconds after which the pace of a proof is known."""

_LEVELS = {2: logging.INFO}
"""Least level of the records shown, by ``verbose``; above 2 all are shown."""


class FitProgress:
    """The stages of a fit, shown as they go on; a context manager that always cleans up.

    Parameters
    ----------
    verbose : int
        1 shows the stages and counts; 2 also writes the log records of the stages, 3 all records.
    """

    def __init__(self, verbose: int) -> None:
        self._verbose = int(verbose)
        self._display: _Display = _Nothing()
        self._close = ExitStack()
        self._count = 0
        self._facts: dict[str, str] = {}
        self._share = math.inf
        self._first = 0.0, 0.0

    def __enter__(self) -> Self:
        self._display = _make_display(records=self._verbose > 1)
        if self._verbose > 1:
            level = _LEVELS.get(self._verbose, logging.DEBUG)
            self._close.enter_context(_records_shown(level, self._display))
        self._close.enter_context(watching(self.proof))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._close:
            self._display.end(failed=kind is not None)

    def stage(self, name: str, unit: str = "") -> None:
        """End the stage before, and begin one; ``unit`` is what it counts, if it counts."""
        self._display.end()
        self._count, self._facts, self._share = 0, {}, math.inf
        self._display.begin(name, unit)

    def fits(self, number: int) -> None:
        """Count models that were fitted."""
        self._count += number
        self._display.show(self._count, self._facts)

    def point(self, point: PathPoint) -> None:
        """Count a point of a path, and show its alpha, terms and unexplained share of the loss."""
        self._facts = {
            "alpha": f"{point.model.lam:.2g}",
            "terms": str(point.model.n_terms),
            "error": f"{1.0 - point.explained:.3f}",
        }
        self.fits(1)

    def step(self, step: SearchStep) -> None:
        """Show the size of the hull, the objective and the gap of a step of a search."""
        certificate = step.certificate
        self._facts = {"objective": f"{certificate.objective:.4g}"}
        if certificate.kind != "none":
            self._facts["gap"] = f"{certificate.relative_gap:.1e}"
        self._count = len(step.nodes)
        self._display.show(self._count, self._facts)

    def proof(self, share: float) -> None:
        """Show how much of the work that it may do a proof has done, and how long it may go on.

        The work is counted, and how long the rest may take follows from the pace so far. A proof
        may end much earlier.
        """
        now = time.monotonic()
        if share < self._share:  # a proof begins
            self._first = share, now
            self._facts.pop("to go", None)
        self._share = share
        self._facts["proof"] = f"{100.0 * share:.0f} % of the most work"
        done, seconds = share - self._first[0], now - self._first[1]
        if done > 0.0 and seconds >= _LEAST_PACE:
            rest = datetime.timedelta(seconds=math.ceil(seconds / done * (1.0 - share)))
            self._facts["to go"] = f"at most {rest}"
        self._display.show(self._count, self._facts)


class _Display(Protocol):
    """Where stages are shown."""

    def begin(self, name: str, unit: str) -> None:
        """Begin a stage."""

    def show(self, count: int, facts: dict[str, str]) -> None:
        """Show how far a stage is."""

    def end(self, *, failed: bool = False) -> None:
        """End the stage, if there is one."""

    def write(self, line: str) -> None:
        """Write a line of text between the stages."""


class _Nothing:
    """Shows no stages; lines of text are written."""

    def begin(self, name: str, unit: str) -> None:
        pass

    def show(self, count: int, facts: dict[str, str]) -> None:
        pass

    def end(self, *, failed: bool = False) -> None:
        pass

    def write(self, line: str) -> None:
        if sys.stderr is not None:
            print(line, file=sys.stderr, flush=True)


class _Lines(_Nothing):
    """Writes one line per stage when it ends, and one every few seconds until then."""

    def __init__(self) -> None:
        self._name = self._unit = self._text = ""
        self._start = self._last = self._wait = 0.0

    def begin(self, name: str, unit: str) -> None:
        self._name, self._unit, self._text = name, unit, ""
        self._start = self._last = time.monotonic()
        self._wait = _FIRST_WAIT

    def show(self, count: int, facts: dict[str, str]) -> None:
        counted = [f"{count} {self._unit}"] if self._unit else []
        self._text = ", ".join([*counted, *(f"{key}={value}" for key, value in facts.items())])
        if time.monotonic() - self._last >= self._wait:
            self._write_stage("so far")
            self._wait = min(2.0 * self._wait, _LONGEST_WAIT)

    def end(self, *, failed: bool = False) -> None:
        if self._name and not failed:
            self._write_stage("")
        self._name = ""

    def _write_stage(self, more: str) -> None:
        self._last = time.monotonic()
        shown = f"hikernel {self._name}{': ' if self._text else ''}{self._text}"
        self.write(f"{shown} [{self._last - self._start:.1f} s{' ' if more else ''}{more}]")


class _Bars(_Nothing):
    """Shows a line of tqdm per stage.

    Parameters
    ----------
    tqdm : type
        The class of the lines, for terminals or for notebooks.
    size : tuple of (int, int), optional
        Columns and lines of the terminal.
    """

    def __init__(self, tqdm: Any, size: tuple[int, int] | None = None) -> None:
        self._tqdm = tqdm
        self._size: dict[str, int] = {}
        if size is not None:
            self._size = {"ncols": size[0], "nrows": size[1]}
        self._bar: Any = None

    def begin(self, name: str, unit: str) -> None:
        counted = ": {n_fmt} {unit}" if unit else ""
        self._bar = self._tqdm(
            desc=name,
            unit=unit,
            file=sys.stderr,
            bar_format="{desc}" + counted + " [{elapsed}{postfix}]",
            **self._size,
        )

    def show(self, count: int, facts: dict[str, str]) -> None:
        self._bar.set_postfix(facts, refresh=False)
        self._bar.update(count - self._bar.n)

    def end(self, *, failed: bool = False) -> None:
        if self._bar is not None:
            self._bar.refresh()  # the last counts may have come too fast to be shown
            self._bar.close()
        self._bar = None

    def write(self, line: str) -> None:
        self._tqdm.write(line, file=sys.stderr)


def _make_display(records: bool) -> _Display:
    """Return where stages are shown; ``records`` tells whether log records are written, too."""
    if sys.stderr is None:
        return _Nothing()
    if type(sys.stderr).__module__.startswith("ipykernel."):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without widgets there is text, which needs no advice
            from tqdm.auto import tqdm as in_notebook
        return _Bars(in_notebook)
    if sys.stderr.isatty():
        from tqdm.std import tqdm as in_terminal

        # Some terminals say that they have no columns and lines, and tqdm would believe it.
        return _Bars(in_terminal, shutil.get_terminal_size())
    # In a file the records say all that the lines of the stages would say.
    return _Nothing() if records else _Lines()


class _Records(logging.Handler):
    """Writes log records to the display of a fit."""

    def __init__(self, level: int, display: _Display) -> None:
        super().__init__(level)
        self.setFormatter(logging.Formatter("%(asctime)s hikernel: %(message)s", "%H:%M:%S"))
        self._display = display

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._display.write(self.format(record))
        except Exception:
            self.handleError(record)


_shown = threading.Lock()
"""Held by the fit whose handler writes the records; fits beside it add no second handler."""


@contextmanager
def _records_shown(level: int, display: _Display) -> Iterator[None]:
    """Write the records of the package within the context, unless they are written anyway."""
    logger = logging.getLogger("hikernel")
    if not _shown.acquire(blocking=False):
        yield
        return
    before = logger.level
    try:
        logger.setLevel(min(level, logger.getEffectiveLevel()))
        if _reaches_user(logger):
            yield
            return
        handler = _Records(level, display)
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)
    finally:
        logger.setLevel(before)
        _shown.release()


def _reaches_user(logger: logging.Logger) -> bool:
    """Return whether a handler of the user writes the records to the terminal already."""
    found: logging.Logger | None = logger
    while found is not None:
        for handler in found.handlers:
            stream = getattr(handler, "stream", None)
            if stream is not None and stream in (sys.stdout, sys.stderr):
                return True
        found = found.parent if found.propagate else None
    return False
