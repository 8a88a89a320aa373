"""Print the requirements of an extra of pyproject.toml, one a line, to install them alone.

Tools that build or check hikernel live in environments of their own, without hikernel itself.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def requirements() -> dict[str, list[str]]:
    """Return the requirements by extra; those of hikernel itself have the key ""."""
    file = Path(__file__).parents[1] / "pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


if __name__ == "__main__":
    for extra in sys.argv[1:]:
        print(*requirements()[extra], sep="\n")
