"""Error bars after a refit: against statsmodels, against closed forms, and their coverage."""

import pickle

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.base import clone

import hikernel
from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV
from hikernel.graphs import KernelGraph
from hikernel.losses import Gamma, Huber, Poisson, Tweedie

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(240, 4))
NEW = RNG.uniform(-1, 1, size=(30, 4))
F = X[:, 0] + 2 * X[:, 1] * X[:, 2]
Y = F + 0.3 * RNG.standard_normal(240)
WEIGHTS = RNG.uniform(0.5, 2.0, size=240)
COUNTS = RNG.poisson(np.exp(1.0 + 0.5 * F))
LABELS = F + RNG.logistic(size=240) > 0
THREE = np.argmax(X[:, :3] * [2.0, 2.0, 0.0] + 0.5 * RNG.gumbel(size=(240, 3)), axis=1)


def unpenalised(y, loss="squared_error", weights=None, alpha=0.02):
    model = HKLRegressor(alpha, loss=loss, refit="unpenalised", certify="none")
    return model.fit(X, y, sample_weight=weights)


def columns(model, rows):
    """The columns of the model, the intercept last."""
    found = model._design.features(model.nodes_, model._design.read(rows))
    return np.column_stack([*(found[node] for node in model.nodes_), np.ones(len(rows))])


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_least_squares_has_the_bars_of_statsmodels(weights):
    model = unpenalised(Y, weights=weights)
    mean, std = model.predict(NEW, return_std=True)
    twin = sm.WLS(Y, columns(model, X), weights=1.0 if weights is None else weights).fit()
    found = twin.get_prediction(columns(model, NEW))
    np.testing.assert_allclose(mean, model.predict(NEW), rtol=0)
    np.testing.assert_allclose(mean, found.predicted_mean, rtol=1e-10)
    np.testing.assert_allclose(std, found.se_mean, rtol=1e-10)
    np.testing.assert_allclose(model.posterior_.covariance(), twin.cov_params(), rtol=1e-8)
    assert model.posterior_.edf == pytest.approx(len(twin.params))
    unit = 1.0 if weights is None else np.mean(weights)
    assert model.posterior_.dispersion == pytest.approx(twin.scale / unit)


def test_only_ratios_of_weights_matter():
    both = [unpenalised(Y, weights=c * WEIGHTS).predict(NEW, return_std=True)[1] for c in (1, 9)]
    np.testing.assert_allclose(*both, rtol=1e-9)


def test_counts_have_the_bars_of_a_quasi_poisson_model():
    model = unpenalised(COUNTS, "poisson")
    mean, std = model.predict(NEW, return_std=True)
    phi = model.posterior_.dispersion
    twin = sm.GLM(COUNTS, columns(model, X), family=sm.families.Poisson())
    found = twin.fit(scale=phi, tol=1e-12).get_prediction(columns(model, NEW))
    np.testing.assert_allclose(mean, found.predicted_mean, rtol=1e-7)
    np.testing.assert_allclose(std, found.se_mean, rtol=1e-7)
    assert phi == pytest.approx(twin.fit(scale="X2").scale, rel=0.1)


@pytest.mark.parametrize("offset", [None, np.linspace(-1.0, 1.0, len(X))], ids=["", "offset"])
@pytest.mark.parametrize("power", [1.5, 2.0])
def test_gamma_and_tweedie_have_the_bars_of_newton(power, offset):
    y = COUNTS + 0.5
    loss = Gamma() if power == 2.0 else Tweedie(power)
    model = HKLRegressor(0.05, loss=loss, refit="unpenalised", certify="none", max_order=2)
    mean, std = model.fit(X, y, offset=offset).predict(X, return_std=True, offset=offset)
    rows = columns(model, X)
    family = sm.families.Tweedie(sm.families.links.Log(), power)
    twin = sm.GLM(y, rows, family=family, offset=offset).fit(maxiter=200, tol=1e-12)
    np.testing.assert_allclose(mean, twin.mu, rtol=1e-6)
    observed = -twin.model.hessian(twin.params, scale=1.0, observed=True)
    squares = np.einsum("ij,ji->i", rows, np.linalg.solve(observed, rows.T))
    phi = model.posterior_.dispersion
    np.testing.assert_allclose(std, mean * np.sqrt(phi * squares), rtol=1e-5)
    if power == 2.0:
        assert phi == pytest.approx(twin.scale)


