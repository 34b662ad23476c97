"""Python values survive their JSON form; what a program returns becomes plain data, whatever it is."""

import json
import math
from collections import Counter, OrderedDict, deque, namedtuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.values import decode, encode, encode_result

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
hashables = st.recursive(
    scalars, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5
)
values = st.recursive(
    hashables | st.complex_numbers(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.sets(hashables, max_size=4)
        | st.dictionaries(hashables | st.text("$a", max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(values)
def test_a_value_survives_its_json_form(value: Any) -> None:
    text = json.dumps(encode(value))
    assert decode(json.loads(text)) == value
    assert json.dumps(encode(decode(json.loads(text)))) == text  # so do the types, which == does not see


@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, [10**5000], [-(10**9999)], int, ValueError, "\ud800", {"$tuple": [1]}]
)
def test_an_awkward_value_survives_its_json_form(value: Any) -> None:
    assert decode(json.loads(json.dumps(encode(value)))) == value


def test_nan_survives_its_json_form() -> None:
    assert math.isnan(decode(json.loads(json.dumps(encode(math.nan)))))


def test_plain_json_stands_for_itself() -> None:
    tree = {"a": [1, 2.5, "x", None, True, {"b": {}}]}
    assert encode(tree) == tree


@pytest.mark.parametrize("value", [object(), deque([1]), Counter("aa"), [lambda: 0], {"a": range(3)}])
def test_what_is_not_plain_data_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="not plain data"):
        encode(value)


def test_a_result_is_read_by_its_built_in_base() -> None:
    class Liar(int):
        def __add__(self, other: Any) -> Any:
            return 42

        def __eq__(self, other: Any) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    point = namedtuple("point", "x y")(1, 2)
    returned = [
        Liar(3),
        point,
        Counter("aab"),
        OrderedDict(z=1),
        deque([1]),
        (x for x in "ab"),
        {1: 2}.keys(),
        range(2),
    ]
    wanted = [3, {"$tuple": [1, 2]}, {"a": 2, "b": 1}, {"z": 1}, [1], ["a", "b"], [1], [0, 1]]
    assert encode_result(returned) == wanted


def test_an_object_becomes_one_that_equals_nothing() -> None:
    class Everything:
        def __eq__(self, other: object) -> bool:
            return True

    assert encode_result([Everything()]) == [{"$object": "Everything"}]
    with pytest.raises(ValueError, match="not a tagged value"):
        decode({"$object": "Everything"})


def test_a_value_that_contains_itself_ends() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert "$object" in json.dumps(encode_result(endless))
    with pytest.raises(TypeError, match="nested"):
        encode(endless)


@pytest.mark.parametrize("tree", [{"$no": 1}, {"$set": [[1]]}, {"$dict": 3}, {"$type": "print"}, {"$complex": [1]}])
def test_a_malformed_tag_is_an_error(tree: Any) -> None:
    with pytest.raises((ValueError, IndexError)):
        decode(tree)
