"""What is left of a step's groups before anything is packed or counted in a denominator."""

import torch

from cobalt_data.engines.base import Completion
from cobalt_data.rows import Prompt
from cobalt_train.batch import make_lesson
from cobalt_train.rollout import Group, Row
from sandbox import Judge, Verdict

PROMPT = Prompt(None, "toy", 0, ({"role": "user", "content": "toy"},), (), Judge(), 0.0, None, 2, "train")


def group(name, *rewards):
    """Completions of as many tokens as their place, with these rewards."""
    rows = []
    for place, reward in enumerate(rewards, start=1):
        completion = Completion("", "stop", 2, place, (7,) * place, (-0.5,) * place)
        rows.append(Row(place, completion, None, None if reward is None else Verdict.PASSED, reward, reward))
    return Group(name, PROMPT, (1, 2), tuple(rows))


def test_dead_groups_and_rows_without_a_reward_are_left_out_and_counted():
    groups = [group("dead", 1.0, 1.0, None), group("alive", 0.0, None, 1.0), group("alone", None, None, 1.0)]
    lesson = make_lesson(groups, "mean")
    (batch,) = lesson.batches
    assert (batch.prompt_id, lesson.dead_groups, lesson.masked_rows) == ("alive", 2, 4)
    assert list(map(len, batch.completions)) == [1, 3] and batch.engine_logprobs.shape == (2, 3)
    torch.testing.assert_close(batch.advantages, torch.tensor([-0.5, 0.5]))
