"""The demonstration."""

from __future__ import annotations

import re

import numpy as np
import pytest

from hikernel.cli import main
from hikernel.datasets import make_polynomial

pytestmark = pytest.mark.slow


def test_the_demo_finds_the_truth_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hikernel-demo.html").write_text("of yesterday")
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    found = re.findall(r"^  (\S.*?) +[\d.]+ %( +true)?$", out, flags=re.MULTILINE)
    assert {term for term, true in found if true} == {"x0", "x1", "x2", "x1 * x2", "x3", "x3^2"}
    assert len(found) <= 7  # nearly nothing else
    line = r"^  (hikernel|ridge|gradient boosting) +([\d.]+)$"
    errors = dict(re.findall(line, out, flags=re.MULTILINE))
    assert float(errors["hikernel"]) < float(errors["gradient boosting"]) < float(errors["ridge"])
    assert "10^14 kernels" in out
    assert "Proven: no choice among all of them" in out
    assert out.splitlines()[-1] == "Report: hikernel-demo.html (open it in a browser)"
    assert "<html" in (tmp_path / "hikernel-demo.html").read_text()


def test_generated_data_follow_their_terms():
    terms = {((0, 1),): 2.0, ((1, 2), (2, 1)): -1.0}
    data = make_polynomial(5000, 4, terms, noise=0.5, seed=1)
    X = data.X
    np.testing.assert_allclose(data.signal, 2 * X[:, 0] - X[:, 1] ** 2 * X[:, 2])
    noise = data.y - data.signal
    assert noise.std() / data.signal.std() == pytest.approx(0.5, rel=0.05)
    correlation = np.corrcoef(X.T)
    assert correlation[0, 1] == pytest.approx(0.3, abs=0.05)
    assert correlation[0, 2] == pytest.approx(0.09, abs=0.05)
