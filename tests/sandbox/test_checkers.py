"""The rules of comparing, one example and one counter-example each, and total on hostile input."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.checkers import outputs_match, trees_match, values_match

MATCHING_TEXTS = [
    ("tokens", "1 2\n3", "1\n2   3\n"),
    ("tokens", "1\r\n2\r\n", "1\n2\n"),
    ("tokens", "", " \n\t "),
    ("lines", "a b  \nc\n", "a b\nc"),
    ("lines", "a\r\nb\r\n", "a\nb\n\n\n"),
    ("exact", " a  b\n", "a  b"),
    ("float:1e-6", "0.333333333", "0.3333331"),
    ("float:1e-6", "1000000000.0", "1000000100.0"),
    ("float:1e-6", "x 2", "x 2.0000001"),
    ("float:0", "5", "5.0"),
    ("multiset", "3 1 2 2", "2\n2 1 3"),
]
DIFFERENT_TEXTS = [
    ("tokens", "YES", "yes"),
    ("tokens", "1 2 3", "3 2 1"),
    ("tokens", "1 2 3", "1 2"),
    ("tokens", "5", "5 debug"),
    ("tokens", "5", "5.0"),
    ("tokens", "7", "007"),
    ("tokens", "a b", "a\u00a0b"),
    ("lines", "a b", "a  b"),
    ("lines", "a\nb", "a\n\nb"),
    ("lines", " a", "a"),
    ("exact", "a\nb", "a \nb"),
    ("float:1e-6", "1000000007", "1000000008"),
    ("float:1e-6", "0.5", "nan"),
    ("float:1e-6", "0.5", "inf"),
    ("float:1e-6", "10.5", "1_0.5"),
    ("float:1e-6", "0", "0.00001"),
    ("float:1e-6", "1e999", "-1e999"),
    ("multiset", "1 1 2", "1 2 2"),
    ("multiset", "1", ""),
]


@pytest.mark.parametrize(("checker", "expected", "actual"), MATCHING_TEXTS)
def test_texts_match(checker: str, expected: str, actual: str) -> None:
    assert outputs_match(checker, expected, actual)


@pytest.mark.parametrize(("checker", "expected", "actual"), DIFFERENT_TEXTS)
def test_texts_differ(checker: str, expected: str, actual: str) -> None:
    assert not outputs_match(checker, expected, actual)


@pytest.mark.parametrize("checker", ["tokens", "lines", "exact", "float:1e-6", "multiset"])
def test_invalid_utf8_is_just_different(checker: str) -> None:
    assert not outputs_match(checker, "4", b"4\xff\n")


MATCHING_VALUES: list[tuple[str, Any, Any]] = [
    ("tokens", [1, (2, {3})], (1.0, [2, frozenset({3})])),
    ("tokens", {1: "a", "b": None}, {"b": None, 1: "a"}),
    ("tokens", math.nan, math.nan),
    ("tokens", {1, 2}, {2.0, 1.0}),
    ("tokens", [10**5000], [10**5000]),
    ("tokens", 1 + 2j, 1 + 2j),
    ("float:1e-6", [0.3, 0.6], [0.1 * 3, 0.6000001]),
    ("float:1e-6", {"a": {1.0, 2.0}}, {"a": {2.0000001, 1.0000001}}),
    ("float:1e-6", math.inf, math.inf),
    ("multiset", [1, 2, 2], [2, 1, 2]),
]
DIFFERENT_VALUES: list[tuple[str, Any, Any]] = [
    ("tokens", 1, True),
    ("tokens", [0], [False]),
    ("tokens", 0.3, 0.1 + 0.2),
    ("tokens", "1", 1),
    ("tokens", None, ""),
    ("tokens", [1, 2], {1, 2}),
    ("tokens", [1, 2], [2, 1]),
    ("tokens", {"a": 1}, {"a": 1, "b": 2}),
    ("tokens", b"a", "a"),
    ("tokens", [], {}),
    ("float:1e-6", 1000000007, 1000000008),
    ("float:1e-6", 0.5, math.nan),
    ("float:1e-6", [0.5], [0.5, 0.5]),
    ("float:1e-6", "0.5", "0.5000000001"),
    ("multiset", [1, 1, 2], [1, 2, 2]),
    ("multiset", [[1, 2]], [[2, 1]]),
]


@pytest.mark.parametrize(("checker", "expected", "actual"), MATCHING_VALUES)
def test_values_match(checker: str, expected: Any, actual: Any) -> None:
    assert values_match(expected, actual, checker)


@pytest.mark.parametrize(("checker", "expected", "actual"), DIFFERENT_VALUES)
def test_values_differ(checker: str, expected: Any, actual: Any) -> None:
    assert not values_match(expected, actual, checker)


json_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["$set", "$dict", "$int", "$float", "$complex", "$object", "$tuple", "a"]), inner
        )
    ),
    max_leaves=8,
)


@given(json_trees)
def test_no_forged_tree_breaks_the_comparison_or_equals_the_expected_value(tree: Any) -> None:
    assert not trees_match({"$set": ["only", "this"]}, tree, "float:1e-6")
    trees_match(tree, tree, "multiset")


def test_a_tree_nested_too_deep_is_just_different() -> None:
    tree: Any = 1
    for _ in range(5000):
        tree = [tree]
    assert not trees_match(1, tree, "tokens")