def test_two_classes_have_the_bars_of_a_logit_model():
    model = HKLClassifier(0.02, refit="unpenalised", certify="none").fit(X, LABELS)
    f, std = model.decision_function(NEW, return_std=True)
    np.testing.assert_array_equal(f, model.decision_function(NEW))
    twin = sm.Logit(LABELS.astype(float), columns(model, X)).fit(disp=0, tol=1e-12)
    rows = columns(model, NEW)
    expected = np.sqrt(np.einsum("ij,jk,ik->i", rows, twin.cov_params(), rows))
    np.testing.assert_allclose(std, expected, rtol=1e-7)


def test_three_classes_have_the_bars_of_a_multinomial_model():
    model = HKLClassifier(0.02, refit="unpenalised", certify="none").fit(X, THREE)
    _, std = model.decision_function(NEW, return_std=True)
    twin = sm.MNLogit(THREE, columns(model, X)).fit(disp=0, method="newton", tol=1e-12)
    rows = columns(model, NEW)
    along = np.einsum("nj,jkr->nkr", rows, model.posterior_.factor)
    np.testing.assert_allclose(np.linalg.norm(along, axis=2), std, rtol=1e-10)
    # statsmodels has the differences to the first class, and the first of them first.
    size = rows.shape[1]
    cov = np.asarray(twin.cov_params())[:size, :size]
    expected = np.sqrt(np.einsum("ij,jk,ik->i", rows, cov, rows))
    np.testing.assert_allclose(
        np.linalg.norm(along[:, 1] - along[:, 0], axis=1), expected, rtol=1e-7
    )


@pytest.mark.parametrize("loss", ["squared_error", Huber(1.0), Poisson()], ids=str)
def test_a_penalty_is_a_prior(loss):
    y = COUNTS if isinstance(loss, Poisson) else Y
    model = HKLRegressor(0.05, loss=loss, refit="ridge", certify="none").fit(X, y)
    _, std = model.predict(NEW, return_std=True)
    hull, posterior = model._model, model.posterior_
    problem, fitted = refitted(model, y)
    rows, new = columns(model, X), columns(model, NEW)
    f = rows @ np.append(hull.coef, hull.intercept)
    f = (f - problem.center) / problem.scale
    curvature = problem.loss.curvature(problem.y, f)
    prior = np.append(fitted.mu / fitted.scales**2, 0.0)
    hessian = rows.T @ (curvature[:, None] * rows) / len(y) + np.diag(prior)
    edf = len(prior) - np.sum(prior * np.diag(np.linalg.inv(hessian)))
    gradient = problem.loss.gradient(problem.y, f)
    phi = problem.scale**2 * np.sum(gradient**2) / (len(y) - edf) / np.mean(curvature)
    cov = phi / len(y) * np.linalg.inv(hessian)
    expected = np.sqrt(np.einsum("ij,jk,ik->i", new, cov, new))
    if isinstance(loss, Poisson):
        expected = expected * model.predict(NEW)
    assert fitted.mu > 0
    assert posterior.edf == pytest.approx(edf)
    assert posterior.dispersion == pytest.approx(phi)
    np.testing.assert_allclose(std, expected, rtol=1e-6)


def refitted(model, y):
    """The training problem of a model and its refit, made again."""
    from hikernel.selection import TrainingProblem, refit

    source = model._source(X)
    problem = TrainingProblem.make(source, source.read(X), y * 1.0, np.ones(len(y)), model.loss_)
    return problem, refit(model.refit_, problem, model._selected)


def test_more_columns_than_rows_have_the_variance_of_the_prior():
    few, noise = slice(0, 14), np.random.default_rng(1).standard_normal(14)
    model = HKLRegressor(1e-3, refit="ridge", certify="none", max_order=2).fit(X[few], noise)
    posterior = model.posterior_
    assert len(posterior.factor) - 1 > 14 > posterior.edf
    assert np.linalg.matrix_rank(posterior.covariance()) == len(posterior.factor)
    model.set_params(alpha=1e-4).fit(X[few], Y[few])  # as many parameters as rows
    assert not hasattr(model, "posterior_")


