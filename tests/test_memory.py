"""Memory stays linear in the rows with a small factor: no feature matrix, nothing n x n."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "memory.py"


def test_a_large_fit_stays_below_five_feature_matrices():
    out = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, check=True
    ).stdout
    assert "hull of 50 kernels" in out
    (ratio,) = re.findall(r"feature matrix: ([\d.]+)", out)
    assert float(ratio) < 5.0
