"""Figures of a version, against figures counted by hand."""

from dataclasses import replace

import pytest
from builders import count_words, make_dataset, make_problem, make_trajectory, make_turn, rated

from cobalt_data.commit import commit
from cobalt_data.cut import CutConfig, cut
from cobalt_data.stats import stats


def test_a_version_of_problems_alone_has_rows_sides_and_difficulties(tmp_path):
    problems = [
        make_problem("a", difficulty="easy"),
        make_problem("b", split="test"),
        make_problem("c", difficulty="easy"),
    ]
    version = make_dataset(tmp_path / "d", problems)
    found = stats(version)
    assert found.version == version.id
    assert found.rows == {"problems": {"test": 1, "train": 2}}
    assert found.difficulty == {"easy": 2, "unknown": 1}
    assert found.trajectories is None and found.prompts is None


def test_turns_are_counted_one_by_one(tmp_path):
    problems = [make_problem("a"), make_problem("b")]
    no_code = make_turn(program=None, pass_rate=0.0)
    trajectories = [
        rated(problems[0], [0.5, 1.0], 0),
        rated(problems[0], [0.25, 0.5, 1.0], 1),
        make_trajectory(problems[1], [no_code, make_turn(public=None, pass_rate=0.0)]),
    ]
    found = stats(make_dataset(tmp_path / "d", problems, trajectories)).trajectories
    assert [(turn.turn, turn.programs) for turn in found.turns] == [(0, 3), (1, 3), (2, 1)]
    assert [turn.pass_at_1 for turn in found.turns] == [0.0, pytest.approx(1 / 3), 1.0]
    assert found.turns[0].pass_rate == pytest.approx(0.25)
    assert found.turns[0].without_program == pytest.approx(1 / 3)
    assert found.turns[1].passes_public == 0.5  # of the two that have public tests
    assert (found.turns[0].prompt_tokens, found.turns[0].completion_tokens) == (10, 5)
    assert found.solved == pytest.approx(2 / 3) and found.problems_solved == 0.5


def test_a_turn_without_hidden_tests_has_no_pass_at_1(tmp_path):
    turn = replace(make_turn(), hidden_pass_rate=None)
    found = stats(make_dataset(tmp_path / "d", [make_problem()], [make_trajectory(make_problem(), [turn])]))
    assert found.trajectories.turns[0].pass_at_1 is None


def test_duplicates_and_prompts_are_counted(tmp_path):
    problems = [make_problem("a"), make_problem("b")]
    programs = ["print(1)", "print(2)"]
    trajectories = [rated(problem, [0.0, 1.0], index, programs=programs) for problem in problems for index in range(2)]
    version = make_dataset(tmp_path / "d", problems, trajectories)
    version = commit(cut(version, CutConfig("words"), count_words), [version])
    found = stats(version)
    assert found.trajectories.duplicates == 0.5
    assert found.prompts.by_turn == {0: 2, 1: 4, 2: 4}
    assert found.prompts.duplicates == pytest.approx(0.0)
    assert found.prompts.perturbed == 0.0
    tokens = [row["prompt_tokens"] for row in version.rows("prompts")]
    assert found.prompts.most_tokens == max(tokens) and found.prompts.mean_tokens == pytest.approx(sum(tokens) / 10)
