"""Ctrl-C, noted to be dealt with where work can stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupt", "listening"]


class Interrupt:
    """Whether Ctrl-C was pressed, and what it does.

    Attributes
    ----------
    asked : bool
        Whether the user asked to stop.
    """

    def __init__(self) -> None:
        self.asked = False
        self._at_once = False

    @contextmanager
    def at_once(self, when: bool) -> Iterator[None]:
        """Let Ctrl-C also raise KeyboardInterrupt within the context, if ``when`` is true.

        For work that is done elsewhere: this process cannot look at ``asked`` while it waits.
        """
        self._at_once = when
        try:
            yield
        finally:
            self._at_once = False

    def _heard(self, number: int, frame: FrameType | None) -> None:
        again, self.asked = self.asked, True
        if again or self._at_once:
            raise KeyboardInterrupt


@contextmanager
def listening(when: bool) -> Iterator[Interrupt | None]:
    """Note the first Ctrl-C within the context, if ``when`` is true; the second one raises.

    Only the main thread hears signals. A program that deals with Ctrl-C in its own way, or ignores
    it, goes on doing so. In both cases, as without ``when``, the context gives None.
    """
    main = threading.current_thread() is threading.main_thread()
    if not when or not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield None
        return
    interrupt = Interrupt()
    signal.signal(signal.SIGINT, interrupt._heard)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
