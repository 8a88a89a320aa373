"""The file: an uncompressed zip archive of a manifest, one JSON member and the arrays.

Members are stored, not deflated. No member can be larger than the file, so zip bombs are
impossible, and the size of a file tells how much memory loading it takes. The manifest has the
SHA-256 of every other member. The codec gives the members their meaning.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import struct
import zipfile
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

from hikernel._version import __version__
from hikernel.persistence.content import ContentError, conforms, reason, shown
from hikernel.persistence.whole_file import check_place, write_whole

__all__ = ["FORMAT", "FORMAT_VERSION", "MAX_BYTES", "Contents", "read_file", "write_file"]

FORMAT = "hikernel model"
FORMAT_VERSION = 5
MAX_BYTES = 2**30
"""Size in bytes of the largest file that is loaded, unless the caller allows more."""

_MANIFEST, _STATE = "manifest.json", "state.json"
_MEMBER = re.compile(r"manifest\.json|state\.json|arrays/[a-z]+[0-9]*\.npy")
_MAX_MEMBERS = 64
_MAX_JSON = 2**26
_MAX_MANIFEST = 2**16
_MAX_VALUES = 2**22
"""Largest number of values in a JSON member: a value of two bytes takes a hundred in memory."""
_MAX_FILE = 2**32 - 2**20  # what a zip archive without the ZIP64 extension can hold
_END = struct.Struct("<4s4H2LH")


@dataclass(frozen=True)
class Contents:
    """What a file holds.

    Attributes
    ----------
    kind : str
        What was saved: the name of an estimator.
    state : object
        The state as JSON, encoded by the codec.
    arrays : dict of str to bytes
        The .npy members.
    """

    kind: str
    state: Any
    arrays: dict[str, bytes]


def write_file(path: str | os.PathLike[str], contents: Contents) -> None:
    """Write a file atomically: readers see the old file or the new one, never a part of it.

    Equal contents give equal bytes.

    Raises
    ------
    ValueError
        If the model is too large for a model file.
    OSError
        If the path is a folder, its folder does not exist, or it cannot be written to.
    """
    state = json.dumps(contents.state, allow_nan=False, separators=(",", ":")).encode()
    members = {_STATE: state, **contents.arrays}
    large = len(state) > _MAX_JSON or _count_values(state) > _MAX_VALUES
    if large or sum(map(len, members.values())) > _MAX_FILE:
        raise ValueError("The model is too large for a model file; use pickle or joblib for it.")
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "hikernel": __version__,
        "kind": contents.kind,
        "members": {
            name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in members.items()
        },
    }
    first = json.dumps(manifest, indent=1).encode()

    def write(stream: BinaryIO) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
            for name, data in {_MANIFEST: first, **members}.items():
                archive.writestr(zipfile.ZipInfo(name), data)

    write_whole(check_place(path, "model.hik"), write)


def read_file(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Contents:
    """Read a file and check that it is intact.

    Raises
    ------
    ContentError
        For anything that `write_file` does not write, and for files above ``max_bytes``.
    OSError
        If there is no such file, or it cannot be read.
    """
    data = _read_bytes(path, max_bytes)
    _check_outside(data)
    try:
        members = _read_members(data)
        manifest = _parse(members.pop(_MANIFEST))
    except ContentError:
        raise
    except Exception as error:  # the parsers raise many types on damaged data
        raise ContentError(f"it is damaged ({reason(error)})") from error
    kind = _check_manifest(manifest, members)
    try:
        state = _parse(members.pop(_STATE))
    except ContentError:
        raise
    except Exception as error:
        raise ContentError(f"its {_STATE} is damaged ({reason(error)})") from error
    return Contents(kind, state, members)


def _read_bytes(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > max_bytes:
            raise ContentError(
                f"it has {size} bytes, more than the limit of {max_bytes}; if you trust it, pass "
                "a larger max_bytes"
            )
        return stream.read(size + 1)


def _check_outside(data: bytes) -> None:
    """Raise for data that are not a zip archive, and for archives that are costly to list."""
    if not data:
        raise ContentError("it is empty")
    if data[:1] == b"\x80":
        raise ContentError(
            "it looks like a pickle, which can run any code and is never opened here; where you "
            "trust its source, use pickle.load or joblib.load"
        )
    if data[:4] != b"PK\x03\x04":
        raise ContentError("it is no hikernel model, or its beginning is damaged")
    if len(data) < _END.size or data[-_END.size :][:4] != b"PK\x05\x06":
        raise ContentError("it is damaged: its end is missing")
    _, disk, first_disk, here, total, size, offset, comment = _END.unpack(data[-_END.size :])
    if disk or first_disk or comment or here != total or data[-42:-38] == b"PK\x06\x07":
        raise ContentError("it is damaged: its list of members is not one that hikernel writes")
    if total > _MAX_MEMBERS or size > 1024 * _MAX_MEMBERS or offset + size + _END.size > len(data):
        raise ContentError("it is damaged: its list of members is too long")


def _read_members(data: bytes) -> dict[str, bytes]:
    """Return the members of an archive by name; raise unless they are as hikernel writes them."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        names = [info.filename for info in infos]
        if _MANIFEST not in names:
            raise ContentError(f"it is an archive without {_MANIFEST}, and so no hikernel model")
        if len(set(names)) != len(names):
            raise ContentError("it holds a member twice")
        for info in infos:
            if not _MEMBER.fullmatch(info.filename):
                raise ContentError(f"it holds the unknown member {shown(info.filename)}")
            plain = info.compress_type == zipfile.ZIP_STORED and info.flag_bits == 0
            if not plain or info.file_size != info.compress_size:
                raise ContentError(f"its member {info.filename} is compressed or encrypted")
            limit = {_MANIFEST: _MAX_MANIFEST, _STATE: _MAX_JSON}.get(info.filename, len(data))
            if info.file_size > limit:
                raise ContentError(f"its member {info.filename} is too large")
        if sum(info.file_size for info in infos) > len(data):
            raise ContentError("its members overlap")
        return {info.filename: archive.read(info) for info in infos}


