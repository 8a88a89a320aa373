"""The examples of docs/consistency.md run, and what it refers to is there."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "consistency.md"


def test_the_examples_run():
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert result.attempted > 10
    assert result.failed == 0


def test_figures_and_files_exist():
    text = PAGE.read_text(encoding="utf-8")
    figures = re.findall(r"!\[.*?\]\((.+?)\)", text, re.DOTALL)
    assert figures
    root = PAGE.parents[1]
    for name in [*(f"docs/{figure}" for figure in figures), *re.findall(r"`(\S+/\S+\.py)`", text)]:
        assert (root / name).is_file(), name
