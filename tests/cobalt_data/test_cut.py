"""Which contexts become prompts: the paper's rules, one by one, and the invariants that hold for all of them."""

from dataclasses import replace

import pytest
from builders import count_words, make_dataset, make_problem, make_trajectory, make_turn, prompts_of, rated
from hypothesis import given
from hypothesis import strategies as st

from cobalt_data.commit import commit
from cobalt_data.cut import Candidate, CutConfig, Plan, context, cut, plan_problem
from cobalt_data.errors import InputError
from cobalt_data.tokens import token_counter, tokenizer_of

PAPER = CutConfig(tokenizer="words")
IMPROVING = replace(PAPER, select="improving")
ALL = replace(PAPER, select="all")


def candidate(name, rates, public=None, sample_index=0, is_perturbed=False):
    public = rates if public is None else public
    return Candidate(
        name, sample_index, is_perturbed, tuple(rates), tuple(None if rate is None else rate == 1.0 for rate in public)
    )


def plan_of(candidates, config, **options):
    plan = Plan()
    plan_problem(plan, candidates, config, **options)
    return {name: turns for name, turns in plan.turns.items() if turns}, dict(+plan.dropped)


def contexts(plan):
    return {name: [turn for turn in turns if turn] for name, turns in plan.items() if any(turns)}


def test_paper_takes_trajectories_that_vary_and_reach_everything():
    candidates = [
        candidate("a", [0.5, 1]),
        candidate("b", [0, 0.5]),
        candidate("c", [0.5, 0.5]),
        candidate("d", [1, 0.5]),
    ]
    plan, dropped = plan_of(candidates, PAPER)
    assert contexts(plan) == {"a": [1, 2], "d": [1, 2]}
    assert dropped == {"its trajectory never passes everything": 2, "its pass rate does not vary": 2}


def test_improving_also_takes_those_that_never_pass_everything():
    plan, _ = plan_of([candidate("a", [0, 0.5]), candidate("b", [0.5, 0.5])], IMPROVING)
    assert contexts(plan) == {"a": [1, 2]}


def test_all_takes_every_trajectory():
    plan, dropped = plan_of([candidate(name, [0, 0]) for name in "abcdefg"], ALL)
    assert contexts(plan) == {name: [1, 2] for name in "abcdefg"}
    assert dropped == {}


def test_of_many_the_m_with_the_greatest_variance_of_ranges_are_kept():
    rates = {"a": [0.9, 1], "b": [0, 1], "c": [0.5, 1], "d": [0.6, 1], "e": [0.8, 1], "f": [0.1, 1]}
    plan, dropped = plan_of([candidate(*each) for each in rates.items()], PAPER)
    assert set(contexts(plan)) == {"a", "b", "e", "f"}
    assert dropped == {"down-sampled": 4}


def test_only_the_first_n_trajectories_are_looked_at():
    candidates = [candidate(name, [0, 1], sample_index=5 - index) for index, name in enumerate("abcdef")]
    plan, dropped = plan_of(candidates, replace(PAPER, n=2))
    assert set(contexts(plan)) == {"e", "f"}
    assert dropped == {"beyond the first n trajectories of its problem": 8}
    assert plan_of(candidates, replace(PAPER, n=6)) == plan_of(candidates, PAPER)


def test_perturbed_trajectories_displace_no_other_and_never_speak_for_turn_0():
    benign = [candidate(f"b{index}", [0, 1], sample_index=index) for index in range(6)]
    perturbed = [candidate(f"a{index}", [0, 1], sample_index=index, is_perturbed=True) for index in range(6)]
    alone, _ = plan_of(benign, PAPER)
    together, _ = plan_of([*perturbed, *benign], PAPER)
    assert {name: turns for name, turns in together.items() if name in alone} == alone
    assert sum(name.startswith("a") for name in together) == 4
    assert all(turns[0] for name, turns in together.items() if name.startswith("a"))


def test_a_problem_whose_first_programs_all_pass_is_skipped():
    solved = [candidate("a", [1, 0.5]), candidate("b", [1, 1])]
    plan, dropped = plan_of(solved, PAPER)
    assert plan == {} and dropped == {"its problem is solved at once": 5}
    assert plan_of(solved, replace(PAPER, skip_solved=False))[0] == {"a": [0, 1, 2]}


def test_the_turn_0_prompt_is_emitted_once_per_problem_even_where_no_trajectory_is_chosen():
    flat = [candidate("b", [0, 0]), candidate("a", [0, 0])]
    assert plan_of(flat, PAPER)[0] == {"a": [0]}
    assert plan_of(flat, replace(PAPER, keep_turn0=False))[0] == {}


