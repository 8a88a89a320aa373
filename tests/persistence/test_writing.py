"""Where a model file is written: in one step, or not at all and for a reason."""

import json
import os
import zipfile

import pytest
from persistence.files import regressor

from hikernel.estimators.saving import load, save


def test_writing_replaces_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "model.hik"
    path.write_bytes(b"old")

    def fail(*arguments):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            save(regressor(), path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.hik"]
    save(regressor(), path)
    assert load(path).nodes_ == regressor().nodes_
    assert os.listdir(tmp_path) == ["model.hik"]


def refused_place(path, kind, sentence):
    with pytest.raises(kind) as caught:
        save(regressor(), path)
    assert str(caught.value) == sentence


def test_a_missing_folder_is_named(tmp_path):
    folder = tmp_path / "nowhere"
    sentence = f"There is no folder '{folder}'; create it first."
    refused_place(folder / "model.hik", FileNotFoundError, sentence)
    assert os.listdir(tmp_path) == []


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    sentence = f"There is no folder '{tmp_path / 'file'}'; create it first."
    refused_place(tmp_path / "file" / "model.hik", FileNotFoundError, sentence)


def test_a_folder_in_place_of_the_file(tmp_path):
    sentence = f"'{tmp_path}' is a folder; give a file name such as '{tmp_path / 'model.hik'}'."
    refused_place(tmp_path, IsADirectoryError, sentence)
    refused_place(f"{tmp_path}{os.sep}", IsADirectoryError, sentence)
    assert os.listdir(tmp_path) == []
    assert not [name for name in os.listdir(tmp_path.parent) if name.endswith(".tmp")]


def test_errors_of_the_system_name_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / ("m" * 300)
    with pytest.raises(OSError, match="name too long") as caught:
        save(regressor(), path)
    assert caught.value.filename == str(path)
    assert ".tmp" not in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_links_stay_links(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.hik").symlink_to(tmp_path / "real" / "model.hik")
    save(regressor(), tmp_path / "link.hik")
    assert (tmp_path / "link.hik").is_symlink()
    assert json.loads(zipfile.ZipFile(tmp_path / "real" / "model.hik").read("manifest.json"))
