"""Print the lower bounds of pyproject.toml as constraints for pip: ``name==bound``, one a line.

``make test-lowest`` installs hikernel under these constraints and runs the tests with them.
"""

from __future__ import annotations

import re
import sys

from extra import requirements

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?[>=]=(?P<bound>[0-9][0-9.]*)")


def lower_bounds(listed: list[str]) -> dict[str, str]:
    """Return the lower bound of each requirement such as "numpy>=2.0" or "torch==2.13.0".

    Examples
    --------
    >>> lower_bounds(["numpy>=2.0", "dask[distributed]>=2024.5"])
    {'numpy': '2.0', 'dask': '2024.5'}
    """
    found = {}
    for requirement in listed:
        match = _REQUIREMENT.match(requirement)
        if match is None:
            raise ValueError(f"{requirement!r} has no lower bound; write name>=version.")
        found[match["name"]] = match["bound"]
    return found


def main(extras: list[str]) -> None:
    """Print the bounds of the dependencies, and of the extras that are named."""
    by_extra = requirements()
    wanted = [requirement for extra in ["", *extras] for requirement in by_extra[extra]]
    for name, bound in lower_bounds(wanted).items():
        print(f"{name}=={bound}")


if __name__ == "__main__":
    main(sys.argv[1:])