def test_cutting_stops_when_two_successive_programs_pass_all_public_tests():
    one = candidate("a", [0.2, 0.9, 0.9, 1], public=[0, 1, 1, 1])
    assert contexts(plan_of([one], PAPER)[0]) == {"a": [1, 2]}
    assert contexts(plan_of([one], replace(PAPER, stop_when_passing=False))[0]) == {"a": [1, 2, 3]}


def test_the_first_cut_looks_ahead():
    one = candidate("a", [1, 0.5, 1])
    other = candidate("b", [0, 0.5, 1])
    plan, dropped = plan_of([one, other], PAPER)
    assert contexts(plan) == {"b": [1, 2, 3]}
    assert dropped == {"programs 0 and 2 pass everything": 3}
    assert contexts(plan_of([one, other], replace(PAPER, look_ahead=False))[0])["a"] == [1, 2, 3]


def test_no_context_has_more_programs_than_turns():
    plan, dropped = plan_of([candidate("a", [0, 0.1, 0.2, 0.3, 1])], PAPER)
    assert contexts(plan) == {"a": [1, 2, 3]}
    assert dropped == {"beyond the last turn": 2}
    assert plan_of([candidate("a", [0, 1])], replace(PAPER, turns=0))[0] == {"a": [0]}


def test_a_problem_without_public_tests_gets_turn_0_only():
    plan, dropped = plan_of([candidate("a", [0.5], public=[None])], ALL)
    assert plan == {"a": [0]} and dropped == {"its problem has no public tests": 1}


def test_validation_takes_the_one_trajectory_with_the_smallest_positive_range():
    candidates = [
        candidate("a", [0, 1]),
        candidate("c", [0.2, 0.4]),
        candidate("b", [0.1, 0.3]),
        candidate("d", [0, 0]),
    ]
    for config in (PAPER, IMPROVING, ALL):
        plan, _ = plan_of(candidates, config, is_validation=True)
        assert contexts(plan) == {"b": [1, 2]} or contexts(plan) == {"c": [1, 2]}
    plan, _ = plan_of(candidates, replace(ALL, validation_rule=False), is_validation=True)
    assert len(contexts(plan)) == 4


RATE = st.integers(0, 4).map(lambda passed: passed / 4)
CANDIDATES = st.lists(st.lists(st.tuples(RATE, RATE), min_size=1, max_size=5), min_size=1, max_size=8)
CONFIGS = st.builds(
    CutConfig,
    tokenizer=st.just("words"),
    select=st.sampled_from(["paper", "improving", "all"]),
    n=st.none() | st.integers(1, 5),
    m=st.integers(1, 5),
    turns=st.integers(0, 4),
    keep_turn0=st.booleans(),
    skip_solved=st.booleans(),
    stop_when_passing=st.booleans(),
    look_ahead=st.booleans(),
)


@given(CANDIDATES, CONFIGS, st.booleans(), st.randoms())
def test_every_context_is_emitted_or_dropped_for_one_reason_whatever_the_order(drawn, config, is_validation, random):
    candidates = [
        candidate(f"{index:02}", [rate for rate, _ in rates], [public for _, public in rates])
        for index, rates in enumerate(drawn)
    ]
    plan, dropped = plan_of(candidates, config, is_validation=is_validation)
    emitted = sum(map(len, plan.values()))
    assert emitted + sum(dropped.values()) == 1 + sum(map(len, drawn))
    assert all(turns == list(range(turns[0], turns[0] + len(turns))) for turns in plan.values())
    assert plan_of(random.sample(candidates, len(candidates)), config, is_validation=is_validation) == (plan, dropped)
    if config.select != "all":
        assert len(contexts(plan)) <= config.m or is_validation


def test_prompts_are_the_prefixes_that_were_served_and_know_the_best_pass_rate_before(tmp_path):
    problem = make_problem()
    trajectory = rated(problem, [0.5, 0.25, 1.0], public=[0, 0, 1])
    version = make_dataset(tmp_path / "d", [problem], [trajectory])
    prompts = sorted(prompts_of(cut(version, PAPER, count_words)), key=lambda prompt: prompt.turn)
    assert [prompt.turn for prompt in prompts] == [0, 1, 2, 3]
    assert [prompt.prev_best_pass_rate for prompt in prompts] == [0.0, 0.5, 0.5, 1.0]
    assert [prompt.trajectory_id for prompt in prompts] == [None, *[trajectory.trajectory_id] * 3]
    for prompt in prompts:
        assert list(prompt.prompt) == list(trajectory.messages)[: len(prompt.prompt)]
        assert sum(message["role"] == "assistant" for message in prompt.prompt) == prompt.turn
        assert prompt.prompt[-1]["role"] == "user"
        assert prompt.prompt_tokens == count_words(prompt.prompt)
        assert prompt.tests == problem.tests and prompt.judge == problem.judge


