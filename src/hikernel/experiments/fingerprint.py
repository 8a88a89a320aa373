"""A hash of all settings behind a job, to recognise results saved with other settings."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hikernel.experiments import settings
from hikernel.experiments.paper_data import CLASSIFICATION, GENERATED

if TYPE_CHECKING:
    from hikernel.experiments.store import Job

__all__ = ["choices", "fingerprint"]


def fingerprint(job: Job) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of :func:`choices`.

    For a kernel or method that no longer exists, return "unknown".
    """
    if job.kernel not in settings.KERNELS or job.method not in _OWN:
        return "unknown"
    text = json.dumps(choices(job), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def choices(job: Job) -> dict[str, Any]:
    """Return all settings that determine the result of a job, besides its data and its seed.

    These are the basis, the parameters and grid of the method, the preparation of the data set,
    the folds and, for generated data, how they are drawn. Settings that only other methods or
    other data sets use are left out.
    """
    kernel = settings.kernel_for(job.data, job.kernel)
    found: dict[str, Any] = {
        "basis": repr(kernel.make_basis()),
        "levels": kernel.levels,
        "cv": [settings.CV_FOLDS, settings.CV_CRITERION],
        job.method: _OWN[job.method](kernel),
    }
    if kernel.basis is not None:
        found["log_offset"] = settings.LOG_OFFSET.get(job.data)
        found["clip"] = settings.CLIP.get(job.data)
    if job.data in CLASSIFICATION:
        found["rows"] = settings.CLASSIFICATION_ROWS
    if job.data in GENERATED:
        found["norm"] = [settings.NORM_ROWS, settings.NORM_SEED]
    if job.data.startswith("synthetic-"):
        found["figure"] = {
            name: value
            for name, value in asdict(settings.FIGURE).items()
            if name not in ("variables", "replications")
        }
    return found


def _hkl(kernel: settings.KernelChoice) -> list[Any]:
    return [kernel.weight_base, kernel.alphas.tolist(), settings.MAX_KERNELS]


def _l2(kernel: settings.KernelChoice) -> list[Any]:
    return [kernel.share, kernel.decay, settings.L2_GRID.tolist()]


def _greedy(kernel: settings.KernelChoice) -> list[Any]:
    return [settings.GREEDY_KERNELS, settings.GREEDY_RIDGE]


def _lasso_alpha(kernel: settings.KernelChoice) -> list[Any]:
    grid = settings.LASSO_GRID.tolist()
    return [kernel.share, kernel.decay, grid, settings.LASSO_STEPS, "scaled path"]


def _mkl(kernel: settings.KernelChoice) -> list[Any]:
    return [settings.MKL_GRID.tolist()]


_OWN = {
    "HKL": _hkl,
    "L2": _l2,
    "greedy": _greedy,
    "lasso-alpha": _lasso_alpha,
    "MKL": _mkl,
}
