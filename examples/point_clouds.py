"""How finely must one look? Point clouds and the pyramid of resolutions.

The response depends on which cells of a 4 x 4 grid the points lie in; every quarter of the square
holds as many points in every cloud, so that coarser looks see nothing at all.
"""

from hikernel import HKLRegressorCV
from hikernel.datasets import make_clouds
from hikernel.graphs import pyramid_match


def main() -> None:
    """Fit, and print the resolutions."""
    data = make_clouds(150, 2, seed=0)
    new = make_clouds(150, 2, seed=1)
    print(f"{len(data.X)} clouds, the first of {len(data.X[0])} points in the plane")
    print(f"Truth: {data.truth}\n")

    model = HKLRegressorCV(graph=pyramid_match(5), rule="one_se").fit(data.X, data.y)

    print(model.hull_[["term", "norm", "share"]].to_string(index=False))
    print(f"\nR^2 on new clouds: {model.score(new.X, new.y):.3f}")
    print(model.certificate_)


if __name__ == "__main__":
    main()