def _check_manifest(manifest: object, members: dict[str, bytes]) -> str:
    """Check format, version and checksums; return the kind."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ContentError("its manifest is not that of a hikernel model")
    version, writer = manifest.get("format_version"), manifest.get("hikernel")
    if type(version) is not int or version < 1 or not isinstance(writer, str):
        raise ContentError(f"its manifest has the impossible version {shown(version)}")
    if version > FORMAT_VERSION:
        raise ContentError(
            f"it was written by hikernel {writer[:40]!r} in version {version} of the format, and "
            f"this is hikernel {__version__}, which reads versions up to {FORMAT_VERSION}; "
            "upgrade hikernel"
        )
    if version < FORMAT_VERSION:
        raise ContentError(
            f"it was written in version {version} of the format, before the first release of "
            "hikernel, and cannot be read any more; fit the model again"
        )
    if set(manifest) != {"format", "format_version", "hikernel", "kind", "members"}:
        raise ContentError(f"its manifest has other entries than it should: {shown([*manifest])}")
    if not isinstance(manifest["kind"], str):
        raise ContentError(f"its manifest has the kind {shown(manifest['kind'])}")
    listed = manifest["members"]
    if not conforms(listed, dict[str, dict[str, Any]]):
        raise ContentError("its manifest lists no members")
    if _STATE not in members or set(listed) != set(members):
        wrong = sorted(set(listed) ^ set(members) or {_STATE})
        raise ContentError(f"members are missing or too many: {shown(wrong)}")
    for name, data in members.items():
        expected = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        if listed[name] != expected:
            raise ContentError(f"its member {name} is damaged: the checksum is wrong")
    return manifest["kind"]


def _parse(data: bytes) -> Any:
    """Parse strict JSON in ASCII; raise for repeated keys, NaN, infinity and too large floats.

    Raise before parsing for more values than a model has.
    """
    if _count_values(data) > _MAX_VALUES:
        raise ContentError(f"its JSON holds more than {_MAX_VALUES} values")
    return json.loads(
        data.decode("ascii"),
        object_pairs_hook=_object,
        parse_constant=_no_constant,
        parse_float=_finite,
    )


def _count_values(data: bytes) -> int:
    """Return an upper bound on the number of values in JSON: what opens or separates them."""
    return 1 + sum(data.count(mark) for mark in (b",", b":", b"[", b"{"))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ContentError("its JSON repeats a key")
    return out


def _no_constant(text: str) -> NoReturn:
    raise ContentError(f"its JSON holds {text}")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ContentError("its JSON holds a number beyond the range of floating point")
    return value
