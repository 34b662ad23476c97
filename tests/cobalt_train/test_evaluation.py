"""Pass@1 per turn: what counts, how uncertain it is, how two models compare."""

import json

import numpy as np
import pytest

from cobalt_data.engines.base import Completion, Sampling
from cobalt_data.errors import InputError
from cobalt_data.rows import Problem, Trajectory, Turn
from cobalt_data.templates import Template
from cobalt_train.evaluation import NO_HIDDEN_TESTS, Evaluation, bootstrap_interval, compare, count_passes, evaluate
from sandbox import Judge, Pool


def problem(problem_id, public=True):
    tests = tuple({"kind": "stdin", "public": is_public, "input": "", "output": ""} for is_public in (public, False))
    return Problem(problem_id, "s", "t", None, "s", "", tests, Judge(), (), {})


def trajectory(problem_id, *hidden_rates):
    turns = tuple(Turn("x", (), 0.0, rate, rate, "no", "stop", 1, 1) for rate in hidden_rates)
    chat = ({"role": "user", "content": "?"}, *(len(turns) * ({"role": "assistant", "content": "x"},)))
    return Trajectory(problem_id, 0, "m", "r", "e", {}, 0, None, chat, turns, "test")


def evaluation(passed, n=4, **changes):
    programs = {problem_id: [n] * len(counts) for problem_id, counts in passed.items()}
    turns = max(map(len, passed.values()), default=0)
    fields = {
        "model": "m",
        "model_revision": "r",
        "n": n,
        "turns": turns,
        "seed": 0,
        "template": "paper",
        "sampling": {},
    }
    return Evaluation(**{**fields, "passed": passed, "programs": programs, "left_out": {}, **changes})


def test_a_program_counts_if_it_passes_all_hidden_tests_and_later_turns_count_for_themselves():
    passed, programs = count_passes(
        [problem("a")], [trajectory("a", 0.9, 1.0, 0.0), trajectory("a", 1.0, 1.0, 1.0)], turns=3
    )
    assert passed == {"a": [1, 2, 1]} and programs == {"a": [2, 2, 2]}


def test_a_conversation_that_ended_early_counts_as_not_solved_in_the_turns_it_never_had():
    passed, programs = count_passes([problem("a")], [trajectory("a", 1.0)], turns=3)
    assert passed == {"a": [1, 0, 0]} and programs == {"a": [1, 1, 1]}


def test_problems_without_public_tests_stay_out_of_later_turns():
    _, programs = count_passes([problem("a", public=False)], [trajectory("a", 1.0)], turns=3)
    assert programs == {"a": [1, 0, 0]}


def test_scores_are_shares_of_programs():
    first, second = evaluation({"a": [4, 2], "b": [0, 2], "c": [2, 4]}).scores
    assert first.pass_at_1 == pytest.approx(6 / 12) and second.pass_at_1 == pytest.approx(8 / 12)
    assert first.low <= first.pass_at_1 <= first.high and (first.problems, first.programs) == (3, 12)


def test_a_turn_that_no_problem_has_is_left_out():
    scored = evaluation({"a": [1, 0]}, programs={"a": [4, 0]}).scores
    assert [score.turn for score in scored] == [0]


def test_the_interval_is_seeded_and_matches_the_normal_approximation():
    random = np.random.default_rng(1)
    passed = random.binomial(4, 0.3, size=(400, 1)).astype(float)
    programs = np.full((400, 1), 4.0)
    low, high = bootstrap_interval(passed, programs, seed=0)
    assert (low, high) == bootstrap_interval(passed, programs, seed=0)
    shares = passed / programs
    half_width = 1.96 * shares.std() / 20
    assert low[0] == pytest.approx(shares.mean() - half_width, abs=0.006)
    assert high[0] == pytest.approx(shares.mean() + half_width, abs=0.006)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    random = np.random.default_rng(2)
    hits = 0
    for trial in range(50):
        chances = random.beta(0.5, 1.0, size=60)  # mean 1/3, problems differ
        passed = random.binomial(4, chances).astype(float)[:, None]
        low, high = bootstrap_interval(passed, np.full((60, 1), 4.0), seed=trial)
        hits += low[0] <= 1 / 3 <= high[0]
    assert 42 <= hits <= 50


def test_more_samples_of_one_problem_do_not_make_it_certain():
    few = evaluation({"a": [4], "b": [0]}).scores[0]
    many = evaluation({"a": [400], "b": [0]}, n=400).scores[0]
    assert (few.low, few.high) == (many.low, many.high) == (0.0, 1.0)


