"""How large is the pattern? Molecule-like graphs and Weisfeiler-Lehman depths.

The response counts chains N-C-C-O. An atom knows of such a chain once it sees its neighbours'
neighbours: depth 2. Counts of atoms (depth 0) say nothing, bonds (depth 1) a little.
"""

from hikernel import HKLRegressorCV
from hikernel.datasets import make_molecules
from hikernel.graphs import weisfeiler_lehman


def main() -> None:
    """Fit, and print the depths."""
    data = make_molecules(300, seed=0)
    new = make_molecules(300, seed=1)
    labels, bonds = data.X[0]
    print(f"First molecule: {len(labels)} atoms ({''.join(labels)}), {len(bonds)} bonds")
    print(f"Truth: {data.truth}\n")

    model = HKLRegressorCV(graph=weisfeiler_lehman(5), rule="one_se").fit(data.X, data.y)

    print(model.hull_[["term", "norm", "share"]].to_string(index=False))
    print(f"\nR^2 on new molecules: {model.score(new.X, new.y):.3f}")
    print(model.certificate_)


if __name__ == "__main__":
    main()
