"""The command line: ``hikernel demo``."""

from __future__ import annotations

import argparse
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
    parser.parse_args(arguments)
    from hikernel.experiments.demo import run_demo

    run_demo()
    return 0