def test_a_comparison_is_paired_by_problem():
    hard_and_easy = {f"p{i:02}": [4 * (i % 2)] for i in range(40)}
    a_little_better = {key: [max(count - 1, 0) + 1] for key, (count,) in hard_and_easy.items()}
    (gain,) = compare(evaluation(hard_and_easy), evaluation(a_little_better))
    assert gain.pass_at_1 == pytest.approx(0.125) and gain.low > 0
    alone = evaluation(hard_and_easy).scores[0]
    assert gain.high - gain.low < (alone.high - alone.low) / 2
    (same,) = compare(evaluation(hard_and_easy), evaluation(hard_and_easy))
    assert (same.pass_at_1, same.low, same.high) == (0, 0, 0)


def test_a_comparison_takes_the_problems_and_turns_that_both_have():
    before, after = evaluation({"a": [0, 0], "b": [4, 4]}), evaluation({"b": [4], "c": [4]})
    (gain,) = compare(before, after)
    assert (gain.problems, gain.pass_at_1) == (1, 0)
    with pytest.raises(InputError, match="no problem in common"):
        compare(before, evaluation({"z": [1]}))


def test_a_comparison_leaves_out_what_one_side_could_not_measure():
    before = evaluation(
        {"easy": [0], "hard": [1]}, programs={"easy": [0], "hard": [4]}
    )  # the sandbox failed on the first
    after = evaluation({"easy": [4], "hard": [1]})
    (gain,) = compare(before, after)
    assert (gain.problems, gain.pass_at_1, gain.low, gain.high) == (1, 0, 0, 0)
    with pytest.raises(InputError, match="no problem in common"):
        compare(evaluation({"easy": [0]}, programs={"easy": [0]}), after)


def test_an_evaluation_survives_json():
    original = evaluation({"a": [1, 2], "b": [0, 3]})
    stored = json.loads(json.dumps(original.to_json()))
    assert Evaluation.from_json(stored) == original
    assert stored["scores"][1]["pass_at_1"] == pytest.approx(5 / 8)


class LearnerFromFeedback:
    """An engine that solves a problem once it has been told what was wrong, except for odd seeds."""

    name, model, model_revision, parallel_calls, context = "scripted", "learner", "1", 2, None

    def session(self):
        return self

    def complete(self, chats, seeds, sampling):
        return [[self.answer(chat, seed) for seed in group] for chat, group in zip(chats, seeds, strict=True)]

    def answer(self, chat, seed):
        told = any("Expected output" in message["content"] for message in chat)
        program = "print(2 * int(input()))" if told and seed % 2 == 0 else "print(1)"
        return Completion(f"```python\n{program}\n```", "stop", 1, 1)

    def count_tokens(self, chat):
        return 1

    def close(self):
        pass


def test_an_evaluation_rolls_out_judges_by_hidden_tests_and_repeats_exactly():
    def doubling(problem_id, hidden=True):
        kinds = (True, False) if hidden else (True, True)
        tests = tuple(
            {"kind": "stdin", "public": public, "input": str(number), "output": str(2 * number)}
            for number, public in zip((3, 4), kinds, strict=True)
        )
        return Problem(problem_id, "s", "t", None, "Double it.", "", tests, Judge(), (), {})

    problems = [doubling(f"p{number}") for number in range(6)] + [doubling("open", hidden=False)]
    settings = {"template": Template.load("paper"), "sampling": Sampling(), "turns": 2, "n": 4}
    with Pool(workers=2) as pool:
        measured = evaluate(problems, LearnerFromFeedback(), pool, **settings)
        assert evaluate(problems[::-1], LearnerFromFeedback(), pool, problems_per_unit=1, **settings) == measured
        with pytest.raises(InputError, match="none of 1 problems has hidden tests"):
            evaluate(problems[-1:], LearnerFromFeedback(), pool, **settings)
    before, after = measured.scores
    assert before.pass_at_1 == 0 and 0.2 < after.pass_at_1 < 0.8 and after.programs == 24
    assert measured.left_out == {NO_HIDDEN_TESTS: 1} and "open" not in measured.programs


@pytest.mark.parametrize(
    ("asked", "context", "said"),
    [
        ({"turns": 0}, None, "evaluation has 0 turns and 1 samples: give at least 1 of each"),
        ({"seed": -1}, None, "seed is -1: give an integer in"),
        ({}, 512, r"no conversation could be evaluated .1 prompt too long for the model.: lower max_tokens"),
    ],
)
def test_what_cannot_be_evaluated_is_one_line(asked, context, said, pool):
    engine = LearnerFromFeedback()
    engine.context = context
    settings = {"template": Template.load("paper"), "sampling": Sampling(max_tokens=512), "turns": 1, "n": 1, **asked}
    with pytest.raises(InputError, match=said):
        evaluate([problem("a")], engine, pool, **settings)
