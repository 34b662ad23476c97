"""The online algorithms on the toy model: what they train on, and that they train."""

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
import toy

from cobalt_data.dataset import open_version
from cobalt_data.engines.base import Completion
from cobalt_data.errors import InputError
from cobalt_data.rollouts import Draw
from cobalt_data.rows import Problem, Trajectory, Turn
from cobalt_train.config import ALGORITHMS
from cobalt_train.online import Attempts, grpo_mt_credit, verpo_credit
from cobalt_train.plan import plan
from cobalt_train.trainer import Trainer
from sandbox import Judge, Verdict

CHAT = (
    {"role": "user", "content": "?"},
    *(4 * ({"role": "assistant", "content": "x"}, {"role": "user", "content": "no"})),
)
TEMPLATE = """
system = ""
[first_turn]
statement = "$statement"
starter_code = ""
program = ""
function = ""
method = ""
answer = ""
[feedback]
passed = "print"
wrong_answer = "hm"
wrong_assert = "hm"
runtime_error = "hm"
time_limit = "hm"
memory_limit = "hm"
output_limit = "hm"
syntax_error = "hm"
no_code = "hm hm"
test_input = ""
test_call = ""
test_assert = ""
nothing = ""
answer = ""
"""


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "toy.toml"
    file.write_text(TEMPLATE)

    def settings(algo, **changes):
        of_algo = {**ALGORITHMS[algo], "algo": algo, "template": str(file), "max_prompt_tokens": 60, "steps": 2}
        return replace(toy.CONFIG, **{**of_algo, **changes})

    return settings


@pytest.fixture
def train(config, toy_model, make_version, pool, tmp_path):
    def run(algo, name="run", resume=False, words=("one", "two"), **changes):
        version = make_version(tuple(f"print {word}" for word in words), prompts=False)
        return Trainer(config(algo, **changes), version, toy_model, tmp_path / name, pool=pool, resume=resume)

    return run


def metrics(result):
    rows = [json.loads(line) for line in result.metrics.read_text().splitlines()]
    return [{k: v for k, v in row.items() if k not in ("seconds", "tokens_per_second", "steps")} for row in rows]


@pytest.mark.parametrize("algo", ["grpo-mt", "verpo"])
def test_whole_trajectories_raise_the_reward_of_a_dataset_that_has_problems_only(train, algo):
    rows = metrics(train(algo, words=["one"], steps=12, save_every=12, turns=2, learning_rate=3e-2).run())
    assert sum(row["solved_share"] for row in rows[-3:]) > sum(row["solved_share"] for row in rows[:3]) + 3 * 0.15
    assert all(row["mismatch_ratio"] == pytest.approx(1, abs=1e-3) for row in rows if row["trained_tokens"])


@pytest.mark.parametrize("algo", ["grpo-mt", "verpo"])
def test_a_resumed_run_repeats_the_uninterrupted_one(train, algo):
    whole = metrics(train(algo, "whole", words=["one"], turns=2).run())
    train(algo, "parts", words=["one"], turns=2, steps=1).run()
    assert metrics(train(algo, "parts", words=["one"], turns=2, resume=True).run()) == whole


def test_a_run_is_not_resumed_with_other_words_under_the_same_name(train, config):
    train("grpo-mt", words=["one"], steps=1).run()
    file = Path(config("grpo-mt").template)
    file.write_text(file.read_text().replace('no_code = "hm hm"', 'no_code = "hm"'))
    with pytest.raises(InputError, match="another template or other words in it"):
        train("grpo-mt", words=["one"], resume=True)


def test_every_turn_is_trained_with_the_very_prompt_that_was_served(train):
    trainer = train("grpo-mt", group_size=4)
    practice = trainer._practise(1)
    assert {group.prompt.turn for group in practice.groups} == {0, 1, 2}
    for group in practice.groups:
        assert list(group.prompt_ids) == trainer.engine.render(group.prompt.prompt)
        assert {row.completion.prompt_tokens for row in group.rows} == {len(group.prompt_ids)}
    first, *later = [group for group in practice.groups if group.prompt.problem_id == "toy/print one"]
    assert [row.sample_index for row in first.rows] == [0, 1, 2, 3] and first.prompt.turn == 0
    assert sorted(row.sample_index for group in later for row in group.rows) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert all(group.prompt_ids[: len(first.prompt_ids) - 1] == first.prompt_ids[:-1] for group in later)


def test_the_advantage_of_a_trajectory_reaches_every_one_of_its_turns(train):
    practice = train("grpo-mt")._practise(1)
    rows_of = {group.prompt_id: group for group in practice.groups}
    reached = defaultdict(list)
    for batch in practice.lesson.batches:
        group = rows_of[batch.prompt_id]
        for row, advantage in zip(group.rows, batch.advantages.tolist(), strict=True):
            reached[group.prompt.problem_id, row.sample_index].append(advantage)
    assert reached and all(len(turns) == 3 and len(set(turns)) == 1 and turns[0] for turns in reached.values())


def test_generated_tokens_and_executed_tests_are_those_of_all_turns(train):
    (row,) = metrics(train("verpo", steps=1).run())
    programs = 2 * 8 * 3
    assert row["generated_tokens"] == round(row["completion_tokens"] * programs) > programs
    assert row["executed_tests"] == round((1 - row["no_code_share"]) * programs)


