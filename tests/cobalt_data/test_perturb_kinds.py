"""The other ways to perturb a prompt, and several ways at once."""

from collections import Counter
from dataclasses import replace

import pytest
from builders import count_words, executed_and_cut, make_dataset, make_problem, prompts_of

from cobalt_data.commit import commit
from cobalt_data.perturb import KINDS, PerturbConfig, counted, perturb
from cobalt_data.rows import Prompt
from cobalt_data.schemas import TABLES
from sandbox import Pool

RIGHT, WRONG, WORSE = "print(2 * int(input()))", "print(3 * int(input()))", "print(0)"
PROGRAMS = [[WRONG, RIGHT], [WORSE, WRONG, RIGHT], [RIGHT, RIGHT], [None, RIGHT], ["print((", WRONG]]
ALL = dict.fromkeys(KINDS, 1.0)
MIXED = {"swap": 0.3, "off-by-one": 0.3, "stale": 0.2, "misreport": 0.5}


@pytest.fixture(scope="module")
def pool():
    with Pool(backend="process", workers=2) as started:
        yield started


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, pool):
    problems = [make_problem(f"p{number}") for number in range(3)]
    return executed_and_cut(tmp_path_factory.mktemp("kinds") / "d", problems, PROGRAMS, pool, skip_solved=False)


def perturbed(version, pool, kinds, **settings):
    return perturb(version, PerturbConfig("words", kinds, **settings), pool, count_words)


def lies(change):
    return [prompt for prompt in prompts_of(change) if prompt.perturbation]


def last_program(prompt):
    return prompt.prompt[-2]["content"].removeprefix("```python\n").removesuffix("\n```")


def test_off_by_one_is_a_true_run_against_one_false_number(prepared, pool):
    told = lies(perturbed(prepared, pool, {"off-by-one": 1.0}))
    assert told
    for lie in told:
        (position,), (false,), (true,) = (lie.perturbation[name] for name in ("tests", "false_outputs", "true_outputs"))
        assert true == lie.tests[position]["output"] and abs(int(false) - int(true)) == 1
        if last_program(lie) == RIGHT:
            feedback = lie.prompt[-1]["content"]
            assert f"Your output:\n{true}" in feedback and f"Expected output:\n{false}" in feedback
            assert f"Input:\n{lie.tests[position]['input']}" in feedback and lie.perturbation["shown"] == position


def test_stale_feedback_is_what_another_program_of_the_problem_was_truly_told(prepared, pool):
    told = lies(perturbed(prepared, pool, {"stale": 1.0}))
    trajectories = {row["trajectory_id"]: row for row in prepared.rows("trajectories")}
    assert told
    for lie in told:
        source = trajectories[lie.perturbation["told_to"]["trajectory_id"]]
        turn = lie.perturbation["told_to"]["turn"]
        answers = [message["content"] for message in source["messages"] if message["role"] == "assistant"]
        replies = [message["content"] for message in source["messages"][2:] if message["role"] == "user"]
        assert source["problem_id"] == lie.problem_id and replies[turn] == lie.prompt[-1]["content"]
        assert answers[turn] != lie.prompt[-2]["content"]
        assert lie.prompt[-1]["content"] != lie.perturbation["original"]["feedback"]


def test_a_passing_program_and_no_other_is_told_that_it_fails(prepared, pool):
    change = perturbed(prepared, pool, {"misreport": 1.0})
    told = lies(change)
    assert len(told) == 3 * 5 == sum(last_program(lie) == RIGHT for lie in told)
    assert {lie.perturbation["false_verdict"] for lie in told} == {"wrong_answer", "time_limit"}
    for lie in told:
        (position,), (true,) = lie.perturbation["tests"], lie.perturbation["true_outputs"]
        feedback = lie.prompt[-1]["content"]
        assert f"Input:\n{lie.tests[position]['input']}" in feedback and "passes" not in feedback
        if lie.perturbation["false_verdict"] == "wrong_answer":
            assert f"Your output:\n{true}" in feedback and f"Expected output:\n{true}" in feedback
        else:
            assert "did not finish within 2 seconds" in feedback
    assert change.counts[counted("misreport")].dropped["its last program does not pass all public tests"] == 3 * 5


@pytest.mark.parametrize("kinds", [MIXED, ALL])
@pytest.mark.parametrize("replaces", [False, True])
def test_a_prompt_is_perturbed_in_one_way_only_and_nobody_is_forgotten(prepared, pool, kinds, replaces):
    change = perturbed(prepared, pool, kinds, replace=replaces)
    originals = Counter(lie.perturbation["original"]["prompt_id"] for lie in lies(change))
    assert max(originals.values()) == 1
    for kind in kinds:
        counts = change.counts[counted(kind)]
        assert counts.rows_out == sum(lie.perturbation["kind"] == kind for lie in lies(change))
        assert counts.rows_out + sum(counts.dropped.values()) == counts.rows_in == prepared.manifest.rows("prompts")
        assert counts.rows_out <= round(kinds[kind] * change.recorded["eligible"][kind])
    if kinds is MIXED:
        exact = {kind: round(kinds[kind] * change.recorded["eligible"][kind]) for kind in kinds}
        assert exact == {kind: change.counts[counted(kind)].rows_out for kind in kinds}
    assert change.counts["prompts"].rows_out == prepared.manifest.rows("prompts") + len(lies(change)) * (not replaces)


@pytest.mark.parametrize("replaces", [False, True])
def test_all_kinds_a_second_time_add_nothing(prepared, pool, tmp_path, replaces):
    once = commit(perturbed(prepared, pool, MIXED, replace=replaces), [prepared], tmp_path / "d")
    again = perturbed(once, pool, MIXED, replace=replaces)
    assert all(again.counts[counted(kind)].rows_out == 0 for kind in MIXED)
    assert commit(again, [once]).manifest.tables["prompts"] == once.manifest.tables["prompts"]


def test_tests_and_rewards_stay_true(prepared, pool):
    before = {prompt.prompt_id: prompt for prompt in map(Prompt.from_row, prepared.rows("prompts"))}
    for lie in lies(perturbed(prepared, pool, ALL)):
        original = before[lie.perturbation["original"]["prompt_id"]]
        same = {name: getattr(original, name) for name in ("prompt", "perturbation", "prompt_tokens")}
        assert replace(lie, **same) == original and lie.prompt[:-1] == original.prompt[:-1]


def test_workers_a_second_run_and_the_order_of_rows_do_not_matter(prepared, tmp_path):
    shuffled = make_dataset(tmp_path / "shuffled", *([*prepared.rows(name)][::-1] for name in TABLES))
    tables = []
    for version, workers in ((prepared, 1), (prepared, 4), (shuffled, 4)):
        with Pool(backend="process", workers=workers) as pool:
            tables.append(prompts_of(perturbed(version, pool, MIXED)))
    assert tables[0] == tables[1] == tables[2]


def test_another_seed_perturbs_otherwise(prepared, pool):
    chosen = [
        {(lie.perturbation["original"]["prompt_id"], lie.prompt[-1]["content"]) for lie in lies(change)}
        for change in (perturbed(prepared, pool, MIXED, seed=seed) for seed in (0, 1))
    ]
    assert chosen[0] != chosen[1]
