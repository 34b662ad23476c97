"""Rewards of a user's own: found by place, and nothing they return is taken on trust."""

import pytest

from cobalt_data.engines.base import Completion
from cobalt_data.errors import InputError
from cobalt_train.reward import REWARDS
from cobalt_train.rewarding import Rewarder, load_reward

COMPLETION = Completion("no program here", "stop", 1, 3)


class Words:
    chat_template = ""

    def __call__(self, text, add_special_tokens):
        return {"input_ids": text.split()}


@pytest.fixture
def own(tmp_path):
    def write(body, name="own.py:reward"):
        (tmp_path / "own.py").write_text(body)
        return f"{tmp_path}/{name}"

    return write


def rewarded(name):
    return Rewarder(name, Words())("completion 3 of prompt abc", COMPLETION, None, 0.5, 0.25)


@pytest.mark.parametrize("name", REWARDS)
def test_a_reward_of_the_project_is_found_by_its_name(name):
    assert load_reward(name) is REWARDS[name]


def test_a_function_of_a_file_sees_the_record_of_a_completion(own):
    body = "def reward(given):\n    return given.pass_rate - given.prev_best_pass_rate + given.response_tokens"
    assert rewarded(own(body)) == 3.25


def test_a_file_may_define_dataclasses_and_a_reward_may_be_any_callable(own):
    body = """
from __future__ import annotations
from dataclasses import dataclass

@dataclass
class Scaled:
    factor: float
    def __call__(self, given):
        return self.factor * given.pass_rate

reward = Scaled(2.0)
"""
    assert rewarded(own(body)) == 1.0


def test_a_function_of_a_module_is_found_on_the_python_path(own, tmp_path, monkeypatch):
    own("def reward(given):\n    return 1")
    (tmp_path / "own.py").rename(tmp_path / "module_of_rewards.py")
    monkeypatch.syspath_prepend(tmp_path)
    assert rewarded("module_of_rewards:reward") == 1.0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("float('nan')", "it returned nan"),
        ("-float('inf')", "it returned -inf"),
        ("None", "it returned None"),
        ("[0.5]", r"it returned list '\[0.5\]'"),
        ("(0.5, 0.5)", r"it returned tuple '\(0.5, 0.5\)'"),
        ("'0.5'", "it returned str '0.5'"),
        ("1j", "it returned complex '1j'"),
        ("given.reward", "it raised AttributeError: 'RewardInput' object has no attribute 'reward'"),
        ("10**400", "it returned int '1000"),
        ("10**5000", "it returned a value of type int"),
        ("__import__('sys').exit(0)", "it raised SystemExit: 0"),
        ("1 / 0", "it raised ZeroDivisionError: division by zero"),
    ],
)
def test_what_is_no_finite_number_is_an_error_that_names_reward_and_completion(own, value, message):
    name = own(f"def reward(given):\n    return {value}")
    with pytest.raises(InputError, match=rf"reward .*own\.py:reward of completion 3 of prompt abc: {message}") as error:
        rewarded(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("own.py:rewrad", "def reward(given): return 1", "own.py has no function 'rewrad'"),
        ("own.py:reward", "reward = 1", "own.py has no function 'reward'"),
        ("own.py:reward", "def reward(given)", "own.py cannot be loaded .SyntaxError"),
        ("own.py:reward", "import sys; sys.exit('no')", "own.py cannot be loaded .SystemExit: no"),
        ("missing.py:reward", "", "missing.py is no file"),
    ],
)
def test_a_reward_that_cannot_be_found_is_named(own, name, body, message):
    with pytest.raises(InputError, match=message) as error:
        load_reward(own(body, name))
    assert "\n" not in str(error.value)


def test_a_module_that_is_not_there_is_named():
    with pytest.raises(InputError, match=r"no_such_module cannot be loaded .ModuleNotFoundError"):
        load_reward("no_such_module:reward")
