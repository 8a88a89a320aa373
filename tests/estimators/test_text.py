"""A fitted model as text: what it is, how good, its effects, what is proven; safe in notebooks."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from oracles.graph_cases import fitted as graph_model
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import hikernel
from hikernel import HKLClassifier, HKLClassifierCV, HKLRegressor, HKLRegressorCV
from hikernel.explain.model_text import certificate_words

QUICK = {"n_alphas": 6, "eps": 1e-3, "cv": 3, "certify": "none"}
quiet = pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest that was tried")


def table(n=200, names=("a", "b", "c", "d")):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (n, 4)), columns=list(names))
    y = X.iloc[:, 0] + 2 * X.iloc[:, 1] * X.iloc[:, 2] + 0.3 * rng.standard_normal(n)
    return X, y.rename("cost")


@pytest.fixture(scope="module")
def chosen():
    return HKLRegressorCV(**QUICK).fit(*table())


@pytest.mark.parametrize("cls", [HKLRegressor, HKLClassifier, HKLRegressorCV, HKLClassifierCV])
def test_before_the_fit_the_text_is_that_of_scikit_learn(cls):
    model = cls(tol=0.02)
    assert str(model) == repr(model) == f"{cls.__name__}(tol=0.02)"
    bundle = model._repr_mimebundle_()
    assert bundle["text/plain"] == repr(model)
    assert "sk-top-container" in bundle["text/html"]
    assert "sk-top-container" in model._repr_html_()


def test_after_the_fit_it_is_about_ten_lines(chosen):
    text = str(chosen)
    assert len(text.splitlines()) <= 12
    assert max(map(len, text.splitlines())) <= 96
    lines = text.splitlines()
    assert lines[0] == "HKLRegressorCV: regression of cost, 200 rows x 4 columns"
    assert lines[1].startswith("Score: explains ")
    effects = chosen.effects_
    lines = lines[next(i for i, line in enumerate(lines) if line.startswith("Effects")) :]
    assert lines[0].startswith(f"Effects: {len(effects)}, made of {len(chosen.terms_)} terms")
    first = effects.iloc[0]
    assert lines[1].split("  ")[1].strip() == first["effect"]
    assert lines[1].endswith(f"{100 * first['share']:.1f} %  {first['shape']}")
    assert "Certificate: nothing is proven" in text
    # What pipelines and searches print stays short.
    assert repr(chosen) == repr(clone(chosen)).strip()


def test_a_refit_changes_the_words():
    X, y = table()
    model = HKLRegressor(0.01).fit(X, y)
    assert "refit" not in str(model)
    assert "Certificate: it is proven that no other choice among 625 kernels has an" in str(model)
    model.set_params(refit="ridge").fit(X, y.to_numpy())
    assert "regression, 200 rows x 4 columns" in str(model)  # y has no name now
    assert "The refit (ridge) of the terms found has no proof." in " ".join(str(model).split())


def test_many_effects_are_counted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 9))
    for p, shown in ((6, 6), (9, 5)):
        y = X[:, :p] @ np.linspace(2.0, 0.5, p) + 0.1 * rng.standard_normal(300)
        model = HKLRegressor(1e-3, degree=1, max_order=1).fit(X[:, :p], y)
        lines = str(model).splitlines()
        assert sum(line.endswith("increasing") for line in lines) == shown
        rest = [line for line in lines if "more" in line and "than" not in line]
        if p == 6:
            assert rest == []
        else:
            left = model.effects_["share"][5:].sum()
            assert rest[0].split() == ["and", "4", "more", f"{100 * left:.1f}", "%"]
    constant = HKLRegressor(1e4, degree=1).fit(np.ones((50, 2)), np.arange(50.0))
    assert "Effects: none, the model is constant" in str(constant)


def explained(model):
    found = re.search(r"explains (\S+) % of the variance of y on held-out rows", str(model))
    return float(found[1]) / 100


@quiet
def test_the_share_that_is_explained_is_about_new_rows(chosen):
    X, y = table(4000)
    assert explained(chosen) == pytest.approx(chosen.score(X[200:], y[200:]), abs=0.05)
    nothing = HKLRegressorCV(**{**QUICK, "alphas": [1e6], "refit": None}).fit(*table())
    assert explained(nothing) == pytest.approx(0.0, abs=0.03)
    # The folds are those of cv_results_: 1 - loss / loss of the mean, with its error.
    row = int(np.argmax(chosen.cv_results_["mean_test_score"] == chosen.best_score_))
    folds = np.array([-chosen.cv_results_[f"split{k}_test_score"][row] for k in range(3)])
    constant = chosen.summary()["quality"]["constant"]
    error = 100 * folds.std(ddof=1) / np.sqrt(3) / constant
    said = f"explains {100 * (1 - folds.mean() / constant):.3g} % of the variance of y on held-out "
    assert f"{said}rows (3 folds, standard error {error:.3g} %)" in " ".join(str(chosen).split())


@pytest.mark.slow
@quiet
def test_other_scores_are_named():
    X, y = table()
    accuracy = HKLClassifierCV(scoring="accuracy", **QUICK).fit(X, y > 0)
    said = f"Score: accuracy {accuracy.best_score_:.4g} on held-out rows (3 folds,"
    assert said in str(accuracy)
    assert "a constant model" in str(accuracy)
    log_loss = HKLClassifierCV(**QUICK).fit(X, y > 0)
    assert f"mean log loss {-log_loss.best_score_:.4g}." in " ".join(str(log_loss).split())
    huber = HKLRegressorCV(loss="huber", **QUICK).fit(X, y)
    assert f"mean huber loss {-huber.best_score_:.4g}." in " ".join(str(huber).split())
    own = HKLRegressorCV(scoring=lambda model, X, y: model.score(X, y), **QUICK).fit(X, y)
    assert f"Score: score {own.best_score_:.4g} on held-out rows" in str(own)


def test_a_score_on_the_training_rows_is_said_to_be_one():
    X, y = table()
    model = HKLRegressor(0.01).fit(X, y)
    said = f"explains {100 * model.score(X, y):.3g} % of the variance of y on the training rows;"
    assert f"{said} there was no cross-validation." in " ".join(str(model).split())


def test_classes_are_named_and_quoted():
    X, y = table()
    two = HKLClassifier(0.01).fit(X, pd.Series(np.where(y > 0, "good", "bad"), name="Status"))
    assert str(two).startswith("HKLClassifier: classification of Status ('bad', 'good'), 200 rows")
    three = HKLClassifier(0.01).fit(X, np.digitize(y, [-0.5, 0.5]))
    assert str(three).startswith("HKLClassifier: classification (0, 1, 2), 200 rows x 4 columns")
    assert "by class" in str(three) or "increasing" in str(three)
    six = HKLClassifier(0.1, degree=1).fit(X, np.digitize(y, [-1, -0.5, 0, 0.5, 1]))
    assert "classification (6 classes), " in str(six)


def test_graphs_have_nodes_in_place_of_columns():
    model = graph_model("features")
    text = str(model)
    assert text.startswith("HKLRegressor: regression, 40 rows, a graph of 4 kernels\n")
    assert model.effects_["effect"][0] in text
    assert "Certificate: it is proven that" in text
    assert "hikernel-model" in model._repr_html_()


def test_models_from_files_say_the_same(chosen, tmp_path):
    chosen.save(tmp_path / "model.hik")
    again = hikernel.load(tmp_path / "model.hik")
    assert str(again) == str(chosen)
    chosen.save(tmp_path / "model.hik", dual_coef=False)
    assert str(hikernel.load(tmp_path / "model.hik")) == str(chosen)


class Tags(HTMLParser):
    """Collects the tags and the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


