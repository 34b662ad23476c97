"""Rolling out again under public tests that lie: feedback follows the lie, rewards do not."""

import itertools
import json
from dataclasses import replace

import pytest
from builders import TEMPLATE, count_words, make_dataset, make_problem, stdin_test
from scripted import ScriptedEngine, block
from toy_model import save_toy_model

from cobalt_data.collection import CollectConfig, collect
from cobalt_data.commit import commit
from cobalt_data.cut import CutConfig, cut
from cobalt_data.engines import Sampling, open_engine
from cobalt_data.errors import InputError
from cobalt_data.recollection import RecollectConfig, draw_lies, last_collection
from cobalt_data.replay import replay
from cobalt_data.rows import Prompt, Trajectory
from cobalt_data.unperturb import unperturb
from cobalt_data.verify import verify
from sandbox import Pool, Verdict

RIGHT, WRONG = "print(2 * int(input()))", "print(100 + int(input()))"
COLLECT = CollectConfig(n=2, turns=3, sampling=Sampling(max_tokens=50), template="paper", problems_per_unit=2)
EVERY = RecollectConfig({"swap": 1.0})


def answer(chat, seed):
    return block(WRONG if seed % 3 == 0 else RIGHT)


@pytest.fixture(scope="module")
def pool():
    with Pool(backend="process", workers=2) as started:
        yield started


@pytest.fixture(scope="module")
def collected(tmp_path_factory, pool):
    problems = [make_problem(f"p{number}") for number in range(5)]
    same = make_problem("same", tests=[stdin_test(str(n), "1") for n in range(4)])
    version = make_dataset(tmp_path_factory.mktemp("recollect") / "d", [*problems, same])
    return into(version, pool, ScriptedEngine(answer))


def into(version, pool, engine, lies=None, path=None, **options):
    with collect(version, engine, pool, COLLECT, lies=lies, **options) as outcome:
        return commit(outcome.change, [version], path)


def again(version, pool, path, config=EVERY, engine=None, **options):
    lies = draw_lies(version, "script", COLLECT, config)
    return into(version, pool, engine or ScriptedEngine(answer), lies, path, **options)


def lying(version):
    return [each for each in map(Trajectory.from_row, version.rows("trajectories")) if each.perturbation]


@pytest.fixture(scope="module")
def recollected(collected, pool, tmp_path_factory):
    return again(collected, pool, tmp_path_factory.mktemp("again") / "d")


def test_every_chosen_problem_is_rolled_out_again_under_one_lie(collected, recollected):
    found = lying(recollected)
    assert len(found) == 5 * 2 and not list(verify(recollected))
    assert len({(each.problem_id, json.dumps(each.perturbation)) for each in found}) == 5
    before = {row["trajectory_id"] for row in collected.rows("trajectories")}
    assert before < {row["trajectory_id"] for row in recollected.rows("trajectories")}
    counts = recollected.manifest.counts["problems perturbed by swap"]
    assert (counts.rows_in, counts.rows_out) == (6, 5)
    assert counts.dropped == {"its public tests expect the same output": 1}


def test_feedback_is_that_of_the_tests_that_lie_and_pass_rates_are_those_of_the_true_ones(recollected):
    problem = make_problem()
    for each in lying(recollected):
        first, second = each.perturbation["tests"]
        truth = [problem.tests[first]["output"], problem.tests[second]["output"]]
        assert each.perturbation["true_outputs"] == truth == each.perturbation["false_outputs"][::-1]
        for turn in each.turns:
            assert turn.public_pass_rate == turn.hidden_pass_rate == turn.pass_rate == (turn.program == RIGHT)
            assert turn.public[first].verdict is turn.public[second].verdict is Verdict.WRONG_ANSWER
            assert f"Input:\n{problem.tests[first]['input']}" in turn.feedback
            assert f"Expected output:\n{truth[1]}" in turn.feedback
        told = [message["content"] for message in each.messages if message["role"] == "user"][1:]
        assert told == [turn.feedback for turn in each.turns]


