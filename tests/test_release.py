"""What a release says of itself agrees: version, date, licences, and the lowest versions."""

import importlib.util
import re
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

import hikernel
from hikernel.cli.application import application

ROOT = Path(__file__).resolve().parents[1]
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def tool(monkeypatch):
    """Import a script of tools/, which is no package."""
    monkeypatch.syspath_prepend(ROOT / "tools")

    def imported(name):
        spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield imported
    sys.modules.pop("extra", None)


def test_the_version_is_the_same_everywhere():
    (newest, date) = re.search(r"^## (\S+) \((\S+)\)$", CHANGES, re.MULTILINE).groups()
    assert hikernel.__version__ == newest
    assert re.search(r"^version: (\S+)$", CITATION, re.MULTILINE)[1] == newest
    assert re.search(r"^date-released: (\S+)$", CITATION, re.MULTILINE)[1] == date
    assert PROJECT["dynamic"] == ["version"]
    shown = CliRunner().invoke(application, ["--version"])
    assert shown.exit_code == 0
    assert shown.output.split()[-1] == newest


def test_every_requirement_has_a_licence_on_the_page(tool):
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| ([a-z0-9._-]+) \| .* \| (.+) \|$", page, re.MULTILINE))
    module = tool("licences")
    wanted = module.by_package(list(module.requirements()))
    assert set(wanted) == set(listed) - {"package", "---"}, "make licences"
    assert module.plain_name("dask[distributed]>=2024.5") == "dask"
    # A release that is pinned is installed as such to read its licence.
    assert {"torch==2.13.0", "numpy"} <= set(module.to_install())


def test_every_requirement_of_users_and_tests_has_a_lower_bound(tool):
    bounds = tool("lowest").lower_bounds
    extras = PROJECT["optional-dependencies"]
    users = ("plot", "report", "parquet", "gpu")
    for listed in (PROJECT["dependencies"], *(extras[name] for name in ("test", *users))):
        assert len(bounds(listed)) == len(listed)
    assert bounds(["torch==2.13.0"]) == {"torch": "2.13.0"}
    with pytest.raises(ValueError, match="no lower bound"):
        bounds(["numpy"])
