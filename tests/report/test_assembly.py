"""The page as text: what is in it, what cannot get into it, and how large it is."""

import base64
import hashlib
import json
import re
import subprocess
import sys
import tomllib
import zlib
from fnmatch import fnmatch
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from report.made import HOSTILE, made, number_axis

import hikernel.report
from hikernel.report import page
from hikernel.report.assembly import SCRIPTS, STYLES, script_json
from hikernel.report.rounding import lighter

FOLDER = Path(hikernel.report.__file__).parent
ROOT = Path(__file__).parents[2]


class Reader(HTMLParser):
    """Elements of a page, with the text of its scripts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.scripts, self.title, self.policy = [], [], "", ""
        self.inside = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        self.inside = tag
        if tag == "script":
            self.scripts.append([attributes.get("type"), ""])
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1][1] += data
        elif self.inside == "title":
            self.title += data


@pytest.fixture(scope="module")
def hostile():
    return made(8, names=HOSTILE[:3], labels=HOSTILE[3:7], target=HOSTILE[0], classes=HOSTILE[:3])


def test_the_summary_comes_back_from_the_page(hostile):
    (data,) = [text for kind, text in Reader(page(hostile)).scripts if kind == "application/json"]
    assert json.loads(data) == json.loads(json.dumps(lighter(hostile)))


def test_a_large_summary_is_packed_and_comes_back():
    summary = made(120, classes=["a", "b", "c"])
    kind, text = next((kind, text) for kind, text in Reader(page(summary)).scripts if kind)
    assert kind == "application/octet-stream"
    assert json.loads(zlib.decompress(base64.b64decode(text))) == lighter(summary)


def test_names_add_no_element(hostile):
    plain = Reader(page(made(8, target="price", classes=["a", "b", "c"], labels="abcd")))
    found = Reader(page(hostile))
    assert found.tags == [
        (tag, attributes | ({"content": found.policy} if "http-equiv" in attributes else {}))
        for tag, attributes in plain.tags
    ]
    assert found.title == f"A model of {HOSTILE[0]}"
    assert found.policy == plain.policy


@pytest.mark.parametrize("text", HOSTILE)
def test_json_is_safe_inside_a_script(text):
    written = script_json({text: [text]})
    assert written.isascii()
    assert not set(written) & set("<>&")
    assert json.loads(written) == {text: [text]}


def test_the_page_can_be_written_whatever_the_names_are(hostile):
    for name in HOSTILE:
        text = page(hostile | {"target": name, "outputs": [name]})
        assert len(text.encode("utf-8")) > 1e6
        assert "\u202e" not in Reader(text).title


def test_only_the_scripts_of_the_page_may_run(hostile):
    found = Reader(page(hostile))
    ran = [text for kind, text in found.scripts if kind is None]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in ran]
    rules = dict(rule.strip().split(" ", 1) for rule in found.policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"].split() == [f"'sha256-{digest}'" for digest in digests]
    assert "connect-src" not in rules
    assert not [name for name in rules if "http" in rules[name] or "*" in rules[name]]


def test_nothing_is_loaded_from_elsewhere(hostile):
    for tag, attributes in Reader(page(hostile)).tags:
        assert "src" not in attributes, tag
        assert attributes.get("href", "#")[0] == "#" or attributes["href"] == "data:,"
        assert not [name for name in attributes if name.startswith("on")]


@pytest.mark.parametrize("classes", [None, ["setosa", "versicolor", "virginica"]])
def test_sixty_effects_stay_below_three_megabytes(classes):
    summary = made(60, n_hull=200, classes=classes)
    assert len(page(summary).encode()) < 3e6


def test_sixty_rough_surfaces_stay_below_three_megabytes():
    # Three classes, 50 x 50 points where a step lies on each axis, and nothing that packs well.
    rng = np.random.default_rng(0)
    summary = made(60, classes=["a", "b", "c"])
    axes = [number_axis("income", 50), number_axis("age", 50)]
    for effect in summary["effects"]:
        effect["view"] = {"axes": axes, "values": rng.normal(size=(3, 50, 50)).tolist(), "held": []}
    assert len(page(summary).encode()) < 3e6


def test_numbers_of_plots_have_five_digits_and_those_of_the_function_all():
    summary = made(1)
    view = summary["effects"][0]["view"]
    view["values"] = [[123.456789 * x for x in view["values"][0]]]
    summary["function"]["intercept"] = [1 / 3]
    light = lighter(summary)
    for exact, shown in zip(
        view["values"][0], light["effects"][0]["view"]["values"][0], strict=True
    ):
        assert shown == pytest.approx(exact, abs=0.005)
        assert len(str(shown)) <= 7
    assert light["function"] == summary["function"]
    assert summary["effects"][0]["view"] is view  # and the summary itself is left as it was


def test_every_file_of_the_page_is_used_and_shipped():
    kinds = {".js", ".css", ".html"}
    here = {path.name for path in FOLDER.iterdir() if path.suffix in kinds}
    assert here == {*SCRIPTS, *STYLES, "template.html"}
    shipped = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = shipped["tool"]["setuptools"]["package-data"]["hikernel.report"]
    assert [name for name in here if not any(fnmatch(name, one) for one in patterns)] == []
    for name in here:
        lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 400, name
        assert max(map(len, lines)) <= 100, name


def test_scripts_never_write_markup():
    text = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS)
    assert (
        re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text) == []
    )
    assert re.findall(r"new Function|setTimeout\(\s*[\"'`]|fetch\(|XMLHttpRequest", text) == []


def test_a_missing_bokeh_names_the_extra(monkeypatch):
    from hikernel.report import bokeh_files

    bokeh_files.bokeh_scripts.cache_clear()
    monkeypatch.setitem(sys.modules, "bokeh.server", None)
    with pytest.raises(ImportError, match=r"pip install 'hikernel\[report\]'"):
        page(made(1))


def test_bokeh_is_imported_when_a_page_is_made_only():
    code = "import hikernel.report, sys; print(*[m for m in sys.modules if m.startswith('bokeh')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_what_is_no_summary_is_refused():
    with pytest.raises(TypeError, match=r"summary\(\) of a fitted model returns, got str"):
        page("report.html")
    with pytest.raises(TypeError, match="got dict"):
        page({"effects": []})
    with pytest.raises(ValueError, match=r"schema 7.*draws schema 1"):
        page({"schema": 7})
