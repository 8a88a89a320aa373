"""Fixtures of the engines' tests."""

from __future__ import annotations

import pytest

from hikernel.engines import limited_tails, numpy_engine, tails


@pytest.fixture(params=["one chunk", "many chunks"])
def chunked(request, monkeypatch):
    """Results must not depend on how rows are cut."""
    if request.param == "many chunks":
        monkeypatch.setattr(numpy_engine, "_CHUNK_NUMBERS", 1)
        for part in (tails, limited_tails):
            monkeypatch.setattr(part, "TILE_NUMBERS", 1)
    return request.param
