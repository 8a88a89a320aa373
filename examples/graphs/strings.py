"""
Which motif drives the response? Strings
========================================

DNA-like strings and the graph of all their substrings. The response counts two motifs, GATTACA (+)
and TTG (-). The graph has all 87,380 strings of up to 8 letters over A, C, G and T; a string
enters only with its own substrings.
"""

from hikernel import HKLRegressorCV
from hikernel.datasets import make_motifs
from hikernel.graphs import SubstringGraph
from hikernel.plots import plot_hull

data = make_motifs(500, 100, {"GATTACA": 1.0, "TTG": -0.5}, noise=0.3, seed=0)
new = make_motifs(500, 100, {"GATTACA": 1.0, "TTG": -0.5}, noise=0.3, seed=1)
print(f"First string: {data.X[0][:60]}...")
print(f"Truth: {data.truth}")

# %%
# Nothing is said about motifs, only how long they may be. A refit gives the selected strings their
# size back, which the selection has shrunk.

model = HKLRegressorCV(graph=SubstringGraph(8, weight_base=1.0), refit="ridge")
model.fit(data.X, data.y)
print(model.terms_[["term", "norm", "share"]].head(5).to_string(index=False))

# %%
# The hull as a diagram: what builds on what. The sizes are those before the refit, where what a
# long string does is spread over the strings that it builds on.

plot_hull(model)

# %%
# What it is worth on new strings, and what is proven: a branch and bound over the strings that
# occur proves the optimum over all of them.

print(f"R^2 on new strings: {model.score(new.X, new.y):.3f}")
print(model.certificate_)
