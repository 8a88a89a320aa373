"""What the documents show runs, and prints what they say it prints; their links lead somewhere."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
DOCUMENTS = sorted([*ROOT.glob("*.md"), *PAGES, *(DOCS / "api").glob("*.md")])
# Python, and what it prints where a block of text follows at once.
PYTHON = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
FENCED = re.compile(r"^ *(```+)[^`]*?\n.*?^ *\1$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^()\s]+(?:\([^()]*\))?)\)")
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


@pytest.fixture(autouse=True)
def _drawing_needs_no_screen(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def same_number(shown, printed):
    shown, printed = (float(text.replace(",", "")) for text in (shown, printed))
    return printed == pytest.approx(shown, rel=0.05, abs=0.011)


def check_output(shown, printed):
    """Words must agree, and numbers to about two digits; a line of three dots skips some lines."""
    lines = [" ".join(line.split()) for line in printed.splitlines() if line.strip()]
    skipping = False
    for line in filter(str.strip, shown.splitlines()):
        wanted = " ".join(line.split())
        if wanted == "...":
            skipping = True
            continue
        while skipping and lines and NUMBER.sub("0", lines[0]) != NUMBER.sub("0", wanted):
            lines.pop(0)
        skipping = False
        assert lines, f"nothing is printed where the page shows:\n{wanted}\nof\n{printed}"
        found = lines.pop(0)
        assert NUMBER.sub("0", found) == NUMBER.sub("0", wanted), f"printed:\n{printed}"
        numbers = zip(NUMBER.findall(wanted), NUMBER.findall(found), strict=True)
        assert all(same_number(*pair) for pair in numbers), f"{wanted}\n{found}"
    assert skipping or not lines, f"the page does not show {lines}"


# What the first block of a page leaves and prints: pages that begin alike run it once.
BEGINNINGS: dict[str, tuple[dict[str, object], str]] = {}


def run_blocks(path, capsys):
    """Run every Python block of a document, in order, and return what they leave and print."""
    blocks = PYTHON.findall(path.read_text())
    assert blocks
    namespace: dict[str, object] = {}
    everything = ""
    for place, (block, shown) in enumerate(blocks):
        if place == 0 and block in BEGINNINGS:
            left, printed = BEGINNINGS[block]
            namespace.update(left)
        else:
            exec(compile(block, path.name, "exec"), namespace)
            printed = capsys.readouterr().out
        if place == 0:
            BEGINNINGS[block] = dict(namespace), printed
        everything += printed
        if shown:
            check_output(shown, printed)
    return namespace, everything


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hikernel.errors.CertificateWarning")
def test_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    left, _ = run_blocks(ROOT / "README.md", capsys)
    assert left["model"].terms_["term"][0] == "GATTACA"
    assert left["model"].certificate_.n_vertices == 87_380


# What a page leaves or prints beyond what it shows.
CHECKS = {
    "graphs.md": lambda left, printed: (
        list(left["model"].hull_["term"]) == ["depth 0", "depth 1", "depth 2"]
        and "['level 0', 'level 1', 'level 2']" in printed
        and printed.index("GATTACA") < printed.index("The graph has 87,380 kernels")
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    # Examples as in a terminal are run by tests/consistency/test_documentation.py.
    [page for page in PAGES if PYTHON.search(page.read_text()) and page.stem != "consistency"],
    ids=lambda page: page.name,
)
def test_the_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    left, printed = run_blocks(page, capsys)
    assert CHECKS.get(page.name, lambda *_: True)(left, printed)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a 1.00\nb 2", "a 1.004\nb  2", True),
        ("a 1.00\nb 2", "a 1.004", False),
        ("a 1.00", "a 1.004\nb 2", False),
        ("a 1.00\n...", "a 1.004\nb 2", True),
        ("...\nb 2", "a 1.004\nb 2", True),
        ("a 1.00", "c 1.00", False),
        ("a 1.00", "a 1.20", False),
        ("1,000 rows", "1001 rows", True),
        ("1,000 rows", "1100 rows", False),
    ],
)
def test_an_output_that_differs_is_seen(shown, printed, same):
    if same:
        check_output(shown, printed)
    else:
        with pytest.raises(AssertionError):
            check_output(shown, printed)


# What a script must print, and what it must not.
EXAMPLES = {
    "graphs/many_kernels.py": (
        ["additive truth: heart, blood\n", "block 14, block 3, block 15", "certified: True"],
        [],
    ),
    "graphs/molecules.py": (["depth 2", "Proven"], ["depth 3"]),
    "graphs/point_clouds.py": (["level 2", "Proven"], ["level 3"]),
    "graphs/strings.py": (["GATTACA", "TTG", "87,380 kernels", "Proven"], []),
    "tables/certificate.py": (
        ["Proven: no choice", "With 95 % confidence", "not bounded", "Proven only", "raise it"],
        [],
    ),
    "tables/classification.py": (["of 143 wrong", "log loss 0.0"], ["log loss 0.2"]),
    "tables/effects.py": (["area * district", "balcony", "valley"], ["floor"]),
    "tables/one_prediction.py": (["bmi"], []),
    "tables/path.py": (["alpha", "explained", "refit sparse"], []),
    "tables/stability.py": (["age * pulse", "false variables expected"], []),
    "tables/steps.py": (["calls > 3"], []),
}
FIGURES = {"effects": 3, "classification": 2, "steps": 2}


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.py")), ids=lambda p: p.name)
def test_the_gallery_finds_what_it_says(path, capsys):
    import matplotlib.pyplot as plt

    exec(compile(path.read_text(), path.name, "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    wanted, unwanted = EXAMPLES[path.relative_to(ROOT / "examples").as_posix()]
    assert [text for text in wanted if text not in printed] == []
    assert [text for text in unwanted if text in printed] == []
    assert len(plt.get_fignums()) == FIGURES.get(path.stem, 1)


def anchors(path):
    """Return the anchors of the headings of a document, as GitHub and the pages make them."""
    text = FENCED.sub("", path.read_text())
    text = re.sub(r"^```\{include\} (\S+)\n(.*?)^```", "", text, flags=re.DOTALL | re.MULTILINE)
    found = set()
    for included in re.findall(r"^```\{include\} (\S+)", path.read_text(), re.MULTILINE):
        found |= anchors(path.parent / included)
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower())
        found.add(words.replace(" ", "-"))
    return found


def source_of(link, page):
    """Return the file behind a link; pages of the gallery are made from scripts."""
    target = (page.parent / link).resolve()
    gallery = DOCS / "gallery"
    if target.is_relative_to(gallery):
        name = target.relative_to(gallery).with_suffix(".py")
        return ROOT / "examples" if name.name == "index.py" else ROOT / "examples" / name
    return target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for link in LINK.findall(FENCED.sub("", path.read_text())):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = source_of(name, path) if name else path
        assert target.exists(), f"{path.name}: {link} leads nowhere"
        if anchor:
            assert anchor in anchors(target), f"{path.name}: there is no {link}"
        inside = path.is_relative_to(DOCS) and not target.is_relative_to(ROOT / "examples")
        assert not inside or target.is_relative_to(DOCS), f"{path.name}: {link} is no page"


def test_every_page_can_be_reached():
    entries = re.findall(r"^([\w/-]+)$", (DOCS / "index.md").read_text(), re.MULTILINE)
    assert {page.stem for page in PAGES} - {"index"} <= set(entries)
    assert {"api/index", "gallery/index"} <= set(entries)
    listed = re.findall(r"^(\w+)$", (DOCS / "api" / "index.md").read_text(), re.MULTILINE)
    assert {page.stem for page in (DOCS / "api").glob("*.md")} - {"index"} == set(listed)


def test_the_reference_has_every_public_name():
    package = importlib.import_module("hikernel")
    modules = {"estimators": package}
    for name in (*package._MODULES, "experiments", "dask"):
        modules[name] = importlib.import_module(f"hikernel.{name}")
    for name, module in modules.items():
        text = (DOCS / "api" / f"{name}.md").read_text()
        listed = set(re.findall(r"^   (\w+)$", text, re.MULTILINE))
        public = {item for item in module.__all__ if not item.startswith("__")}
        assert public == listed, f"docs/api/{name}.md"


def words_of(line):
    """Return the words of a command without comments, arguments of the shell and settings."""
    words = shlex.split(line, comments=True)
    while words and re.match(r"\w+=", words[0]):
        words = words[1:]
    return words


def check_make(words, _):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = [word for word in words[1:] if "=" not in word]
    assert set(named) <= set(targets), words


def check_pip(words, _):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for group in re.findall(r"\[(.*?)\]", " ".join(words)):
        assert set(group.split(",")) <= set(extras), words


def check_hikernel(words, capsys):
    import click

    from hikernel.cli import main
    from hikernel.cli.application import application

    command = words[1:2] if words[1:] and not words[1].startswith("-") else []
    with contextlib.suppress(SystemExit):  # what --help ends with where it is no return value
        assert main([*command, "--help"]) == 0, f"{words} is no command"
    text = capsys.readouterr().out
    assert "usage: hikernel" in text.lower(), f"{words} is no command"
    known = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", text))
    used = {word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-zA-Z]", word)}
    assert used <= known, f"{words}: there is no {used - known}"
    if command:  # the values of the options are read, and nothing is run
        parsed = application.get_command(click.Context(application), command[0])
        try:
            parsed.make_context(command[0], words[2:])
        except click.ClickException as error:
            pytest.fail(f"{words}: {error.format_message()}")


@pytest.mark.parametrize("words", ["explain a b --row 0", "fit a", "fit a --target b --loss x"])
def test_a_value_that_is_refused_is_seen(words, capsys):
    with pytest.raises(pytest.fail.Exception, match=r"--row|--target|--loss"):
        check_hikernel(["hikernel", *words.split()], capsys)


def check_python(words, _):
    if words[1:3] != ["-m", "pip"]:
        paths = [word for word in words[1:] if "/" in word and not word.startswith("-")]
        assert all((ROOT / word).exists() for word in paths), words


COMMANDS = {
    "make": check_make,
    "pip": check_pip,
    "hikernel": check_hikernel,
    "python": check_python,
    ".venv/bin/python": check_python,
    ".venv-peers/bin/python": check_python,
    "pre-commit": lambda *_: None,
    "git": lambda *_: None,
    "cd": lambda *_: None,
    "export": lambda *_: None,
}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_are_there(path, capsys):
    for block in CONSOLE.findall(path.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            words = words_of(line.removeprefix("$ "))
            if words:
                assert words[0] in COMMANDS, f"{path.name}: {line}"
                COMMANDS[words[0]](words, capsys)


def extension(name):
    """Return a module of docs/_ext, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_formulas_can_be_drawn():
    drawn = extension("mathtext_svg").drawn
    formulas = set()
    for page in PAGES:
        text = re.sub(r"`[^`\n]*`", "", FENCED.sub("", page.read_text()))
        formulas |= {" ".join(f.split()) for f in re.findall(r"\$\$(.*?)\$\$", text, re.DOTALL)}
        formulas |= set(re.findall(r"\$([^$\n]+)\$", re.sub(r"\$\$.*?\$\$", "", text, flags=re.S)))
    assert len(formulas) > 50
    for formula in formulas:
        svg = drawn(formula, 1.0)
        assert svg.count("<svg") == svg.count("</svg>") == 1
        assert "currentColor" in svg
        assert "metadata" not in svg
        assert "#ffffff" not in svg  # on a dark page
    with pytest.raises(ValueError, match="Unknown symbol"):
        drawn(r"\nosuchthing", 1.0)


