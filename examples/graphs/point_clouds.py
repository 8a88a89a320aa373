"""
How finely must one look? Point clouds
======================================

A chain of resolutions: cells of side 1, 1/2, 1/4 and so on. The response depends on which cells of
a 4 x 4 grid the points lie in. Every quarter of the square holds as many points in every cloud, so
that coarser looks see nothing at all.
"""

from hikernel import HKLRegressorCV
from hikernel.datasets import make_clouds
from hikernel.graphs import pyramid_match
from hikernel.plots import plot_hull

data = make_clouds(150, 2, seed=0)
new = make_clouds(150, 2, seed=1)
print(f"{len(data.X)} clouds, the first of {len(data.X[0])} points in the plane")
print(f"Truth: {data.truth}")

# %%
# Six resolutions are offered. Level 2, the cells of side 1/4, is selected with the coarser ones
# that it builds on.

model = HKLRegressorCV(graph=pyramid_match(5), rule="one_se").fit(data.X, data.y)
print(model.hull_[["term", "norm", "share"]].to_string(index=False))
plot_hull(model)

# %%
# What it is worth on new clouds, and what is proven.

print(f"R^2 on new clouds: {model.score(new.X, new.y):.3f}")
print(model.certificate_)
