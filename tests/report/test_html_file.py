"""Writing the page: all of it or nothing, and errors that say what to do."""

import os
from pathlib import Path

import pytest
from report.made import made

from hikernel.report import html_file, page, write_report


def test_the_file_has_the_page(tmp_path):
    target = write_report(made(2), tmp_path / "out.html")
    assert target == (tmp_path / "out.html").resolve()
    assert target.read_text(encoding="utf-8") == page(made(2))
    assert os.listdir(tmp_path) == ["out.html"]


def test_text_is_a_path_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_report(made(1), "out.html")
    assert (tmp_path / "out.html").stat().st_size > 1e6


def test_a_file_that_is_there_is_replaced_and_keeps_its_link(tmp_path):
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "link.html").symlink_to(tmp_path / "real.html")
    write_report(made(1), tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").stat().st_size > 1e6


def test_the_old_file_stays_if_the_new_one_cannot_be_written(tmp_path, monkeypatch):
    target = tmp_path / "out.html"
    target.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(html_file.os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot be written to '.*out\.html' \(No space left"):
        write_report(made(1), target)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.html"]


def test_nothing_is_left_of_a_summary_that_cannot_be_drawn(tmp_path):
    with pytest.raises(ValueError, match="schema"):
        write_report(made(1) | {"schema": 99}, tmp_path / "out.html")
    assert os.listdir(tmp_path) == []


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder '.*nowhere'; create it first"):
        write_report(made(1), tmp_path / "nowhere" / "out.html")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(
        IsADirectoryError, match=r"is a folder; give a file name such as '.*\.html'"
    ):
        write_report(made(1), tmp_path)


@pytest.mark.parametrize("path", [None, 3, b"out.html"])
def test_a_path_is_text_or_a_path(path):
    with pytest.raises(TypeError, match=r"path must be the name of a file such as 'report\.html'"):
        write_report(made(1), path)


def test_an_empty_path_is_refused():
    with pytest.raises(ValueError, match="path is empty"):
        write_report(made(1), "")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_without_permission_is_named(tmp_path):
    Path(tmp_path).chmod(0o500)
    with pytest.raises(PermissionError, match="choose another file or folder"):
        write_report(made(1), tmp_path / "out.html")
