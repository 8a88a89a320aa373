"""``--allow`` and ``--forbid``."""

from __future__ import annotations

import pytest

import hikernel
from hikernel.cli.interaction_groups import column_of, usable_groups


def test_groups_reach_the_model(folder, quick, run):
    words = ["fit", "houses.csv", "--target", "price", "--drop", "sold", "--out", "model.hik"]
    first, second = [n for n in hikernel_columns(folder) if n not in ("price", "sold")][:2]
    result = run(*words, "--allow", f"{first}, {second}", "--forbid", f"{first},*")
    assert result.exit_code != 0
    assert "forbids all its pairs" in result.stderr
    result = run(*words, "--forbid", f"{first},*")
    assert result.exit_code == 0, result.stderr
    model = hikernel.load("model.hik")
    assert model.interactions == {"forbid": [[first, "*"]]}
    assert "allowed kernels" in result.stdout
    result = run(*words, "--force", "--allow", first)
    assert f"--allow {first} is not a group of columns; name two or more" in result.stderr
    result = run(*words, "--force", "--forbid", f"{first},colour")
    assert "--forbid names 'colour', which is no column" in result.stderr
    result = run(*words, "--force", "--forbid", "price,*")
    assert "--target and --forbid both name the column 'price'" in result.stderr


def hikernel_columns(folder):
    return (folder / "houses.csv").read_text().splitlines()[0].split(",")


@pytest.mark.parametrize(
    ("allow", "forbid", "expected"),
    [
        ([], [], None),
        ([["a", "b", "gone"]], [], {"allow": [["a", "b"]]}),
        ([["a", "gone"]], [], "none"),
        ([["a", "*"]], [["a", "gone"]], {"allow": [["a", "*"]]}),
        ([], [["a", "gone"]], None),
        ([], [["a", "b"]], {"forbid": [["a", "b"]]}),
    ],
)
def test_columns_that_a_model_does_not_take(allow, forbid, expected):
    assert usable_groups(allow, forbid, ["a", "b"]) == expected


def test_parts_of_dates_are_named_too():
    columns = ["sold", "sold (once)", "age"]
    assert column_of("sold (year)", columns) == "sold"
    assert column_of("sold (once)", columns) == "sold (once)"
    assert column_of("sold (once) (year)", columns) == "sold (once)"
    assert column_of("solder", columns) is None
    allow, forbid = [["sold (year)", "age"]], [["bought (year)", "age"], ["sold (hour)", "*"]]
    assert usable_groups(allow, forbid, columns) == {"allow": allow, "forbid": forbid[1:]}
