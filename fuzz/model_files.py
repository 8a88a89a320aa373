"""Model files that are damaged or forged: each is refused in a sentence, or is a sound model.

A *damaged* file has wrong bytes; if it loads, then to the same model. A *forged* one has right
checksums, as an attacker writes them; if it loads, the model can be asked for all it knows. While
a file is loaded, memory and time are limited, and nothing may be run, written or removed.
"""

from __future__ import annotations

import copy
import json
import os
import resource
import sys
import tempfile
import time
import zipfile
from contextlib import contextmanager

import numpy as np
from persistence.files import members_of, same, sealed, zipped

import hikernel
from fuzz.models import MODELS, saved
from fuzz.tables import some
from fuzz.verdict import FuzzError, Outcome, attempt, require
from hikernel.errors import ModelFileError
from hikernel.estimators.saving import estimator_state

__all__ = ["run"]

_MEMORY = 2**28
"""Bytes that may be taken beyond those in use; the files have less than a megabyte."""
_SECONDS = 5.0
"""Of the processor: a busy machine makes no file suspicious."""
_LONGEST = 600
_FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen",
    "pickle.find_class", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link",
    "os.symlink", "os.chmod",
    "os.putenv", "shutil.", "socket.", "ctypes.", "urllib.", "webbrowser.", "code.__new__",
    "marshal.load",
)  # fmt: skip
_watching = False
NUMBERS = (
    0, 1, -1, 2, 7, 63, 10**3, 10**5, 10**9, 2**31, 2**63 - 1, -(2**63), 0.5, -0.0, 1e-320, 1e300,
    {"float": "7ff8000000000000"}, {"float": "7ff0000000000000"}, {"int": "0x" + "f" * 300},
    {"int": "-0x1"}, True, None,
)  # fmt: skip
JUNK = (
    *NUMBERS, "", "x", "../../x", "\ud800", "a" * 10**4, [], {}, [[]], {"tuple": []}, {"dict": []},
    {"tuple": [1, 2]}, {"dict": [["a", 1]]}, {"array": ["float64", [2], "C"]}, {"object": []},
    {"array": ["float64", [2**62], "C"]}, {"array": ["object", [1], "C"]},
    {"objects": [[1], ["a"]]}, {"objects": [[10**9], []]}, {"objects": [[2**40, 0], []]},
    {"scalar": ["float64", "00" * 8]},
    {"scalar": ["str32", "ff" * 4]}, {"enum": ["Status", "CONVERGED"]}, {"enum": ["os", "name"]},
    {"object": ["os.system", {"command": "true"}]}, {"object": ["Poisson", {}]},
    {"object": ["Standardizer", {"mean": 0.0}]}, {"pickle": "gASVAAAA"},
)  # fmt: skip
NAMES = (
    "../../evil", "/evil", "arrays/../../evil.npy", "arrays/evil.py", "C:\\evil", "arrays/", "",
    "arrays/float64.npy/x", "state.json", "manifest.json", "STATE.JSON", "a\x00b",
    "arrays/object.npy", "é.json", "x" * 5000, "arrays/float32.npy", "__init__.py",
    "arrays/int64.npy\n",
)  # fmt: skip


def run(rng):
    """Run one case: change a file, load it, and use what was loaded."""
    outcome = Outcome()
    name = some(rng, MODELS)
    model, whole, X = saved(name)
    damage = some(rng, (_cut, _flipped, _flipped, _spliced, _renamed))
    forge = some(
        rng, (_values, _values, _values, _numbers, _numbers, _arrays, _arrays, _versions, _members,
              _bomb, _claims, _nested, _mixed)
    )  # fmt: skip
    forged = rng.random() < 0.75
    data = forge(rng, whole) if forged else damage(rng, whole)
    found = _loaded(data, outcome)
    if found is None:
        return outcome
    outcome.kind = "model"
    if not forged:
        kept = same(estimator_state(found), estimator_state(model))
        require(kept, "damage that nobody noticed changed the model")
    _use(found, X)
    return outcome


