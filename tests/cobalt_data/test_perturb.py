"""Perturbed prompts: true runs, false expectations, and everything that rewards a program left as it was."""

import json
from dataclasses import replace
from functools import partial

import pytest
from builders import (
    TEMPLATE,
    call_test,
    count_words,
    executed,
    executed_and_cut,
    make_dataset,
    make_problem,
    make_trajectory,
    make_turn,
    prompts_of,
    stdin_test,
)

from cobalt_data.commit import Change, commit
from cobalt_data.cut import CutConfig, cut
from cobalt_data.dataset import table_from_rows
from cobalt_data.errors import InputError
from cobalt_data.perturb import PerturbConfig, counted, perturb
from cobalt_data.rows import Prompt
from cobalt_data.schemas import TABLES
from cobalt_data.split import SplitConfig
from sandbox import Judge, Pool

EVERY = PerturbConfig(tokenizer="words", kinds={"swap": 1.0})
SWAPPED = counted("swap")
RIGHT = "print(2 * int(input()))"
WRONG = "print(3 * int(input()))"
CRASH = "print(int(input()) / 0)"
INVALID = "print(("
SILENT = "pass"
FACTS = {"kind", "seed", "tests", "true_outputs", "false_outputs", "shown", "original"}
PROGRAMS = [[WRONG, RIGHT], [CRASH, WRONG, RIGHT], [INVALID, CRASH], [SILENT, None], [RIGHT, WRONG]]


@pytest.fixture(scope="module")
def pool():
    with Pool(backend="process", workers=2) as started:
        yield started


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, pool):
    """Three problems with five really executed trajectories each, cut at every turn."""
    problems = [make_problem(f"p{number}") for number in range(3)]
    return executed_and_cut(tmp_path_factory.mktemp("perturb") / "d", problems, PROGRAMS, pool)


@pytest.fixture(scope="module")
def everything(prepared, pool):
    """All that is eligible, perturbed."""
    return perturb(prepared, EVERY, pool, count_words)


def lies(change):
    return [prompt for prompt in prompts_of(change) if prompt.perturbation]


def originals(version):
    return {prompt.prompt_id: prompt for prompt in map(Prompt.from_row, version.rows("prompts"))}


def last_program(prompt):
    return prompt.prompt[-2]["content"].removeprefix("```python\n").removesuffix("\n```")


def test_only_the_last_feedback_the_tokens_and_the_mark_differ_from_the_original(prepared, everything):
    before = originals(prepared)
    assert lies(everything)
    for lie in lies(everything):
        original = before[lie.perturbation["original"]["prompt_id"]]
        assert lie.prompt[:-1] == original.prompt[:-1] and lie.prompt[-1] != original.prompt[-1]
        assert lie.prompt_tokens == count_words(lie.prompt)
        same = {"prompt": original.prompt, "perturbation": None, "prompt_tokens": original.prompt_tokens}
        assert replace(lie, **same) == original
        restored = original.prompt[-1] | {"content": lie.perturbation["original"]["feedback"]}
        tokens = lie.perturbation["original"]["prompt_tokens"]
        back = replace(lie, prompt=(*lie.prompt[:-1], restored), perturbation=None, prompt_tokens=tokens)
        assert back.to_row() == original.to_row()


def test_a_correct_program_fails_and_is_told_the_expectation_of_another_test(everything):
    told = [lie for lie in lies(everything) if last_program(lie) == RIGHT]
    assert len(told) >= 3
    for lie in told:
        first, second = lie.perturbation["tests"]
        asked = lie.tests[first]["input"].strip()
        feedback = lie.prompt[-1]["content"]
        assert f"Input:\n{asked}\n" in feedback
        assert f"Your output:\n{lie.tests[first]['output']}" in feedback
        assert f"Expected output:\n{lie.tests[second]['output']}" in feedback
        assert lie.perturbation["shown"] == first
        assert lie.perturbation["true_outputs"] == [lie.tests[first]["output"], lie.tests[second]["output"]]


def test_a_crash_stays_a_crash_and_shows_no_false_expectation(everything):
    told = [lie for lie in lies(everything) if last_program(lie) == CRASH]
    for lie in told:
        assert "ZeroDivisionError" in lie.prompt[-1]["content"] and lie.perturbation["shown"] is None


def test_what_is_not_eligible_is_counted_by_reason_and_nobody_is_forgotten(prepared, everything):
    counts = everything.counts
    reasons = counts[SWAPPED].dropped
    assert reasons["turn 0 has no feedback"] == 3
    assert reasons["its last completion has no program"] == 3
    assert reasons["the perturbed tests say nothing new"] >= 3  # programs that are no Python
    assert counts[SWAPPED].rows_in == prepared.manifest.rows("prompts") == counts["prompts"].rows_in
    assert counts[SWAPPED].rows_in - sum(reasons.values()) == counts[SWAPPED].rows_out
    assert counts["prompts"].rows_out == counts["prompts"].rows_in + counts[SWAPPED].rows_out


