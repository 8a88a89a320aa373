"""Where the tests find data that the repository does not carry."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def _folder(variable: str, default: str) -> Path:
    path = Path(os.environ.get(variable, ROOT.parent / "shared" / default))
    if not path.is_dir():
        pytest.skip(f"no folder {path}; set {variable} to the folder with the {default} files")
    return path


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The benchmark data sets of the paper, as gzipped CSV."""
    return _folder("HIKERNEL_DATA", "data")


@pytest.fixture(scope="session")
def golden_folder() -> Path:
    """Inputs and results of the MATLAB toolbox."""
    return _folder("HIKERNEL_GOLDEN", "golden")