def test_a_constant_has_the_bar_of_a_mean():
    model = HKLRegressor(1e6, refit="ridge", certify="none").fit(X, Y)
    assert model._model.n_terms == 0
    np.testing.assert_allclose(model.predict(NEW, return_std=True)[1], Y.std(ddof=1) / 240**0.5)
    model.fit(X, np.full(240, 3.0))
    np.testing.assert_array_equal(model.predict(NEW, return_std=True)[1], 0.0)
    assert list(model.effects_std(NEW)) == ["intercept"]


def test_rows_far_out_are_said():
    model = HKLRegressor(0.02, basis="polynomial", degree=2, refit="ridge", certify="none")
    with pytest.raises(ValueError, match="Row 1 of X lies so far outside"):
        model.fit(X, Y).effects_std([[0.0, 0.0, 0.0, 0.0], [1e200, 1e200, 1e200, 0.0]])


def test_effects_have_the_bars_of_their_columns():
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["town"] = RNG.choice(["Rome", "Oslo"], 240)
    model = HKLRegressor(0.02, refit="ridge", certify="none").fit(frame, Y)
    std, by_term = model.effects_std(frame[:20]), model.effects_std(frame[:20], by="term")
    assert list(std.columns) == list(model.effects(frame[:20]).columns)
    assert list(by_term.columns) == list(model.effects(frame[:20], by="term").columns)
    assert std.index.equals(frame[:20].index)
    rows, cov = columns(model, frame[:20]), model.posterior_.covariance()
    widths = [model._model.widths[i] for i in range(len(model.nodes_))]
    owner = np.repeat([" * ".join("abcd"[m] for m, _ in node) for node in model.nodes_], widths)
    for name in std.columns[1:]:
        mine = rows * np.append(owner == name, False)
        expected = np.sqrt(np.einsum("ij,jk,ik->i", mine, cov, mine))
        np.testing.assert_allclose(std[name], expected, rtol=1e-8)
    np.testing.assert_allclose(std["intercept"], np.sqrt(cov[-1, -1]))
    with pytest.raises(ValueError, match="by must be one of"):
        model.effects_std(frame, by="column")


def test_views_and_pictures_have_bars():
    pytest.importorskip("matplotlib")
    from hikernel.plots import plot_effect

    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["town"] = np.where(RNG.uniform(size=240) < 0.5, "Rome", "Oslo")
    y = Y + (frame["town"] == "Rome")
    model = HKLRegressor(0.02, refit="ridge", certify="none").fit(frame, y)
    views = {effect["name"]: effect["view"] for effect in model.summary()["effects"]}
    (axis,) = views["a"]["axes"]
    grid = pd.DataFrame({"a": axis["values"], **dict.fromkeys("bcd", 0.0), "town": "Rome"})
    np.testing.assert_allclose(views["a"]["std"][0], model.effects_std(grid)["a"], rtol=1e-8)
    assert views["b * c"]["std"] is None
    ax = plot_effect(model, "a")
    assert "95 % band" in [part.get_label() for part in ax.collections]
    ax = plot_effect(model, "town")
    assert "95 %" in [part.get_label() for part in ax.collections]
    plain = HKLRegressor(0.02, certify="none").fit(frame, y)
    assert all(effect["view"]["std"] is None for effect in plain.summary()["effects"])


@pytest.mark.parametrize("error_bars", [True, False])
def test_files_keep_bars_unless_asked_not_to(tmp_path, error_bars):
    model = HKLRegressor(0.02, refit="sparse", certify="none").fit(X, Y)
    model.save(tmp_path / "model.hik", error_bars=error_bars)
    again = hikernel.load(tmp_path / "model.hik")
    if error_bars:
        for one, other in zip(
            *(m.predict(NEW, return_std=True) for m in (model, again)), strict=True
        ):
            np.testing.assert_array_equal(one, other)
    else:
        np.testing.assert_array_equal(model.predict(NEW), again.predict(NEW))
        with pytest.raises(ValueError, match="its file was saved without them"):
            again.predict(NEW, return_std=True)