def test_contexts_that_are_too_long_end_the_trajectory(tmp_path):
    problem = make_problem()
    turns = [make_turn(feedback="no " * 50), make_turn(pass_rate=0.5, feedback="no " * 50), make_turn(pass_rate=1.0)]
    version = make_dataset(tmp_path / "d", [problem], [make_trajectory(problem, turns)])
    longest = count_words(context(make_trajectory(problem, turns).messages, len(turns), 1))
    change = cut(version, replace(PAPER, max_prompt_tokens=longest), count_words)
    assert sorted(prompt.turn for prompt in prompts_of(change)) == [0, 1]
    assert change.counts["prompts"].dropped == {"too many tokens": 2}


def test_a_conversation_that_ends_with_its_last_program_is_cut_before_it(tmp_path):
    problem = make_problem()
    turns = [make_turn(), make_turn(pass_rate=0.5), make_turn(pass_rate=1.0, public=1.0, feedback="")]
    told, untold = rated(problem, [0.0, 0.5, 1.0], sample_index=1), make_trajectory(problem, turns)
    version = make_dataset(tmp_path / "d", [problem], [told, untold])
    change = cut(version, ALL, count_words)
    cut_at = {(prompt.trajectory_id, prompt.turn) for prompt in prompts_of(change) if prompt.turn}
    assert cut_at == {(told.trajectory_id, turn) for turn in (1, 2, 3)} | {
        (untold.trajectory_id, turn) for turn in (1, 2)
    }
    assert change.counts["prompts"].dropped == {"no feedback to its last program": 1}
    short = cut(version, replace(ALL, max_prompt_tokens=1), count_words)
    assert (
        sum(short.counts["prompts"].dropped.values())
        == short.counts["prompts"].rows_in - short.counts["prompts"].rows_out
    )


def test_prompts_stay_on_the_side_of_their_problem(tmp_path):
    problems = [make_problem(f"p{side}", split=side) for side in ("train", "validation", "test")]
    trajectories = [rated(problem, [0.0, 0.5, 1.0], index) for problem in problems for index in range(3)]
    version = make_dataset(tmp_path / "d", problems, trajectories)
    change = cut(version, ALL, count_words)
    version = commit(change, [version])
    assert all(row["problem_id"] == f"p{row['split']}" for row in version.rows("prompts"))
    counts = change.counts["prompts"]
    assert counts.rows_in == 3 + 9 * 3 and counts.rows_in - sum(counts.dropped.values()) == counts.rows_out
    assert version.manifest.rows("prompts", "train") == 1 + 3 * 3
    assert version.manifest.rows("prompts", "validation") == 1 + 3


def test_cutting_twice_or_from_shuffled_rows_gives_the_same_version(tmp_path):
    problems = [make_problem(f"p{number}") for number in range(4)]
    trajectories = [rated(each, [0.0, index / 10, 1.0], index) for each in problems for index in range(7)]
    ids = set()
    for name, step in (("a", 1), ("b", -1)):
        version = make_dataset(tmp_path / name, problems[::step], trajectories[::step])
        once = commit(cut(version, PAPER, count_words), [version])
        assert cut(once, PAPER, count_words).tables["prompts"].num_rows == once.manifest.rows("prompts")
        ids.add(once.id)
    assert len(ids) == 1


def test_a_dataset_without_trajectories_says_what_to_do(tmp_path):
    with pytest.raises(InputError, match="cobalt data collect"):
        cut(make_dataset(tmp_path / "d", [make_problem()]), PAPER, count_words)


def test_a_collecting_model_out_of_reach_says_whose_tokens_could_be_counted_instead(tmp_path):
    problem = make_problem()
    version = make_dataset(tmp_path / "d", [problem], [rated(problem, [0.0, 1.0])])
    with pytest.raises(InputError, match=r"trajectories of m, whose tokenizer .* say with --tokenizer .* `estimate`"):
        token_counter(tokenizer_of(version), of=version)
    with pytest.raises(InputError, match=r"^model 'm' is unknown"):
        token_counter("m")


@pytest.mark.parametrize("wrong", [{"select": "best"}, {"n": 0}, {"m": 0}, {"turns": -1}, {"max_prompt_tokens": 0}])
def test_settings_out_of_range_are_refused_by_name(wrong):
    with pytest.raises(InputError, match=f"cut.{next(iter(wrong))}"):
        replace(PAPER, **wrong)
