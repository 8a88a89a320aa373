"""The command line: ``hikernel demo`` and ``hikernel reproduce``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from hikernel._version import __version__

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="hikernel",
        description="Sparse, readable, provably optimal nonlinear models.",
    )
    parser.add_argument("--version", action="version", version=f"hikernel {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    commands.add_parser("demo", help="fit a model on generated data with a known truth")
    reproduce = commands.add_parser(
        "reproduce", help="the tables and the figure of the paper, computed again"
    )
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["reproduce"]:
        # Only this command needs the experiments, whose imports take a second.
        from hikernel.experiments.command import add_arguments, run

        add_arguments(reproduce)
        return run(parser.parse_args(given))
    parser.parse_args(given)
    from hikernel.demo import run_demo

    run_demo()
    return 0