def test_cut_carries_the_lie_on_to_the_prompts_and_stops_where_they_were_told_to_pass(recollected, tmp_path):
    change = cut(recollected, CutConfig("words", select="all", skip_solved=False), count_words)
    version = commit(change, [recollected], tmp_path / "d")
    prompts = [prompt for prompt in map(Prompt.from_row, version.rows("prompts")) if prompt.perturbation]
    by_id = {each.trajectory_id: each for each in lying(version)}
    assert {prompt.trajectory_id for prompt in prompts} <= set(by_id) and prompts
    assert all(prompt.perturbation == by_id[prompt.trajectory_id].perturbation for prompt in prompts)
    assert all(prompt.tests == make_problem().tests and prompt.turn for prompt in prompts)
    rights = [p for p in prompts if p.turn > 1 and all(RIGHT in p.prompt[-2 * back]["content"] for back in (1, 2))]
    assert rights  # two right programs in a row, both told that they fail


def test_interrupted_anywhere_it_ends_in_the_same_version(collected, recollected, pool, tmp_path):
    seen = itertools.count(1)

    def interrupt(at):
        if next(seen) == 8:  # a unit is finished
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="give the same command again to go on"):
        again(collected, pool, tmp_path / "d", progress=interrupt)
    engine = ScriptedEngine(answer)
    assert again(collected, pool, tmp_path / "d", engine=engine).id == recollected.id
    assert len(engine.calls) < 3 * 3
    assert not lying(collected)


def test_a_fraction_of_the_problems_is_chosen_whatever_their_order(collected, tmp_path):
    some = draw_lies(collected, "script", COLLECT, RecollectConfig({"swap": 0.4, "off-by-one": 0.4}))
    assert sorted(lie.kind for lie in some.by_problem.values()) == ["off-by-one"] * 2 + ["swap"] * 2
    shuffled = make_dataset(tmp_path / "d", [*collected.rows("problems")][::-1])
    assert draw_lies(shuffled, "script", COLLECT, RecollectConfig({"swap": 0.4, "off-by-one": 0.4})) == some
    more = draw_lies(collected, "script", COLLECT, RecollectConfig({"swap": 0.6}))
    less = draw_lies(collected, "script", COLLECT, RecollectConfig({"swap": 0.4}))
    assert less.by_problem.items() < more.by_problem.items()


def test_unperturbing_removes_what_was_rolled_out_again(collected, recollected, tmp_path):
    assert commit(unperturb(recollected), [recollected], tmp_path / "d").manifest.content == collected.manifest.content


def test_a_statement_that_shows_everything_leaves_nothing_to_lie_about(tmp_path):
    shown = "".join(f"\n{test['input']}\n{test['output']}" for test in make_problem().tests)
    version = make_dataset(tmp_path / "d", [replace(make_problem(), statement=f"Double it.{shown}")])
    with pytest.raises(InputError, match=r"no problem can be lied about .its first message shows the true outputs"):
        draw_lies(version, "script", COLLECT, replace(EVERY, spare_statement=True))
    assert draw_lies(version, "script", COLLECT, EVERY).by_problem


@pytest.mark.parametrize("kinds", [{"stale": 0.5}, {"misreport": 0.5}, {}, {"swap": 2}])
def test_kinds_that_are_not_about_tests_are_refused(kinds):
    with pytest.raises(InputError, match=r"perturb\.kinds"):
        RecollectConfig(kinds)


def test_the_settings_of_the_last_collection_are_found(collected, tmp_path):
    assert CollectConfig.from_arguments(last_collection(collected).arguments) == COLLECT
    with pytest.raises(InputError, match="has no collection in its history"):
        last_collection(make_dataset(tmp_path / "d", [make_problem()]))


def test_it_can_be_repeated_with_the_embedded_engine(tmp_path, pool):
    model = save_toy_model(tmp_path / "toy", [block(program) for program in (RIGHT, WRONG)], 1024)
    engine = open_engine("transformers", model)
    version = make_dataset(tmp_path / "d", [make_problem(f"p{number}") for number in range(2)])
    made = into(version, pool, engine, draw_lies(version, model, COLLECT, EVERY))
    assert made.manifest.operation == "recollect" and made.manifest.arguments["template_hash"] == TEMPLATE.hash
    assert replay(made, backend="process").id == made.id
