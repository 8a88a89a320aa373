"""What the documents show runs: every Python block, in order, in one namespace per document."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ["README.md", "docs/graphs.md"]


@pytest.mark.filterwarnings("ignore::hikernel.errors.CertificateWarning")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_blocks_run(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.DOTALL | re.M)
    assert blocks
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), namespace)


EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name, capsys):
    namespace: dict[str, object] = {"__name__": name}
    exec(compile((ROOT / "examples" / name).read_text(), name, "exec"), namespace)
    namespace["main"]()  # type: ignore[operator]
    assert len(capsys.readouterr().out.splitlines()) > 2