@pytest.mark.parametrize("fraction", [0, 0.1, 0.5, 0.77, 1])
def test_exactly_the_fraction_of_the_eligible_is_perturbed(prepared, pool, everything, fraction):
    change = perturb(prepared, replace(EVERY, kinds={"swap": fraction}), pool, count_words)
    eligible = change.recorded["eligible"]["swap"]
    assert eligible == len(lies(everything)) > 10
    assert len(lies(change)) == change.counts[SWAPPED].rows_out == round(fraction * eligible)


def test_a_larger_fraction_only_adds(prepared, pool):
    few = perturb(prepared, replace(EVERY, kinds={"swap": 0.3}), pool, count_words)
    many = perturb(prepared, replace(EVERY, kinds={"swap": 0.6}), pool, count_words)
    assert {lie.prompt_id for lie in lies(few)} < {lie.prompt_id for lie in lies(many)}


@pytest.mark.parametrize("replaces", [False, True])
def test_a_second_run_with_the_same_seed_adds_nothing_and_another_seed_does(prepared, pool, tmp_path, replaces):
    config = replace(EVERY, kinds={"swap": 0.5}, replace=replaces)
    once = commit(perturb(prepared, config, pool, count_words), [prepared], tmp_path / "d")
    again = perturb(once, config, pool, count_words)
    assert again.counts[SWAPPED].rows_out == 0
    assert commit(again, [once]).manifest.tables["prompts"] == once.manifest.tables["prompts"]
    assert perturb(once, replace(config, seed=1), pool, count_words).counts[SWAPPED].rows_out > 0
    more = perturb(once, replace(config, kinds={"swap": 1}), pool, count_words)
    assert len(lies(more)) + once.manifest.counts[SWAPPED].rows_out == more.recorded["eligible"]["swap"]


def test_replacing_takes_the_place_of_the_originals(prepared, pool):
    config = replace(EVERY, kinds={"swap": 0.5})
    added = perturb(prepared, config, pool, count_words)
    replaced = perturb(prepared, replace(config, replace=True), pool, count_words)
    assert {lie.prompt_id for lie in lies(added)} == {lie.prompt_id for lie in lies(replaced)}
    assert replaced.counts["prompts"].rows_out == prepared.manifest.rows("prompts")
    assert replaced.removed["prompts"] == {lie.perturbation["original"]["prompt_id"] for lie in lies(replaced)}
    assert not added.removed


def test_perturbed_prompts_are_not_perturbed_again(prepared, pool, everything, tmp_path):
    once = commit(everything, [prepared], tmp_path / "d")
    twice = perturb(once, replace(EVERY, seed=1), pool, count_words)
    assert twice.counts[SWAPPED].dropped["perturbed already"] == len(lies(everything))


def test_another_seed_chooses_other_prompts_and_other_tests(prepared, pool):
    def chosen(seed):
        change = perturb(prepared, replace(EVERY, kinds={"swap": 0.5}, seed=seed), pool, count_words)
        return {(lie.perturbation["original"]["prompt_id"], *lie.perturbation["tests"]) for lie in lies(change)}

    assert chosen(0) != chosen(1)


def test_workers_and_the_order_of_rows_do_not_matter(prepared, tmp_path):
    shuffled = make_dataset(tmp_path / "d", *([*prepared.rows(name)][::-1] for name in TABLES))
    tables = []
    for version, workers in ((prepared, 1), (shuffled, 2)):
        with Pool(backend="process", workers=workers) as pool:
            change = perturb(version, replace(EVERY, kinds={"swap": 0.5}), pool, count_words)
        tables.append(prompts_of(change))
    assert tables[0] == tables[1]


def test_calls_are_perturbed_by_value(tmp_path, pool):
    tests = [call_test([n], {"$tuple": [n, -n]}, public=n < 4) for n in range(1, 6)]
    problem = make_problem(tests=tests, judge=Judge(entry_point="pair", time_limit_s=2.0))
    trajectory = executed(problem, ["def pair(n): return n, -n"], pool)
    version = make_dataset(tmp_path / "d", [problem], [trajectory])
    version = commit(cut(version, CutConfig("words", select="all", skip_solved=False), count_words), [version])
    (lie,) = lies(perturb(version, EVERY, pool, count_words))
    first, second = lie.perturbation["tests"]
    assert f"pair({first + 1})" in lie.prompt[-1]["content"]
    assert f"Expected output:\n({second + 1}, {-second - 1})" in lie.prompt[-1]["content"]
    assert lie.perturbation["true_outputs"][0] == {"$tuple": [first + 1, -first - 1]}


def test_nothing_to_perturb_is_a_change_with_counts(tmp_path, pool):
    problem = make_problem(tests=[stdin_test("1", "2"), stdin_test("2", "4", public=False)])
    version = make_dataset(tmp_path / "d", [problem], [executed(problem, [WRONG, RIGHT], pool)])
    version = commit(cut(version, CutConfig("words", select="all"), count_words), [version])
    change = perturb(version, EVERY, pool, count_words)
    assert change.recorded["eligible"]["swap"] == 0 and change.counts[SWAPPED].rows_out == 0
    assert sum(change.counts[SWAPPED].dropped.values()) == 3
    commit(change, [version])


