"""Exact duplicates: what counts as one, which row is kept, and that nothing depends on order."""

from dataclasses import replace

import pytest
from builders import count_words, make_dataset, make_problem, rated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cobalt_data.commit import commit
from cobalt_data.cut import CutConfig, cut
from cobalt_data.dedup import Cluster, DedupConfig, dedup, drop_duplicates, find_duplicates
from cobalt_data.errors import InputError
from cobalt_data.rows import Prompt

ALL_LEVELS = DedupConfig()
EVERY = CutConfig("words", select="all")
PROBLEM = make_problem()

DOUBLE = "n = int(input())\nprint(2 * n)"
DOUBLE_RENAMED = "# doubles\nvalue = int( input() )\nprint(2*value)"
TRIPLE = "n = int(input())\nprint(3 * n)"
ANSWERED = 3 * ({"role": "assistant", "content": "!"}, {"role": "user", "content": "No."})


def two_turns(programs, sample_index=0, problem=PROBLEM):
    return rated(problem, [0.0, 0.5], sample_index, programs=programs)


def prompt(text, split="train", problem_id="p0", turn=1, perturbation=None):
    return Prompt(
        trajectory_id=None,
        problem_id=problem_id,
        turn=turn,
        prompt=({"role": "user", "content": text}, *ANSWERED),
        tests=PROBLEM.tests,
        judge=PROBLEM.judge,
        prev_best_pass_rate=0.0,
        perturbation=perturbation,
        prompt_tokens=3,
        split=split,
    )


def test_trajectories_with_the_same_programs_up_to_writing_are_duplicates(tmp_path):
    same, other = two_turns([DOUBLE, TRIPLE]), two_turns([TRIPLE, DOUBLE], 2)
    version = make_dataset(tmp_path / "d", [PROBLEM], [same, two_turns([DOUBLE_RENAMED, TRIPLE], 1), other])
    (cluster,) = find_duplicates(version, ALL_LEVELS)
    assert cluster.level == "trajectories" and len(cluster.dropped) == 1
    assert other.trajectory_id not in (cluster.kept, *cluster.dropped)
    change = dedup(version, ALL_LEVELS)
    assert change.counts["trajectories"].dropped == {"the same programs": 1}
    assert change.removed["trajectories"] == list(cluster.dropped)


def test_the_same_programs_for_another_problem_or_of_another_length_are_no_duplicates(tmp_path):
    elsewhere = make_problem("p1")
    trajectories = [
        two_turns([DOUBLE, TRIPLE]),
        two_turns([DOUBLE, TRIPLE], problem=elsewhere),
        rated(PROBLEM, [0], 3, programs=[DOUBLE]),
    ]
    assert find_duplicates(make_dataset(tmp_path / "d", [PROBLEM, elsewhere], trajectories), ALL_LEVELS) == []


def test_completions_without_a_program_equal_each_other_and_no_program(tmp_path):
    trajectories = [two_turns([None, DOUBLE]), two_turns([None, DOUBLE], 1), two_turns(["", DOUBLE], 2)]
    (cluster,) = find_duplicates(make_dataset(tmp_path / "d", [PROBLEM], trajectories), ALL_LEVELS)
    assert {cluster.kept, *cluster.dropped} == {trajectory.trajectory_id for trajectory in trajectories[:2]}


def test_the_trajectory_that_most_prompts_were_made_from_is_kept(tmp_path):
    trajectories = [two_turns([DOUBLE, TRIPLE], index) for index in range(6)]
    for position in range(6):
        used = trajectories[position]
        made = replace(prompt("what came of it"), trajectory_id=used.trajectory_id)
        version = make_dataset(tmp_path / f"d{position}", [PROBLEM], trajectories, [made])
        (cluster,) = find_duplicates(version, ALL_LEVELS)
        assert cluster.kept == used.trajectory_id
        assert commit(dedup(version, ALL_LEVELS), [version]).manifest.rows("prompts") == 1


def test_prompts_of_a_dropped_trajectory_go_with_it_and_take_no_clone_down(tmp_path):
    trajectories = [two_turns([DOUBLE, TRIPLE], 0), two_turns([DOUBLE_RENAMED, TRIPLE], 1)]
    version = make_dataset(tmp_path / "d", [PROBLEM], trajectories)
    cut_version = commit(cut(version, EVERY, count_words), [version])
    first, second = (trajectory.trajectory_id for trajectory in trajectories)
    kept, dropped = min(first, second), max(first, second)
    shared = [replace(prompt("the same text"), trajectory_id=each) for each in (kept, dropped)]
    version = make_dataset(tmp_path / "e", [PROBLEM], trajectories, shared)
    deduplicated = commit(dedup(version, ALL_LEVELS), [version])
    (row,) = deduplicated.rows("prompts")
    assert row["trajectory_id"] == kept
    after_cut = commit(dedup(cut_version, ALL_LEVELS), [cut_version])
    assert {row["trajectory_id"] for row in after_cut.rows("prompts")} == {None, kept}
    assert after_cut.manifest.rows("prompts") == 1 + 2