def test_docstrings_become_pages():
    module = extension("docstrings")
    lines = ["Norm |x|, see ``|y|`` and beta_{D(v)}.", "", "    f(x) = |x|_1", "", "It is coef_."]
    lines += ["", ">>> model.coef_ | 1"]
    module.before_napoleon(lines)
    module.after_napoleon(lines)
    assert lines[0] == r"Norm \|x\|, see ``|y|`` and beta_{D(v)}."
    assert lines[2:5] == [".. code-block:: text", "", "    f(x) = |x|_1"]
    assert lines[6] == "It is ``coef_``."
    assert lines[8] == ">>> model.coef_ | 1"


def test_the_gallery_has_a_place_for_every_script():
    order = extension("gallery_order").ORDER
    names = [path.name for path in (ROOT / "examples").rglob("*.py")]
    assert sorted(order) == sorted(names)


@pytest.mark.slow
def test_the_pages_are_read_without_a_warning(tmp_path):
    for name in ("sphinx", "myst_parser", "furo", "sphinx_gallery", "sphinx_copybutton"):
        pytest.importorskip(name, reason="make docs installs what builds the pages")
    made = shutil.ignore_patterns("_build", "gallery", "generated", "sg_execution_times.rst")
    shutil.copytree(DOCS, tmp_path / "docs", ignore=made)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copy(ROOT / "CONTRIBUTING.md", tmp_path)
    # The builder "dummy" reads everything and follows every link, and writes no page.
    build = ["-m", "sphinx", "-b", "dummy", "-W", "--keep-going", "-q", "-D", "plot_gallery=0"]
    done = subprocess.run(
        [sys.executable, *build, str(tmp_path / "docs"), str(tmp_path / "read")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert (tmp_path / "docs" / "gallery" / "tables" / "effects.rst").exists()
