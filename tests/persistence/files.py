"""Model files to test with: written once, taken apart, put together again with right checksums."""

import functools
import hashlib
import io
import json
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np

from hikernel import HKLClassifier, HKLRegressor
from hikernel.errors import CertificateWarning
from hikernel.estimators.saving import save


def quick(estimator, X, y):
    """Fit; models here are small and need no proof."""
    estimator.set_params(certify="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        return estimator.fit(X, y)


def data(n=60, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, p))
    return X, X[:, 0] + X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(n)


@functools.cache
def regressor(basis="auto"):
    return quick(HKLRegressor(alpha=0.01, basis=basis, max_kernels=20), *data())


@functools.cache
def classifier():
    X, y = data()
    labels = np.array(["low", "middle", "high"], dtype=object)[np.digitize(y, [-0.3, 0.3])]
    return quick(HKLClassifier(alpha=0.03, max_kernels=20), X, labels)


def bytes_of(estimator):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.hik"
        save(estimator, path)
        return path.read_bytes()


def members_of(data):
    """The members of a file; JSON is parsed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        raw = {name: archive.read(name) for name in archive.namelist()}
    return {
        name: json.loads(value) if name.endswith(".json") else value for name, value in raw.items()
    }


def sealed(members, compression=zipfile.ZIP_STORED):
    """A file of these members, with the checksums that they have now: what an attacker writes."""
    raw = {
        name: value if isinstance(value, bytes) else json.dumps(value).encode()
        for name, value in members.items()
        if name != "manifest.json"
    }
    manifest = members.get("manifest.json")
    if isinstance(manifest, dict):
        manifest = {
            **manifest,
            "members": {
                name: {"size": len(value), "sha256": hashlib.sha256(value).hexdigest()}
                for name, value in raw.items()
            },
        }
    return zipped({"manifest.json": json.dumps(manifest).encode(), **raw}, compression)


def zipped(raw, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, value in raw.items():
            archive.writestr(zipfile.ZipInfo(name), value, compress_type=compression)
    return buffer.getvalue()


def same(left, right):
    """Whether two values are equal to the last bit, types and memory layout included."""
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray) and left.dtype != object:
        layout = left.flags.c_contiguous, left.flags.f_contiguous
        return (
            left.dtype == right.dtype
            and left.shape == right.shape
            and left.tobytes() == right.tobytes()
            and layout == (right.flags.c_contiguous, right.flags.f_contiguous)
        )
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return [*left] == [*right] and all(same(left[key], right[key]) for key in left)
    if isinstance(left, np.ndarray):
        return left.shape == right.shape and same(left.tolist(), right.tolist())
    if isinstance(left, str):
        return str(left) == str(right)  # NumPy compares its own empty strings by chance
    if hasattr(left, "equals"):
        return left.equals(right)
    if isinstance(left, (float, np.floating)):
        return np.float64(left).tobytes() == np.float64(right).tobytes()
    fields = getattr(left, "__dataclass_fields__", None)
    if fields is not None:
        compared = [name for name, field in fields.items() if field.compare]
        return all(same(getattr(left, name), getattr(right, name)) for name in compared)
    if type(left).__module__.startswith("hikernel.losses"):
        return vars(left) == vars(right)
    return bool(left == right)
