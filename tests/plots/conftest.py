"""Pictures are drawn without a screen, and none of them stays open."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def good_manners():
    """Draw with Agg, leave the settings of the user alone, and close what a test has opened."""
    backend = mpl.get_backend()
    plt.switch_backend("agg")
    before = dict(mpl.rcParams)
    yield
    after = dict(mpl.rcParams)
    plt.close("all")
    plt.switch_backend(backend)
    assert after == before
