"""Write the page of licences from the metadata of the packages that pyproject.toml names.

``make licences`` installs them in an environment of their own and runs this there.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageMetadata, metadata
from pathlib import Path

from extra import requirements

USED = {
    "": "hikernel itself",
    "plot": "pictures",
    "report": "the report page",
    "parquet": "Parquet and Feather files",
    "dask": "clusters",
    "gpu": "computing on a GPU",
}
"""What users install; all other extras are for work on hikernel."""

HEAD = """# Licences

hikernel has the BSD 3-clause licence. The report page contains BokehJS, taken from the installed
bokeh when the page is written, so a page that you hand on has code under bokeh's licence in it.

What hikernel asks for, with the licence that each release names in its metadata. Packages bring
further ones of their own, which are not listed here.
"""

TOOLS = """
## For work on hikernel

None of these is needed to use it, and nothing of them is in what is built.
"""

TAIL = """
## Written and checked by commands

`make licences` writes this page again. `make audit` looks for known vulnerabilities of everything
that a user installs, with pip-audit; torch is left out, which is gigabytes with CUDA. It needs a
network on which the public advisories for Python packages can be read, and fails where a package
cannot be looked up: no answer is not a clean one.
"""


def plain_name(requirement: str) -> str:
    """Return the name of a requirement such as "dask[distributed]>=2024.5"."""
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower()


def licence(found: PackageMetadata) -> str:
    """Return the licence that a release names: an expression, else classifiers, else a word."""
    expression = found.get("License-Expression")
    if expression:
        return str(expression)
    named = [
        entry.rsplit(" :: ", 1)[-1]
        for entry in found.get_all("Classifier", [])
        if entry.startswith("License :: ") and entry != "License :: OSI Approved"
    ]
    if named:
        return ", ".join(named)
    word = str(found.get("License") or "").strip().split("\n")[0]
    return word if 0 < len(word) <= 60 else "see the package"


def by_package(extras: list[str]) -> dict[str, list[str]]:
    """Return the extras that name each package."""
    found: dict[str, list[str]] = {}
    listed = requirements()
    for extra in extras:
        for requirement in listed[extra]:
            found.setdefault(plain_name(requirement), []).append(extra)
    return found


def to_install() -> list[str]:
    """Return what has to be installed to read all metadata; pinned where a release is pinned."""
    listed = [requirement for extra in requirements().values() for requirement in extra]
    pinned = {plain_name(entry): entry for entry in listed if "==" in entry}
    return [pinned.get(name, name) for name in by_package(list(requirements()))]


def table(packages: dict[str, list[str]], words: dict[str, str]) -> str:
    """Return the rows: package, licence, and what it is for."""
    lines = ["", "| package | for | licence |", "| --- | --- | --- |"]
    for name, extras in packages.items():
        purpose = ", ".join(words.get(extra, f"`{extra}`") for extra in extras)
        lines.append(f"| {name} | {purpose} | {licence(metadata(name))} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the page."""
    used = by_package(list(USED))
    tools = by_package([extra for extra in requirements() if extra not in USED])
    rest = {name: extras for name, extras in tools.items() if name not in used}
    return HEAD + table(used, USED) + TOOLS + table(rest, {}) + TAIL


if __name__ == "__main__":
    if sys.argv[1:] == ["--names"]:
        print(*to_install(), sep="\n")
    else:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