def _loaded(data, outcome):
    """Return the model in a file, or None where it is refused in a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.hik")
        with open(path, "wb") as stream:
            stream.write(data)
        began = time.process_time()
        try:
            with _limited():
                found = hikernel.load(path)
        except ModelFileError as error:
            found, text = None, str(error)
            require(text.startswith(f"{path!r} cannot be loaded: "), f"another beginning: {text}")
            require(text.endswith(".") and len(text) < _LONGEST, f"no sentence: {text}")
            outcome.kind, outcome.sentence = "refused", text.removeprefix(repr(path))[19:]
        except MemoryError as error:
            raise FuzzError("it takes more memory than it may") from error
        seconds = time.process_time() - began
        require(seconds < _SECONDS, f"{seconds:.1f} s for {len(data)} bytes")
        require(os.listdir(folder) == ["model.hik"], "other files")
    return found


@contextmanager
def _limited():
    """Limit memory, and watch what is done."""
    global _watching  # an audit hook cannot be removed
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as stream:
        used = int(stream.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, before[1]))
    _watching = True
    try:
        yield
    finally:
        _watching = False
        resource.setrlimit(resource.RLIMIT_AS, before)


def _watch(event, arguments):
    if not _watching:
        return
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & 0o3
    if writes or event.startswith(_FORBIDDEN):
        raise FuzzError(f"loading does {event} {arguments!r:.200}")


sys.addaudithook(_watch)


def _use(model, X):
    """Ask a model that was loaded; its numbers may be absurd, but not its answers."""
    asks = (
        lambda: model.predict(X), lambda: str(model), model.formula, model.summary,
        lambda: model.effects(X), lambda: model.certificate_.explain(), lambda: model.hull_,
        lambda: model.terms_,
    )  # fmt: skip
    began = time.process_time()
    for ask in asks:
        with attempt(Outcome()), np.errstate(all="ignore"):
            ask()
    with attempt(Outcome()), np.errstate(all="ignore"):
        require(len(model.predict(X)) == X.shape[0], "another number of predictions than rows")
    seconds = time.process_time() - began
    require(seconds < 4 * _SECONDS, f"{seconds:.1f} s for using it")


def _cut(rng, whole):
    return whole[: int(rng.integers(len(whole)))]


def _flipped(rng, whole):
    """A few bits or bytes, half of the time in the directory of the archive, without checksum."""
    out = bytearray(whole)
    first = some(rng, (0, whole.index(b"PK\x01\x02")))
    for _ in range(int(rng.integers(1, 5))):
        change = 1 << int(rng.integers(8)) if rng.random() < 0.5 else int(rng.integers(1, 256))
        out[int(rng.integers(first, len(out)))] ^= change
    return bytes(out)


def _spliced(rng, whole):
    """Bytes are left out, repeated or put in."""
    begin, end = sorted(int(i) for i in rng.integers(0, len(whole) + 1, 2))
    middle = some(rng, (b"", whole[begin:end] * 2, rng.bytes(int(rng.integers(1, 60))), whole))
    return whole[:begin] + middle + whole[end:]


def _renamed(rng, whole):
    """The name of a member is another one of the same length, here, there or in both places."""
    old = some(rng, (b"manifest.json", b"state.json", b"arrays/float64.npy"))
    new = some(rng, (b"../../../../../../etc/x", b"/evil/evil/evil/evil", b"state.json...........",
                     b"arrays/int64.npy....", b"manifest.json......."))[: len(old)]  # fmt: skip
    return whole.replace(old, new, some(rng, (1, 2, -1)))


def _places(tree, found):
    """Return all (container, key) of a tree of JSON."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        found.append((tree, key))
        if isinstance(value, (dict, list)):
            _places(value, found)
    return found


def _values(rng, whole):
    """Values of the state are others, gone, doubled, or swapped."""
    members = members_of(whole)
    found = _places(members["state.json"], [])
    for _ in range(int(rng.integers(1, 4))):
        container, key = found[int(rng.integers(len(found)))]
        if key not in container if isinstance(container, dict) else key >= len(container):
            continue  # dropped before
        how = rng.random()
        if how < 0.6:
            container[key] = copy.deepcopy(some(rng, JUNK))
        elif how < 0.8:
            other, place = found[int(rng.integers(len(found)))]
            held = other.get(place) if isinstance(other, dict) else other[place : place + 1]
            container[key] = copy.deepcopy(held)
        elif how < 0.9 and isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        else:
            del container[key]
    return sealed(members)


def _numbers(rng, whole):
    """Numbers of the state are others, among them sizes, levels and degrees."""
    members = members_of(whole)
    found = _places(members["state.json"], [])
    numbers = [(c, k) for c, k in found if isinstance(c[k], (int, float))]
    for _ in range(int(rng.integers(1, 3))):
        container, key = numbers[int(rng.integers(len(numbers)))]
        near = rng.random() < 0.3 and isinstance(container[key], (int, float))
        container[key] = container[key] + some(rng, (-2, -1, 1, 2)) if near else some(rng, NUMBERS)
    return sealed(members)


