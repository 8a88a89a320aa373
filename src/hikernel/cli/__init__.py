"""The command ``hikernel``: fit, predict, explain, report, reproduce and demo.

Nothing but click is imported until a command runs, so that ``hikernel --help`` is fast.
"""

from hikernel.cli.application import main

__all__ = ["main"]
