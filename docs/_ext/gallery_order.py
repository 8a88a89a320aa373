"""The order of the gallery: what most people need comes first."""

from __future__ import annotations

ORDER = [
    "effects.py",
    "one_prediction.py",
    "classification.py",
    "path.py",
    "steps.py",
    "certificate.py",
    "stability.py",
    "many_kernels.py",
    "strings.py",
    "point_clouds.py",
    "molecules.py",
]


def place(filename: str) -> int:
    """Return the place of a script; one that is not listed is an error."""
    if filename not in ORDER:
        raise ValueError(f"docs/_ext/gallery_order.py has no place for {filename}; add it there.")
    return ORDER.index(filename)
