"""
How large is the pattern? Molecules
===================================

Molecule-like graphs and the depths of Weisfeiler and Lehman. At depth 0 an atom knows its own
kind, at depth 1 its neighbours, at depth 2 their neighbours. The response counts chains N-C-C-O.
An atom knows of such a chain once it sees its neighbours' neighbours: depth 2. Counts of atoms say
nothing, bonds a little.
"""

from hikernel import HKLRegressorCV
from hikernel.datasets import make_molecules
from hikernel.graphs import weisfeiler_lehman
from hikernel.plots import plot_hull

data = make_molecules(300, seed=0)
new = make_molecules(300, seed=1)
labels, bonds = data.X[0]
print(f"First molecule: {len(labels)} atoms ({''.join(labels)}), {len(bonds)} bonds")
print(f"Truth: {data.truth}")

# %%
# Six depths are offered. Those up to 2 are selected, and no deeper one.

model = HKLRegressorCV(graph=weisfeiler_lehman(5), rule="one_se").fit(data.X, data.y)
print(model.hull_[["term", "norm", "share"]].to_string(index=False))
plot_hull(model)

# %%
# What it is worth on new molecules, and what is proven.

print(f"R^2 on new molecules: {model.score(new.X, new.y):.3f}")
print(model.certificate_)