def test_a_perturbed_prompt_is_no_duplicate_of_its_original_but_equal_texts_are(tmp_path):
    lie = {"kind": "swap", "tests": [0, 1]}
    prompts = [
        prompt("true"),
        prompt("false", perturbation=lie),
        prompt("true", turn=2),
        prompt("true", turn=1, perturbation=lie),
    ]
    (cluster,) = find_duplicates(make_dataset(tmp_path / "d", [PROBLEM], prompts=prompts), ALL_LEVELS)
    assert cluster.kept == prompts[0].prompt_id
    assert set(cluster.dropped) == {prompts[2].prompt_id, prompts[3].prompt_id}


def test_text_is_compared_role_by_role_and_character_by_character(tmp_path):
    texts = ['a","content":"b', "a", "a ", "a\n", 'a"', "ä", "a\u0308", "\\n", "A"]
    prompts = [prompt(text) for text in texts]
    split_up = replace(prompt("a"), prompt=({"role": "system", "content": ""}, *prompt("a").prompt))
    version = make_dataset(tmp_path / "d", [PROBLEM], prompts=[*prompts, split_up])
    assert find_duplicates(version, ALL_LEVELS) == []


def test_held_out_text_wins_over_training_text(tmp_path):
    problems = [make_problem("p0"), make_problem("p1", split="validation"), make_problem("p2", split="test")]
    prompts = [prompt("same", each.split, each.problem_id) for each in problems]
    (cluster,) = find_duplicates(make_dataset(tmp_path / "d", problems, prompts=prompts), ALL_LEVELS)
    assert cluster.kept == prompts[2].prompt_id


def test_a_level_that_is_not_asked_for_is_left_alone(tmp_path):
    trajectories = [two_turns([DOUBLE, TRIPLE], index) for index in range(2)]
    version = make_dataset(tmp_path / "d", [PROBLEM], trajectories, [prompt("a"), prompt("a", turn=2)])
    change = dedup(version, DedupConfig(levels=("prompts",)))
    assert set(change.removed) == {"prompts"}
    assert change.counts["prompts"].dropped == {"the same text": 1}


@pytest.mark.parametrize("levels", [(), ("problem",), ("prompts", "prompt")])
def test_unknown_levels_are_refused(levels):
    with pytest.raises(InputError, match=r"dedup\.levels"):
        DedupConfig(levels)


SHUFFLES = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SHUFFLES
@given(st.lists(st.sampled_from([DOUBLE, DOUBLE_RENAMED, TRIPLE]), min_size=2, max_size=6), st.randoms())
def test_the_outcome_does_not_depend_on_order_and_a_second_run_drops_nothing(tmp_path_factory, programs, random):
    trajectories = [two_turns([program, TRIPLE], index) for index, program in enumerate(programs)]
    prompts = [prompt(random.choice("ab"), turn=turn) for turn in range(4)]
    ids = set()
    for _ in range(2):
        random.shuffle(trajectories)
        random.shuffle(prompts)
        version = make_dataset(tmp_path_factory.mktemp("d") / "d", [PROBLEM], trajectories, prompts)
        once = commit(dedup(version, ALL_LEVELS), [version])
        assert not any(dedup(once, ALL_LEVELS).removed.values()) and find_duplicates(once, ALL_LEVELS) == []
        assert once.manifest.rows("trajectories") == len({program != TRIPLE for program in programs})
        ids.add(once.id)
    assert len(ids) == 1


def test_a_cluster_lists_all_of_its_rows(tmp_path):
    trajectories = [two_turns([DOUBLE, TRIPLE], index) for index in range(20)]
    ids = sorted(trajectory.trajectory_id for trajectory in trajectories)
    version = make_dataset(tmp_path / "d", [PROBLEM], trajectories)
    clusters = find_duplicates(version, ALL_LEVELS)
    assert clusters == [Cluster("trajectories", ids[0], tuple(ids[1:]))]
    summary = drop_duplicates(version, ALL_LEVELS, clusters).recorded
    assert summary["trajectories"] == {"clusters": 1, "largest": 20}


def test_a_dataset_with_nothing_to_compare_says_so(tmp_path):
    with pytest.raises(InputError, match="has no trajectories and no prompts yet"):
        dedup(make_dataset(tmp_path / "d", [PROBLEM]), DedupConfig(("trajectories", "prompts")))