def with_sampling(prepared, path, **sampling):
    trajectory = make_trajectory(make_problem(), [make_turn(WRONG)])
    trajectory = replace(trajectory, sampling={**trajectory.sampling, **sampling})
    version = make_dataset(path, [make_problem()], [trajectory])
    return commit(cut(version, CutConfig("words", select="all"), count_words), [version])


def test_a_template_that_has_changed_is_refused_unless_the_right_one_is_given(prepared, pool, tmp_path):
    version = with_sampling(prepared, tmp_path / "d", template_hash="0123")
    with pytest.raises(InputError, match="template paper has changed"):
        perturb(version, EVERY, pool, count_words)
    version = with_sampling(prepared, tmp_path / "e", template="of my own")
    with pytest.raises(InputError, match="no template 'of my own'"):
        perturb(version, EVERY, pool, count_words)
    assert lies(perturb(version, EVERY, pool, count_words, template=TEMPLATE))


def test_conversations_that_name_no_template_are_counted_and_hinder_no_others(pool, tmp_path):
    problem, config = make_problem(), replace(EVERY, kinds={"swap": 1.0, "stale": 1.0})
    ours = [executed(problem, programs, pool, index) for index, programs in enumerate(([WRONG], [CRASH]))]
    foreign = replace(executed(problem, [SILENT, RIGHT], pool, 9), engine="reference", sampling={"turns": 2})
    changes = []
    for name, trajectories in (("alone", ours), ("both", [*ours, foreign])):
        version = make_dataset(tmp_path / name, [problem], trajectories)
        version = commit(cut(version, CutConfig("words", select="all"), count_words), [version])
        changes.append(perturb(version, config, pool, count_words))
    alone, both = changes
    assert lies(both) == lies(alone) != []
    for kind in config.kinds:
        left_out = both.counts[counted(kind)].dropped
        assert left_out["its trajectory does not name the template of its feedback"] == 2
        assert both.recorded["eligible"][kind] == alone.recorded["eligible"][kind]


def test_progress_counts_the_prompts(prepared, pool):
    seen = []
    change = perturb(prepared, EVERY, pool, count_words, progress=lambda done, of: seen.append((done, of)))
    assert {of for _, of in seen} == {prepared.manifest.rows("prompts")} and len(seen) >= len(lies(change))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen) and seen[-1][0] == seen[-1][1]


def test_many_more_prompts_than_are_executed_at_a_time_come_out_the_same(prepared, pool, everything, monkeypatch):
    monkeypatch.setattr("cobalt_data.perturb.AT_A_TIME", 2)
    few_at_a_time = perturb(prepared, EVERY, pool, count_words)
    assert prompts_of(few_at_a_time) == prompts_of(everything)
    assert few_at_a_time.counts == everything.counts


def test_a_dataset_without_prompts_says_what_to_do(tmp_path, pool):
    with pytest.raises(InputError, match="cobalt data cut"):
        perturb(make_dataset(tmp_path / "d", [make_problem()]), EVERY, pool, count_words)


def test_a_seed_that_no_manifest_holds_is_refused_before_the_work():
    for config in (partial(PerturbConfig, "words"), SplitConfig):
        assert config(seed=-5).seed == -5
        with pytest.raises(InputError, match=r"seed is 1\d*: give a whole number of at most 63 bits"):
            config(seed=10**20)


@pytest.mark.parametrize("wrong", [{"swop": 0.5}, {"swap": 1.5}, {"stale": float("nan")}, {}])
def test_settings_out_of_range_are_refused_by_name(wrong):
    with pytest.raises(InputError, match=r"perturb\.kinds"):
        replace(EVERY, kinds=wrong)


def test_the_recorded_perturbation_is_plain_json(everything):
    for row in everything.added["prompts"].to_pylist():
        assert set(json.loads(row["perturbation"])) == FACTS


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"turn": 4}, "has 4 turns, its trajectory only 2"), ({"tests": "[]"}, "has fewer public tests")],
)
def test_a_prompt_that_was_not_cut_from_its_trajectory_is_named(prepared, pool, tmp_path, changes, said):
    row = next(row for row in prepared.rows("prompts") if row["turn"] == 2)
    chat = [row["prompt"][0], *(2 * row["prompt"][1:])]
    forged = Prompt.from_row({**row, "prompt": chat, **changes}).to_row()
    tables = {"prompts": table_from_rows("prompts", [forged])}
    version = commit(Change("forge", {}, None, tables, {}), [prepared], tmp_path / "d")
    with pytest.raises(InputError, match=f"prompt {forged['prompt_id']} {said}"):
        perturb(version, PerturbConfig("words"), pool, count_words)