def test_copies_keep_bars_and_a_new_fit_has_its_own():
    model = HKLRegressor(0.02, refit="ridge", certify="none").fit(X, Y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(*(m.predict(NEW, return_std=True)[1] for m in (model, copy)))
    assert not hasattr(clone(model), "_posterior")
    model.set_params(refit=None).fit(X, Y)
    assert not hasattr(model, "posterior_")


def test_cross_validated_models_have_bars():
    alphas = [0.1, 0.03, 0.01]
    model = HKLRegressorCV(alphas=alphas, cv=3, certify="none", max_order=2, refit="variables")
    mean, std = model.fit(X, Y).predict(NEW, return_std=True)
    assert mean.shape == std.shape == (30,)
    assert 0.05 < model.posterior_.dispersion < 0.15
    far = model.predict(3.0 * NEW, return_std=True)[1]
    assert np.mean(far) > 3.0 * np.mean(std)


def test_graphs_of_features_have_bars_and_gram_matrices_have_none():
    features = {"a": [0], "b": [1], "c": [2], "bc": lambda X: X[:, [1]] * X[:, [2]]}
    graph = KernelGraph({"bc": ["b", "c"]}, features=features)
    model = HKLRegressor(0.02, graph=graph, refit="unpenalised").fit(X, Y)
    _, std = model.predict(NEW, return_std=True)
    twin = sm.OLS(Y, np.column_stack([X[:, :3], X[:, 1] * X[:, 2], np.ones(240)])).fit()
    rows = np.column_stack([NEW[:, :3], NEW[:, 1] * NEW[:, 2], np.ones(30)])
    np.testing.assert_allclose(std, twin.get_prediction(rows).se_mean, rtol=1e-9)
    parts = {"a": NEW[:, [0]], "b": NEW[:, [1]], "c": NEW[:, [2]], "bc": features["bc"](NEW)}
    blocks = {node: phi(X) if callable(phi) else X[:, phi] for node, phi in features.items()}
    stored = KernelGraph({"bc": ["b", "c"]}, features=blocks)
    model = HKLRegressor(0.02, graph=stored, refit="unpenalised").fit(np.arange(240), Y)
    np.testing.assert_allclose(model.predict(parts, return_std=True)[1], std, rtol=1e-9)
    grams = KernelGraph(grams={node: block @ block.T for node, block in blocks.items()})
    model = HKLRegressor(0.02, graph=grams, refit="ridge", certify="none").fit(np.arange(240), Y)
    with pytest.raises(ValueError, match="Gram matrices"):
        model.predict(np.arange(9), return_std=True)


@pytest.mark.parametrize(
    ("make", "y", "message"),
    [
        (lambda: HKLRegressor(0.02, certify="none"), Y, "This model has no refit"),
        (lambda: HKLRegressor(0.02, loss="quantile", certify="none"), Y, "no likelihood"),
        (
            lambda: HKLClassifier(0.02, loss="squared_hinge", refit="ridge", certify="none"),
            LABELS,
            "no likelihood",
        ),
    ],
)
def test_models_without_bars_say_why(make, y, message):
    model = make().fit(X, y)
    ask = model.predict if hasattr(model, "predict_interval") else model.decision_function
    with pytest.raises(ValueError, match=message):
        ask(NEW, return_std=True)
    with pytest.raises(ValueError, match=r"bootstrap\(\) has error bars for any model"):
        model.effects_std(NEW)
    with pytest.raises(AttributeError, match=message):
        model.posterior_  # noqa: B018


def test_return_std_is_a_flag_and_no_offset():
    model = unpenalised(Y)
    with pytest.raises(ValueError, match="return_std must be True or False, got array"):
        model.predict(NEW, np.zeros(len(NEW)))
    labels = HKLClassifier(0.1, certify="none").fit(X, Y > 0)
    with pytest.raises(ValueError, match="return_std must be True or False"):
        labels.decision_function(NEW, np.zeros(len(NEW)))
    assert len(model.predict(NEW, np.True_)) == 2