HOSTILE = ["<script>alert(1)</script>", "a&b", "'><img src=x onerror=alert(1)>", "line\nbreak"]


def test_nothing_from_data_becomes_markup():
    X, y = table(names=HOSTILE)
    y = pd.Series(np.where(y > 0, "<b>yes</b>", "no & </table>"), name="<i>target</i>")
    model = HKLClassifier(0.003).fit(X, y)
    assert {"script", "b", "img", "i"} & set(Tags("<script><b><img><i>").tags)  # the test can fail
    for page in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        tags = Tags(page)
        assert set(tags.tags) == {"div", "b", "table", "tr", "td"}
        assert tags.tags.count("b") == 4
        text = " ".join(tags.texts)
        assert "<script>alert(1)</script>" in text
        assert "'<b>yes</b>'" in text
        assert "<i>target</i>" in text
        assert "a&b" in text
    # As text, one line stays one line.
    lines = str(model).splitlines()
    assert len(lines) <= 12
    assert any("line\\nbreak" in line for line in lines)


def test_notebooks_show_text_where_scikit_learn_does(chosen):
    bundle = chosen._repr_mimebundle_()
    assert bundle["text/plain"] == str(chosen)
    assert bundle["text/html"].startswith('<div class="hikernel-model">')
    with config_context(display="text"):
        assert set(chosen._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(chosen, "_repr_html_")


def test_pipelines_print_as_before(chosen):
    X, y = table()
    pipeline = make_pipeline(FunctionTransformer(), HKLRegressor(0.01)).fit(X, y)
    assert "HKLRegressor(alpha=0.01)" in repr(pipeline)
    page = pipeline._repr_html_()
    assert "HKLRegressor" in page
    assert (
        "<script>alert"
        not in make_pipeline(HKLRegressor(0.01)).fit(table(names=HOSTILE)[0], y)._repr_html_()
    )


def test_long_names_leave_out_their_middle():
    X, y = table(names=["a" * 300, "b", "c", "d"])
    text = str(HKLRegressor(0.01).fit(X, y))
    assert max(map(len, text.splitlines())) <= 96
    assert f"{'a' * 28}...{'a' * 28}" in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "it is proven that no other choice among 1,000 kernels has an objective more than 1 "),
        (
            {"tol": 1e-3},
            "it is only proven that no other choice .* 1 % lower \\(asked for: 0.1 %\\)",
        ),
        ({"kind": "statistical", "confidence": 0.95}, "with 95 % confidence no other choice among"),
        ({"dual_bound": 0.2}, "next to nothing is proven; other choices among 1,000 kernels may"),
        ({"kind": "none"}, "nothing is proven, as other choices among 1,000 kernels were not"),
        ({"n_vertices": 10**30}, "among about 10\\^30 kernels"),
        (
            {"refit": "sparse"},
            "lower\\. The refit \\(sparse\\) of the terms found has no proof\\.$",
        ),
    ],
)
def test_certificates_in_words(chosen, change, words):
    base = replace(
        chosen.certificate_,
        objective=1.0,
        dual_bound=0.99,
        tol=0.0101,
        kind="exact",
        n_vertices=1000,
        refit=None,
    )
    assert re.search(words, certificate_words(replace(base, **change)))