def _arrays(rng, whole):
    """Bytes of an array, its header included, or whole numbers in it."""
    members = members_of(whole)
    name = some(rng, sorted(key for key in members if key.endswith("npy")))
    out = bytearray(members[name])
    for _ in range(int(rng.integers(1, 5))):
        if rng.random() < 0.5 or len(out) < 144:
            out[int(rng.integers(len(out)))] ^= int(rng.integers(1, 256))
        else:
            value = some(rng, (np.nan, np.inf, -1.0, 0.0, 1e300, -1e300, 1e-320, 0.5))
            place = 128 + 8 * int(rng.integers((len(out) - 128) // 8))
            out[place : place + 8] = np.float64(value).tobytes()
    return sealed({**members, name: bytes(out)})


def _versions(rng, whole):
    """Manifests of the future, of the past, and of nobody."""
    members = members_of(whole)
    manifest = members["manifest.json"]
    key = some(rng, ("format_version", "format_version", "hikernel", "kind", "format", "new"))
    manifest[key] = some(rng, (*JUNK, 6, 4, 99, "9.9", "HKLClassifier", "HKLRegressorCV", "os"))
    return sealed(members)


def _members(rng, whole):
    """Further members, with names that lead elsewhere, or fewer."""
    members = members_of(whole)
    if rng.random() < 0.3:
        members.pop(some(rng, sorted(members)))
    for _ in range(int(rng.integers(1, 4))):
        content = some(
            rng, (b"", b"x", b"{}", rng.bytes(50), members.get("arrays/float64.npy", b""))
        )
        members[some(rng, NAMES)] = content
    if isinstance(members.get("manifest.json"), bytes):
        members["manifest.json"] = {}
    if rng.random() < 0.1:
        members |= {f"arrays/a{i}.npy": b"" for i in range(int(rng.integers(50, 2000)))}
    return sealed(members)


def _bomb(rng, whole):
    """Much from little: compressed members, some of them of a gigabyte when they are read."""
    members = members_of(whole)
    how = some(rng, (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2))
    if rng.random() < 0.5:
        return sealed(members, how)
    name = some(rng, ("manifest.json", "state.json", "arrays/float64.npy", "arrays/int64.npy"))
    raw = {
        key: json.dumps(v).encode() if isinstance(v, (dict, list)) else v
        for key, v in members.items()
    }
    data = zipped({**raw, name: bytes(2**23)}, how)
    return data.replace((2**23).to_bytes(4, "little"), (2**30).to_bytes(4, "little"))


def _claims(rng, whole):
    """Arrays, degrees, levels and directories that claim to be huge."""
    huge = int(some(rng, (10**4, 10**5, 10**6, 2**31, 2**40, 2**62)))
    members = members_of(whole)
    found = _places(members["state.json"], [])
    if rng.random() < 0.4:
        shapes = [c[k] for c, k in found if k == "array" and isinstance(c, dict)]
        shape = some(rng, shapes)[1]
        shape[int(rng.integers(len(shape))) if shape else 0 :] = [huge, 0][
            : int(rng.integers(1, 3))
        ]
    elif rng.random() < 0.6:
        wide = [(c, k) for c, k in found if isinstance(k, str) and isinstance(c[k], int)]
        container, key = wide[int(rng.integers(len(wide)))]
        container[key] = huge
    else:
        out = bytearray(sealed(members))
        place = out.index(b"PK\x01\x02") + int(some(rng, (20, 24, 28, 42)))
        out[place : place + 4] = (huge % 2**32).to_bytes(4, "little")
        return bytes(out)
    return sealed(members)


def _nested(rng, whole):
    """JSON that is deep, wide, repeated, or none."""
    members = members_of(whole)
    deep, many = int(some(rng, (10, 39, 100, 10**3, 10**5))), int(some(rng, (10**3, 10**5)))
    text = some(
        rng,
        (b"[" * deep, b"[" * deep + b"]" * deep, b'{"tuple":[' * deep + b"1" + b"]}" * deep,
         b"[" + b",".join([b"[]"] * many) + b"]", b"1" * deep, b"NaN", b"1e999", b"\xff",
         b'{"dict":[' + b"[1,1]," * many + b"[1,1]]}", b'{"a":1,"a":2}', b'"\\ud800"', b"null",
         b'{"int":"0x' + b"f" * many + b'"}'),
    )  # fmt: skip
    if rng.random() < 0.5:
        return sealed({**members, "state.json": text})
    place = b'"here"'
    state = members["state.json"]
    container, key = some(rng, _places(state, []))
    container[key] = "here"
    raw = json.dumps(state).encode().replace(place, text)
    return sealed({**members, "state.json": raw})


def _mixed(rng, whole):
    """Members of two models in one file."""
    members, other = members_of(whole), members_of(saved(some(rng, MODELS))[1])
    name = some(rng, sorted(set(members) & set(other)))
    members[name] = other[name]
    if name == "state.json" and rng.random() < 0.5:
        members = {**other, "manifest.json": members["manifest.json"]}
    return sealed(members)
