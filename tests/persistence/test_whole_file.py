"""Files are whole or not there, and a file that was there stays."""

from __future__ import annotations

import os

import pytest

from hikernel.persistence.whole_file import check_place, write_whole


def test_a_file_is_replaced(tmp_path):
    target = tmp_path / "a.txt"
    for content in (b"first", b"second"):
        write_whole(target, lambda stream, content=content: stream.write(content))
        assert target.read_bytes() == content
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [OSError(28, "No space left"), KeyboardInterrupt(), ValueError()])
def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path, error):
    target = tmp_path / "a.txt"
    target.write_bytes(b"old")

    def write(stream):
        stream.write(b"half")
        raise error

    with pytest.raises(type(error)):
        write_whole(target, write)
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_errors_name_the_file_of_the_user(tmp_path):
    target = tmp_path / "gone" / "a.txt"
    with pytest.raises(OSError, match=r"a\.txt") as caught:
        write_whole(target, lambda stream: None)
    assert caught.value.filename == str(target)


def test_places_are_checked(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"is a folder; .*page\.html"):
        check_place(tmp_path, "page.html")
    with pytest.raises(FileNotFoundError, match="no folder"):
        check_place(tmp_path / "gone" / "a.txt", "page.html")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real.txt")
    assert check_place(link, "page.html") == tmp_path / "real.txt"
