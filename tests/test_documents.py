"""What the documents show runs, and finds what they say it finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]


def run_blocks(name):
    """Run every Python block of a document, in order, and return what they leave behind."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.DOTALL | re.M)
    assert blocks
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), namespace)
    return namespace


@pytest.mark.filterwarnings("ignore::hikernel.errors.CertificateWarning")
def test_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    left = run_blocks("README.md")
    assert left["model"].terms_["term"][0] == "GATTACA"
    assert left["model"].certificate_.n_vertices == 87_380


def test_the_page_on_graphs_runs(capsys):
    left = run_blocks("docs/graphs.md")
    printed = capsys.readouterr().out
    assert list(left["model"].hull_["term"]) == ["depth 0", "depth 1", "depth 2"]
    assert "['level 0', 'level 1', 'level 2']" in printed
    assert printed.index("GATTACA") < printed.index("The graph has 87,380 kernels")


# What a script must print, and what it must not.
EXAMPLES = {
    "many_kernels.py": (["additive truth: heart, blood\n", "block 14, block 3, block 15"], []),
    "molecules.py": (["depth 2"], ["depth 3"]),
    "point_clouds.py": (["level 2"], ["level 3"]),
    "strings.py": (["GATTACA", "TTG", "87,380 kernels"], []),
}


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_examples_find_the_truth(name, capsys):
    namespace: dict[str, object] = {"__name__": name}
    exec(compile((ROOT / "examples" / name).read_text(), name, "exec"), namespace)
    namespace["main"]()
    printed = capsys.readouterr().out
    wanted, unwanted = EXAMPLES[name]
    assert all(text in printed for text in wanted)
    assert not any(text in printed for text in unwanted)
    assert "Proven" in printed or "certified: True" in printed
