"""Applying a reward: one of `cobalt_train.reward` or a user's own function, and nothing that it returns is taken on trust.

A user's own is named by where it is: `rewards.py:function`, or `module:function` of an installed module. It is called with a
`RewardInput` and returns one finite number. What it raises or returns instead stops the run with a line that names the
completion; the step is not learned from, and the last checkpoint stays as it is.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import numbers
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from cobalt_data.engines.base import Completion
from cobalt_data.errors import InputError
from cobalt_data.programs import THINK_END
from cobalt_train.reward import REWARDS, Reward, RewardInput, count_parts


def load_reward(name: str) -> Reward:
    """Finds a reward by name or by place. Raises InputError where there is none, or its code cannot be loaded."""
    if name in REWARDS:
        return REWARDS[name]
    place, _, function = name.rpartition(":")
    try:
        reward = getattr(_module(place), function, None)
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # whatever a user's module does when it is imported
        raise InputError(f"reward {name!r}: {place} cannot be loaded ({_brief(error)})") from None
    if not callable(reward):
        raise InputError(f"reward {name!r}: {place} has no function {function!r}")
    return reward


class Rewarder:
    """Gives completions of one policy their rewards; token counts are in the policy's own tokens."""

    def __init__(self, name: str, tokenizer: Any) -> None:
        self._name, self._reward = name, load_reward(name)
        self._thinks = THINK_END in (tokenizer.chat_template or "")
        self._tokenizer = tokenizer

    def __call__(
        self, row: str, completion: Completion, program: str | None, pass_rate: float, prev_best: float
    ) -> float:
        """`row` names the completion in a message. Raises InputError for a reward that is not one finite number."""
        given = RewardInput(
            completion=completion.text,
            program=program,
            pass_rate=pass_rate,
            prev_best_pass_rate=prev_best,
            finish_reason=completion.finish_reason,
            thinks=self._thinks,
            **count_parts(completion.text, program, self._count_tokens),
        )
        try:
            value: Any = self._reward(given)
        except (Exception, SystemExit) as error:  # a user's own code
            raise InputError(f"reward {self._name} of {row}: it raised {_brief(error)}") from error
        number = _finite(value)
        if number is None:
            raise InputError(
                f"reward {self._name} of {row}: it returned {_shown(value)}; a reward is one finite number"
            )
        return number

    def _count_tokens(self, text: str) -> int:
        return len(self._tokenizer(text, add_special_tokens=False)["input_ids"])


def _module(place: str) -> ModuleType:
    if not place.endswith(".py"):
        return importlib.import_module(place)
    file = Path(place)
    if not file.is_file():
        raise InputError(f"reward: {place} is no file")
    spec = importlib.util.spec_from_file_location(f"reward_file_{file.stem}", file)
    assert spec is not None and spec.loader is not None  # for a name that ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look up their own module
    spec.loader.exec_module(module)
    return module


def _finite(value: Any) -> float | None:
    """The value as a float; None where it is no number, or not a finite one."""
    try:
        number = float(value) if isinstance(value, numbers.Real) else math.nan
    except OverflowError:  # of an integer beyond all floats
        return None
    return number if math.isfinite(number) else None


def _shown(value: Any) -> str:
    if value is None or isinstance(value, float):
        return str(value)
    try:
        return f"{type(value).__name__} {str(value)[:60]!r}"
    except Exception:  # a type of the user's own, or an integer with too many digits
        return f"a value of type {type(value).__name__}"


def _brief(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
