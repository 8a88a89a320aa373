"""Fixtures of the engines' tests."""

from __future__ import annotations

from functools import partial

import pytest
from engines.blocks import in_blocks
from engines.cases import make_engine

from hikernel.engines import ENGINES, limited_tails, numpy_engine, tails, torch_device

TYPES = ENGINES | {"blocks": in_blocks((7, 8, 20, 100))}


@pytest.fixture(params=list(TYPES.values()), ids=list(TYPES))
def engine_type(request):
    """Every engine of the registry: a new one joins the tests by its line there."""
    return request.param


@pytest.fixture
def make(engine_type):
    """Engines over random levels."""
    return partial(make_engine, engine_type)


@pytest.fixture(params=["one chunk", "many chunks"])
def chunked(request, monkeypatch):
    """Results must not depend on how rows are cut."""
    if request.param == "many chunks":
        monkeypatch.setattr(numpy_engine, "_CHUNK_NUMBERS", 1)
        monkeypatch.setattr(torch_device, "_CPU_NUMBERS", 1)
        monkeypatch.setattr(torch_device, "_GPU_NUMBERS", 1)
        for part in (tails, limited_tails):
            monkeypatch.setattr(part, "TILE_NUMBERS", 1)
    return request.param
