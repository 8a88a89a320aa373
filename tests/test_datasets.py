"""Generated structures: the truth is what it says, and only its node can tell."""

from __future__ import annotations

import numpy as np
import pytest

from hikernel.datasets import make_clouds, make_molecules, make_motifs
from hikernel.graphs.pyramid import PyramidMatch
from hikernel.graphs.substring_index import SubstringIndex
from hikernel.graphs.weisfeiler_lehman import WeisfeilerLehman


def explained(grams, new_grams, y, y_new):
    """Share of the variance that kernel ridge explains on new rows, for every kernel."""
    out = []
    for gram, new in zip(grams, new_grams, strict=True):
        mean = gram.mean(axis=0)
        centre = np.eye(len(y)) - 1.0 / len(y)
        ridge = 0.05 * np.trace(centre @ gram) / len(y) + 1e-9
        dual = np.linalg.solve(centre @ gram @ centre + ridge * np.eye(len(y)), y - y.mean())
        predicted = (new - mean) @ centre @ dual + y.mean()
        out.append(1.0 - np.mean((predicted - y_new) ** 2) / np.var(y_new))
    return out


def test_motifs_are_counted_and_stand_out():
    data = make_motifs(400, 60, noise=0.1, seed=0)
    index = SubstringIndex(data.X, 5)
    assert data.nodes == ("ACGT", "TTG")
    assert data.truth == "1 * count(ACGT) - 1 * count(TTG)"
    np.testing.assert_array_equal(data.signal, index.column("ACGT") - index.column("TTG"))
    assert 0.05 < np.std(data.y - data.signal) / np.std(data.signal) < 0.15
    centred = data.y - data.y.mean()
    # Among strings of their lengths the motifs stand out.
    found = index.explore(centred, 0.0, [1.0] * 5)
    for motif in data.nodes:
        alike = {w: score for w, score in found.violators.items() if len(w) == len(motif)}
        assert max(alike, key=alike.get) == motif


def test_clouds_speak_at_one_resolution():
    data = make_clouds(240, 2, noise=0.05, seed=1)
    train, test = slice(0, 120), slice(120, None)
    match = PyramidMatch(3).fit(data.X[train])
    np.testing.assert_array_equal([match.low_, match.high_], [[0.0, 0.0], [1.0, 1.0]])
    grams = match.grams(data.X[train], data.X[train])
    # Coarser levels are the same for all clouds.
    np.testing.assert_allclose(grams[:2], 1.0, rtol=1e-14)
    assert np.ptp(grams[2]) > 0.3
    new = match.grams(data.X[test], data.X[train])
    shares = explained(grams, new, data.y[train], data.y[test])
    assert max(shares[:2]) < 0.05
    assert shares[2] > 0.9


@pytest.mark.parametrize(("resolution", "dim"), [(1, 1), (1, 3), (3, 2)])
def test_the_share_of_even_cells(resolution, dim):
    data = make_clouds(5, resolution, dim=dim, noise=0.0, seed=2)
    for cloud, y in zip(data.X, data.y, strict=True):
        cells = np.minimum(np.floor(cloud * 2**resolution), 2**resolution - 1)
        assert y == pytest.approx(np.mean(cells.sum(axis=1) % 2 == 0))


def chains(molecule):
    labels, bonds = molecule
    around = [set() for _ in labels]
    for u, v in bonds:
        around[u].add(v)
        around[v].add(u)
    return sum(
        labels[a] + labels[b] + labels[c] + labels[d] == "NCCO" and d != b and a != c
        for a in range(len(labels))
        for b in around[a]
        for c in around[b]
        for d in around[c]
    )


def test_molecules_look_like_some():
    data = make_molecules(60, noise=0.0, seed=3)
    for molecule, y in zip(data.X, data.y, strict=True):
        labels, bonds = molecule
        assert chains(molecule) == y
        assert len({frozenset(bond) for bond in bonds}) == len(bonds) == len(labels)  # one ring
        degree = np.bincount(np.ravel(bonds), minlength=len(labels))
        assert all(d <= {"C": 4, "N": 1, "O": 1}[x] for x, d in zip(labels, degree, strict=True))
    assert set(data.y) >= {0.0, 1.0, 2.0}


def test_molecules_speak_at_depth_two():
    data = make_molecules(500, noise=0.05, seed=4)
    train, test = slice(0, 250), slice(250, None)
    wl = WeisfeilerLehman(2)
    grams = wl.grams(data.X[train], data.X[train])
    np.testing.assert_allclose(grams[0], 1.0, rtol=1e-14)
    new = wl.grams(data.X[test], data.X[train])
    shares = explained(grams, new, data.y[train], data.y[test])
    assert shares[0] < 0.05
    assert shares[1] < 0.35
    assert shares[2] > 0.8


def same(a, b):
    return all(np.array_equal(u, v) for u, v in zip(a, b, strict=True))


def test_seeds_decide():
    for make in (
        lambda seed: make_motifs(5, 20, seed=seed),
        lambda seed: make_clouds(5, 1, seed=seed),
        lambda seed: make_molecules(5, seed=seed),
    ):
        one, two, other = make(0), make(0), make(1)
        np.testing.assert_array_equal(one.y, two.y)
        assert same(map(np.ravel, map(_plain, one.X)), map(np.ravel, map(_plain, two.X)))
        assert not np.array_equal(one.y, other.y)


def _plain(x):
    return x if isinstance(x, (str, np.ndarray)) else x[1]


def test_bad_sizes_are_told_in_a_sentence():
    with pytest.raises(ValueError, match="1 to 3 letters"):
        make_motifs(5, 3, seed=0)
    with pytest.raises(ValueError, match="resolution"):
        make_clouds(5, 0, seed=0)
    with pytest.raises(ValueError, match="n_carbons"):
        make_molecules(5, n_carbons=5, seed=0)
