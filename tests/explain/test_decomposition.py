"""The functional ANOVA against brute force over the full product of the marginals."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from explain.cases import BASES, BUMPS, fitted, make_model
from oracles.designs import design_of

import hikernel.explain.decomposition as anova_module
import hikernel.explain.marginal as marginal_module
from hikernel.bases import OrthonormalPolynomial, Polynomial
from hikernel.explain import functional_anova

every_basis = pytest.mark.parametrize("bases", BASES.values(), ids=BASES.keys())
SETS = [u for order in range(4) for u in itertools.combinations(range(3), order)]


def product_grid(X, weights):
    """All combinations of the values of the columns, shape (N, 3), and their distributions."""
    values, marginals = [], []
    for x in X.T:
        distinct, inverse = np.unique(x[weights > 0], return_inverse=True)
        mass = np.bincount(inverse, weights[weights > 0])
        values.append(distinct)
        marginals.append(mass / mass.sum())
    return np.array(list(itertools.product(*values))), marginals


def average_out(f, marginals, kept):
    """E[f | x_kept] on the grid, of the shape of f."""
    for m, marginal in enumerate(marginals):
        if m not in kept:
            f = np.broadcast_to(np.expand_dims(np.tensordot(marginal, f, (0, m)), m), f.shape)
    return f


def brute_force(f, marginals):
    """f_u = sum over w in u of (-1)^|u - w| E[f | x_w], by enumeration."""
    return {
        u: sum(
            (-1) ** (len(u) - len(w)) * average_out(f, marginals, w)
            for w in SETS
            if set(w) <= set(u)
        )
        for u in SETS
    }


def by_set(anova, X):
    """The effects by set of variables, as arrays."""
    frame = anova.effects(X)
    names = [tuple(anova.names.index(name) for name in u) for u in anova.frame()["variables"]]
    return dict(zip(names, frame.to_numpy().T[1:], strict=True))


def mean(values, marginals):
    return float(np.einsum("abc,a,b,c->", values, *marginals))


@every_basis
@pytest.mark.parametrize("seed", [0, 1])
def test_against_enumeration(bases, seed):
    X, weights, design, model = fitted(bases, seed)
    points, marginals = product_grid(X, weights)
    shape = [len(marginal) for marginal in marginals]
    f = model.predict(design, points).reshape(shape)
    expected = brute_force(f, marginals)
    anova = functional_anova(model, design, X, weights)
    size = np.abs(f).max()

    effects = by_set(anova, points)
    np.testing.assert_allclose(anova.mean, expected[()][0, 0, 0], atol=1e-10 * size)
    for u in SETS[1:]:
        ours = effects.get(u, np.zeros(len(points))).reshape(shape)
        np.testing.assert_allclose(ours, expected[u], rtol=0, atol=1e-10 * size)
        variance = dict(zip(anova.sets, anova.variances, strict=True)).get(u, 0.0)
        np.testing.assert_allclose(
            variance, mean(expected[u] ** 2, marginals), rtol=1e-9, atol=1e-12 * size**2
        )
    total = mean(f**2, marginals) - mean(f, marginals) ** 2
    np.testing.assert_allclose(anova.variances.sum(), total, rtol=1e-9)


@every_basis
def test_effects_sum_to_f_have_mean_zero_and_are_orthogonal(bases):
    X, weights, design, model = fitted(bases)
    points, marginals = product_grid(X, weights)
    shape = [len(marginal) for marginal in marginals]
    anova = functional_anova(model, design, X, weights)
    f = model.predict(design, points)
    size = np.abs(f).max()
    np.testing.assert_allclose(anova.effects(points).sum(axis=1), f, atol=1e-11 * size)
    sets = {u: effect.reshape(shape) for u, effect in by_set(anova, points).items()}
    grids = list(sets.values())
    for u, effect in sets.items():
        for m in u:
            np.testing.assert_allclose(
                np.tensordot(marginals[m], effect, (0, m)), 0.0, atol=1e-11 * size
            )
    for left, right in itertools.combinations(grids, 2):
        assert abs(mean(left * right, marginals)) < 1e-11 * size**2


@every_basis
def test_shares(bases):
    X, weights, design, model = fitted(bases)
    anova = functional_anova(model, design, X, weights)
    shares = anova.shares()
    np.testing.assert_allclose(shares.sum(), 1.0)
    assert np.all(shares >= 0.0)
    for m in range(3):
        expected = sum(s for u, s in zip(anova.sets, shares, strict=True) if m in u)
        np.testing.assert_allclose(anova.total_shares()[m], expected)
    frame = anova.frame()
    assert list(frame.columns) == ["effect", "variables", "order", "variance", "share"]
    assert frame["effect"].tolist() == [" * ".join(u) for u in frame["variables"]]
    assert frame["share"].is_monotonic_decreasing
    variables = anova.variables_frame()
    assert np.all(variables["main_share"] <= variables["total_share"] + 1e-15)


def test_several_outputs_are_models_of_their_own():
    X, weights, design, model = fitted(BASES["mixed"], n_outputs=3)
    together = functional_anova(model, design, X, weights)
    assert together.mean.shape == (3,)
    effects = together.effects(X)
    names = ["mean", *together.frame()["effect"]]
    assert effects.columns.tolist() == [(k, name) for k in range(3) for name in names]
    for k in range(3):
        single = make_model(design, model.nodes)
        single.coef[:] = model.coef[:, k]
        single.norms[:] = model.norms
        alone = functional_anova(single, design, X, weights)
        np.testing.assert_allclose(together.variances[:, k], alone.variances)
        np.testing.assert_allclose(together.shares(k), alone.shares())
        single = alone.effects(X)
        np.testing.assert_allclose(effects[k]["mean"], together.mean[k])
        for name in names[1:]:  # the order of a single output may be another
            np.testing.assert_allclose(effects[k][name], single[name])
    summed = together.variances.sum(axis=1)
    np.testing.assert_allclose(together.shares(), summed / summed.sum())
    np.testing.assert_allclose(together.frame()["variance"].sum(), summed.sum())


def test_orthonormal_terms_count_for_their_own_set():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    design = design_of(X, [OrthonormalPolynomial(4)] * 4)
    model = make_model(design, [((0, 2), (1, 3)), ((0, 1),), ((0, 4), (1, 1))])
    anova = functional_anova(model, design, X)
    assert anova.sets == [(0,), (0, 1)]
    squares = model.coef**2
    np.testing.assert_allclose(anova.variances, [squares[1], squares[0] + squares[2]], rtol=1e-10)


def test_powers_spread_over_subsets():
    X = np.random.default_rng(0).normal(size=(400, 2))
    design = design_of(X, [Polynomial(2)] * 2)
    model = make_model(design, [((0, 2), (1, 2))])
    assert functional_anova(model, design, X).sets == [(0,), (1,), (0, 1)]


def test_weights_equal_repeated_rows():
    X, weights, design, model = fitted(BASES["mixed"])
    weighted = functional_anova(model, design, X, weights)
    repeated = functional_anova(model, design, np.repeat(X, weights.astype(int), axis=0))
    np.testing.assert_allclose(weighted.variances, repeated.variances, rtol=1e-12)
    np.testing.assert_allclose(weighted.mean, repeated.mean)


def test_chunks_make_no_difference(monkeypatch):
    X, weights, design, model = fitted(BASES["mixed"])
    whole = functional_anova(model, design, X, weights)
    effects = whole.effects(X)
    monkeypatch.setattr(anova_module, "_CHUNK_NUMBERS", 20)
    monkeypatch.setattr(marginal_module, "_CHUNK_NUMBERS", 20)
    parts = functional_anova(model, design, X, weights)
    np.testing.assert_allclose(parts.variances, whole.variances, rtol=1e-11)
    np.testing.assert_allclose(parts.effects(X), effects, rtol=1e-10, atol=1e-12)


def test_chosen_sets():
    X, weights, design, model = fitted(BASES["polynomial"])
    anova = functional_anova(model, design, X, weights)
    chosen = anova.effects(X, [(0, 1), (2,), ()])
    assert chosen.columns.tolist() == ["mean", "x0 * x1", "x2", ""]
    every = anova.effects(X)
    for name in chosen.columns[:3]:
        np.testing.assert_array_equal(chosen[name], every[name])
    assert not np.any(chosen[""])


def test_many_variables_are_no_burden():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 400))
    design = design_of(X, [Polynomial(2)] * 400)
    pairs = itertools.pairwise(range(300))
    model = make_model(design, [((a, 2), (b, 1)) for a, b in pairs])
    anova = functional_anova(model, design, X)
    assert len(anova.sets) <= 300 + 299
    f = model.predict(design, X)
    np.testing.assert_allclose(anova.effects(X).sum(axis=1), f, rtol=0, atol=1e-9)


def test_constant_models_have_no_shares():
    X, weights, design, _ = fitted(BASES["orthonormal"])
    for outputs in (None, 2):
        model = make_model(design, [()], n_outputs=outputs)
        anova = functional_anova(model, design, X, weights)
        assert anova.sets == []
        np.testing.assert_allclose(anova.mean, model.predict(design, X)[0])
        assert anova.frame().empty
        assert not np.any(anova.total_shares())
        effects = anova.effects(X)
        assert len(effects.columns) == anova.mean.size
        np.testing.assert_allclose(
            effects.to_numpy(), np.tile(anova.mean, (len(X), 1)).reshape(effects.shape)
        )
        assert "0 effects" in str(anova)


@pytest.mark.parametrize("bases", BUMPS.values(), ids=BUMPS.keys())
def test_bumps_are_refused(bases):
    X, weights, design, model = fitted(bases)
    with pytest.raises(ValueError, match="constant_level=True"):
        functional_anova(model, design, X, weights)


@pytest.mark.parametrize(
    ("weights", "message"),
    [(np.ones(3), "shape"), (-np.ones(40), "zero or positive"), (np.zeros(40), "not all zero")],
)
def test_bad_weights(weights, message):
    X, _, design, model = fitted(BASES["orthonormal"])
    with pytest.raises(ValueError, match=message):
        functional_anova(model, design, X, weights)


def test_it_prints_as_a_short_table():
    X, weights, design, model = fitted(BASES["polynomial"], names=["a", "b", "mean"])
    anova = functional_anova(model, design, X, weights)
    lines = str(anova).splitlines()
    frame = anova.frame()
    assert str(anova) == repr(anova)
    assert lines[0] == f"Functional ANOVA: mean {float(anova.mean):.4g} and {len(frame)} effects"
    assert lines[1].split() == ["effect", "order", "share"]
    for line, (_, row) in zip(lines[2:], frame.iterrows(), strict=True):
        name, order, share = re.fullmatch(r"  (.*?) +(\d) +(\S+) %", line).groups()
        assert name == row["effect"]
        assert int(order) == row["order"]
        assert share == f"{100 * row['share']:.1f}" or share == "<0.1"
    # A column of the name of the first one is told from it.
    assert "'mean'" in frame["effect"].tolist()
    table = pd.DataFrame(X, columns=["a", "b", "mean"])
    assert anova.effects(table).columns.is_unique


def test_a_long_table_says_how_much_it_leaves_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 40))
    design = design_of(X, [OrthonormalPolynomial(1)] * 40)
    anova = functional_anova(make_model(design, [((m, 1),) for m in range(40)]), design, X)
    lines = str(anova).splitlines()
    assert len(lines) == 15
    left = anova.frame()["share"][12:].sum()
    assert lines[-1].split() == ["and", "28", "more", f"{100 * left:.1f}", "%"]


def test_effects_keep_the_index_and_the_names_of_outputs():
    X, weights, design, model = fitted(BASES["orthonormal"], n_outputs=2)
    anova = functional_anova(model, design, X, weights, outputs=["no", "yes"])
    frame = anova.effects(pd.DataFrame(X, index=np.arange(len(X)) + 7))
    assert frame.index.tolist() == (np.arange(len(X)) + 7).tolist()
    assert frame.columns.names == ["output", "effect"]
    for k, label in enumerate(["no", "yes"]):
        total = frame[label].sum(axis=1)
        np.testing.assert_allclose(total, model.predict(design, X)[:, k], atol=1e-10)
