"""A small table with names that shells, CSV files and terminals could stumble over."""

from __future__ import annotations

import numpy as np
import pandas as pd

SIZE, TOWN, ROOMS = "größe [m²]", "town; $(x) 'y'", "--rooms"
QUICK = {"n_alphas": 12, "cv": 2, "degree": 2}


def make_houses(n=60):
    rng = np.random.default_rng(0)
    houses = pd.DataFrame(
        {
            SIZE: rng.uniform(20, 200, n).round(1),
            TOWN: rng.choice(["Oslo", "Bergen, old", 'Tromsø "N"'], n),
            ROOMS: rng.integers(1, 7, n),
        }
    )
    price = 3 * houses[SIZE] + 100 * (houses[TOWN] == "Oslo") + rng.normal(0, 10, n)
    return houses.assign(price=price.round(1), sold=np.where(price > 350, "yes", "no"))