def test_a_conversation_ends_before_a_prompt_beyond_the_limit(train):
    practice = train("grpo-mt", words=["one"], max_prompt_tokens=12)._practise(1)
    assert max(len(group.prompt_ids) for group in practice.groups) <= 12
    assert {group.prompt.turn for group in practice.groups} == {0, 1}


def test_the_units_of_a_step_do_not_change_what_is_drawn(train, monkeypatch):
    together = train("grpo-mt", "one")._practise(1)
    monkeypatch.setattr("cobalt_train.online.ROWS_PER_CALL", 8)
    apart = train("grpo-mt", "three")._practise(1)
    assert [[row.token_ids for row in group.rows] for group in apart.groups] == [
        [row.token_ids for row in group.rows] for group in together.groups
    ]


def test_a_trajectory_that_the_sandbox_failed_to_judge_is_masked_whole(train, pool, monkeypatch):
    trainer = train("grpo-mt", words=["one"])
    monkeypatch.setattr(trainer._algorithm, "_pool", toy.UnreliablePool(pool))
    practice = trainer._practise(1)
    masked = practice.lesson.masked_rows
    assert 0 < masked < 8
    for turn in range(3):
        rows = [row for group in practice.groups if group.prompt.turn == turn for row in group.rows]
        assert len(rows) == 8 - masked and all(row.reward is not None for row in rows)


def test_a_dataset_without_training_problems_is_sent_to_split(config, toy_model, make_version, pool, tmp_path):
    version = make_version(split="test", prompts=False)
    with pytest.raises(InputError, match="has no problems in the split train: run `cobalt data split` first"):
        Trainer(config("verpo"), version, toy_model, tmp_path / "run", pool=pool)
    assert not (tmp_path / "run").exists()


def test_the_run_records_the_template_that_worded_its_prompts(train):
    result = train("verpo", words=["one"], steps=1, turns=1).run()
    facts = json.loads((result.checkpoint / "cobalt.json").read_text())
    assert facts["template"]["name"] == "toy" and facts["template"]["hash"]


def test_the_plan_of_whole_trajectories_counts_every_turn(config, toy_model, make_version):
    version = open_version(make_version(prompts=False).dataset)
    expected = plan(config("grpo-mt", turns=2), version, toy_model)
    assert (expected.prompts, expected.completions_per_step, expected.generated_tokens) == (3, 3 * 8 * 2, 3 * 8 * 2 * 3)
    assert expected.plain_tokens - expected.forward_tokens == 15 * expected.prompt_tokens


def attempts(*passes):
    """A group whose turns passed, of two tests, those given as a string: `"10"` is the first but not the second."""
    tests = tuple({"kind": "stdin", "public": public, "input": "", "output": ""} for public in (True, False))
    problem = Problem("p", "s", "t", None, "s", "", tests, Judge(), (), {})
    trajectories, draws = [], []
    for sample, turns in enumerate(passes):
        rates = [turn.count("1") / 2 for turn in turns]
        records = tuple(Turn("x", (), None, None, rate, "no", "stop", 1, 1) for rate in rates)
        trajectories.append(Trajectory("p", sample, "m", "r", "e", {}, 0, None, CHAT, records, "train"))
        verdicts = [tuple(Verdict.PASSED if bit == "1" else Verdict.WRONG_ANSWER for bit in turn) for turn in turns]
        draws.append(tuple(Draw(Completion("", "stop", 1, 1), each[0], each) for each in verdicts))
    return Attempts(problem, tuple(trajectories), tuple(draws))


def solved(row, completion, program, pass_rate, prev_best):
    return float(pass_rate == 1)


def test_the_final_or_the_best_program_decides_on_a_trajectory(config):
    group = attempts(["00", "11"], ["11", "10"], ["00", "00"])
    final = grpo_mt_credit(group, solved, config("grpo-mt", advantage="mean"))
    assert final.rewards.tolist() == [[1, 1], [0, 0], [0, 0]]
    assert final.advantages[:, 0].tolist() == pytest.approx([2 / 3, -1 / 3, -1 / 3])
    assert final.advantages[:, 1].equal(final.advantages[:, 0])
    best = grpo_mt_credit(group, solved, config("grpo-mt", outcome="best", advantage="mean"))
    assert best.rewards[:, 0].tolist() == [1, 1, 0]


def test_a_group_of_equal_outcomes_is_dead_for_grpo_mt_but_not_for_verpo(config):
    group = attempts(["00", "10"], ["00", "00"])
    assert grpo_mt_credit(group, solved, config("grpo-mt")).dead
    credit = verpo_credit(group, config("verpo"))
    assert not credit.dead and credit.advantages[0, 1] > 0 > credit.advantages[1, 1]
    assert verpo_credit(attempts(["10", "10"], ["10", "10"]), config("verpo")).dead


def test_verpo_counts_the_programs_up_to_the_first_that_solves(config):
    credit = verpo_credit(attempts(["11", "11"], ["00", "11"], ["11", "00"]), config("verpo", verpo_beta=0.0))
    assert credit.rewards[:, 0].tolist() == pytest.approx([0.95, 0.95**2, 0.0])
