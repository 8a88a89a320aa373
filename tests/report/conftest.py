"""A real Chromium, and pages opened in it under the eyes of the test."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager

import pytest

from hikernel.report import write_report

ARGUMENTS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium():
    """One browser for the tests of a module."""
    executable = os.environ.get("HIKERNEL_CHROMIUM") or shutil.which("chromium")
    if executable is None:
        pytest.skip("no chromium; install it, or name one in HIKERNEL_CHROMIUM")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def opened(chromium, tmp_path_factory):
    """Return a context manager that opens the page of a summary, and fails if anything went wrong.

    Wrong are errors of scripts or of the console, dialogs, and requests other than for the file,
    but for those that a test expects.
    """
    page = chromium.new_context(reduced_motion="reduce").new_page()
    page.set_default_timeout(10_000)
    found = []
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on("console", lambda said: found.append(said.text) if said.type == "error" else None)
    page.on("dialog", lambda dialog: (found.append(f"dialog: {dialog}"), dialog.dismiss()))
    page.on("request", lambda request: found.append(f"request: {request.url}"))

    @contextmanager
    def open_page(summary, *, width=1200, height=900, dark=False, wrong=()):
        path = write_report(summary, tmp_path_factory.mktemp("page") / "report.html")
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.mouse.move(0, 0)
        found.clear()
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        yield page
        expected = [path.as_uri(), *wrong]
        assert len(found) == len(expected), found
        assert [part for part, text in zip(expected, found, strict=True) if part not in text] == []

    return open_page
