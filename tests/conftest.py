"""Where the tests find data that the repository does not carry, and threads for BLAS."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hikernel.engines import machine

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


@pytest.fixture
def two_blas_threads() -> Iterator[None]:
    """Two threads for BLAS, held by no Python thread."""
    before = [(library, library.num_threads) for library in machine._blas_libraries()]
    _set_blas_threads((library, 2) for library, _ in before)
    yield
    _set_blas_threads(before)


def _set_blas_threads(numbers: Iterable[tuple[Any, int]]) -> None:
    for library, number in numbers:
        library.set_num_threads(number)
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread()
