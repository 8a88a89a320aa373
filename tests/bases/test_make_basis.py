"""The registry: names, defaults, helpful refusals."""

import pytest

from hikernel.bases import (
    BASES,
    Basis,
    Gaussian,
    Polynomial,
    Spline,
    make_basis,
)


@pytest.mark.parametrize("name", BASES)
def test_a_name_makes_the_default_basis_of_its_class(name):
    basis = make_basis(name)
    assert type(basis) is BASES[name]
    # By name, an absent variable is absent; the classes keep the paper's bump at level 0.
    bump = name in ("gaussian", "kernel_pca")
    assert basis == (BASES[name](constant_level=True) if bump else BASES[name]())
    assert basis.name == name


@pytest.mark.parametrize("name", BASES)
def test_degree_reaches_the_classes_that_have_one(name):
    basis = make_basis(name, degree=7)
    assert getattr(basis, "degree", None) == (
        None if name in {"anova", "spline", "categorical"} else 7
    )


def test_default_degrees():
    assert [make_basis(name).degree for name in ("polynomial", "hermite", "kernel_pca")] == [4] * 3
    assert make_basis("gaussian").degree == 8


def test_an_object_is_returned_as_it_is():
    basis = Polynomial(2)
    assert make_basis(basis, degree=9) is basis


def test_a_basis_of_ones_own_is_accepted():
    class Mine(Basis):
        name = "mine"

        def _fit(self, column, scaler):
            raise NotImplementedError

    basis = Mine()
    assert make_basis(basis) is basis


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("polinomial", "Did you mean 'polynomial'"),
        ("Spline", "Did you mean 'spline'"),
        ("ashin", "Did you mean 'asinh'"),
        (
            "fourier",
            rf"choose one of {', '.join(sorted(BASES))}, or auto\.$",
        ),
        ("auto", "'auto' is not known"),
        ("", "choose one of"),
        (4, "a name or a basis object"),
        (None, "a name or a basis object"),
        (Gaussian, "a name or a basis object"),
        (["polynomial"], "a name or a basis object"),
    ],
)
def test_anything_else_is_refused_with_the_known_names(spec, message):
    with pytest.raises(ValueError, match=message):
        make_basis(spec)


@pytest.mark.parametrize("degree", [0, 2.5, True])
def test_a_bad_degree_is_refused(degree):
    with pytest.raises(ValueError, match="degree must be an integer >= 1"):
        make_basis("polynomial", degree=degree)
    assert make_basis("spline", degree=degree) == Spline()
