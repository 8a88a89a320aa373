"""Draw docs/figures/overview.png, the picture of the first page and of the README.

Run it in the root of the project after a change of the plots or of the defaults::

    OPENBLAS_NUM_THREADS=1 .venv/bin/python docs/figures/make_overview.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

from sklearn.datasets import load_diabetes

from hikernel import HKLRegressorCV

MOST_BYTES = 200_000


def main() -> None:
    """Fit the table of the first page, and write what ``plot`` draws."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    figure = HKLRegressorCV().fit(X, y.rename("progression")).plot()
    target = Path(__file__).with_name("overview.png")
    figure.savefig(target, dpi=100, metadata={"Software": None})
    assert target.stat().st_size <= MOST_BYTES, "too large for the first page; lower dpi"


if __name__ == "__main__":
    main()
