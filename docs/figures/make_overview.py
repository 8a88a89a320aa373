"""Draw the pictures of the first page, the README and the tutorial into docs/figures.

Run it in the root of the project after a change of the plots or of the defaults::

    OPENBLAS_NUM_THREADS=1 .venv/bin/python docs/figures/make_overview.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")

from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from hikernel import HKLRegressorCV
from hikernel.plots import plot_prediction

MOST_BYTES = 200_000


def write(figure: Any, name: str) -> None:
    """Write a picture; one that is too large for a page is an error."""
    target = Path(__file__).with_name(name)
    figure.savefig(target, dpi=100, metadata={"Software": None})
    assert target.stat().st_size <= MOST_BYTES, f"{name} is too large; lower dpi"


def main() -> None:
    """Fit the models of the pages, and draw them."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    write(HKLRegressorCV().fit(X, y).plot(), "overview.png")

    X["sex"] = X["sex"].map({1.0: "first", 2.0: "second"})
    X_train, X_test, y_train, _ = train_test_split(X, y, test_size=0.25, random_state=0)
    model = HKLRegressorCV().fit(X_train, y_train)
    write(model.plot(), "tutorial.png")
    axes = plot_prediction(model, model.explain(X_test.iloc[[0]]))
    write(axes.figure, "prediction.png")


if __name__ == "__main__":
    main()
