"""Collecting: what is chosen, what is added, and that no interruption changes the outcome."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_dataset, make_problem, stdin_test
from collecting import CONFIG, answer, problems
from scripted import ScriptedEngine, block

from cli import main
from cobalt_data.collection import CollectConfig, collect, lay_out
from cobalt_data.commands.collecting import show_collection
from cobalt_data.commit import commit
from cobalt_data.console import Screen
from cobalt_data.dataset import open_version, version_ids
from cobalt_data.engines import Sampling, open_engine
from cobalt_data.engines.base import Completion
from cobalt_data.errors import CobaltError, EngineError, InputError
from cobalt_data.planning import expected_length, plan
from cobalt_data.rollouts import PROMPT_TOO_LONG
from cobalt_data.rows import Trajectory
from sandbox import Pool

SCRIPT = Path(__file__).with_name("collecting.py")


@pytest.fixture(scope="module")
def pool():
    with Pool(workers=2) as pool:
        yield pool


@pytest.fixture
def version(tmp_path):
    return make_dataset(tmp_path / "data", problems())


@pytest.fixture(scope="module")
def undisturbed(pool, tmp_path_factory):
    """The version that a collection without interruption ends in."""
    version = make_dataset(tmp_path_factory.mktemp("undisturbed"), problems())
    return collected_into(version, pool)


def collected_into(version, pool, config=CONFIG, engine=None, **arguments):
    with collect(version, engine or ScriptedEngine(answer), pool, config, **arguments) as collected:
        return commit(collected.change, [version])


def trajectories(version):
    return [Trajectory.from_row(row) for row in version.rows("trajectories")]


def test_every_problem_gets_its_conversations_once(undisturbed):
    rows = trajectories(undisturbed)
    assert sorted((row.problem_id, row.sample_index) for row in rows) == [
        (f"p{p}", i) for p in range(10) for i in range(3)
    ]
    assert {len(row.turns) for row in rows} == {3} and {row.split for row in rows} == {"train"}
    counts = undisturbed.manifest.counts["trajectories"]
    assert (counts.rows_in, counts.rows_out, counts.dropped) == (30, 30, {})


def test_the_manifest_says_what_it_was_made_with(undisturbed):
    manifest = undisturbed.manifest
    assert manifest.arguments["model"] == "script" and manifest.arguments["sampling"]["max_tokens"] == 50
    assert manifest.arguments["template"] == "paper" and manifest.arguments["template_hash"]
    assert manifest.seed == 0 and 0 < manifest.recorded["model_share"] <= 1


def test_the_default_size_of_a_unit_and_the_same_one_asked_for_are_the_same_collection(pool, tmp_path):
    default = replace(CONFIG, n=16, turns=1, problems_per_unit=None)
    made = [
        collected_into(make_dataset(tmp_path / name, problems()[:2]), pool, config)
        for name, config in (("default", default), ("asked", replace(default, problems_per_unit=4)))
    ]
    assert made[0].id == made[1].id


def test_the_command_writes_no_version_where_nothing_is_added(version, monkeypatch, capsys):
    monkeypatch.setattr("cobalt_data.engines.open_engine", lambda *_, **__: ScriptedEngine(answer))
    said = []
    for form in ([], [], ["--json"]):
        command = ["collect", str(version.dataset), "-m", "script", "-n", "2", "--turns", "1", *form]
        monkeypatch.setattr(sys, "argv", ["cobalt", "data", *command])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert not stopped.value.code
        said.append((version_ids(version.dataset), capsys.readouterr().out))
    assert len(said[0][0]) == 2 and said[0][0] == said[1][0] == said[2][0]
    assert "0 trajectories added (all of them are there); no version was written" in said[1][1]
    assert json.loads(said[2][1])["added"] == 0


def test_nothing_is_left_of_a_run_once_its_version_is_written(undisturbed):
    assert not (undisturbed.dataset / "runs").exists()


def test_collecting_again_adds_nothing_and_another_seed_adds_as_many(version, pool):
    first = collected_into(version, pool)
    engine = ScriptedEngine(answer)
    with collect(first, engine, pool, CONFIG) as collected:
        assert collected.added == 0 and not engine.calls
    more = collected_into(first, pool, replace(CONFIG, seed=1))
    wider = collected_into(more, pool, replace(CONFIG, seed=1, n=4))
    assert [len(trajectories(each)) for each in (first, more, wider)] == [30, 60, 70]


def test_only_the_side_asked_for_is_collected(tmp_path, pool):
    version = make_dataset(tmp_path, [make_problem("a"), make_problem("b", split="test")])
    assert {row.problem_id for row in trajectories(collected_into(version, pool, replace(CONFIG, split="test")))} == {
        "b"
    }
    with pytest.raises(InputError, match="no problems on side 'dev': its sides are test, train"):
        lay_out(version, ScriptedEngine(answer), replace(CONFIG, split="dev"))


def test_a_limit_takes_a_sample_that_grows_and_does_not_depend_on_the_seed(version):
    def chosen(**changes):
        work = lay_out(version, ScriptedEngine(answer), replace(CONFIG, **changes))
        return {problem.problem_id for unit in work.units for problem in unit.problems}

    assert chosen(limit=3) == chosen(limit=3, seed=5) < chosen(limit=6) < chosen()
    assert len(chosen(limit=3)) == 3 and chosen(limit=3) != {"p0", "p1", "p2"}


@pytest.mark.parametrize(
    ("field", "value"), [("n", 0), ("turns", 0), ("problems_per_unit", 0), ("limit", 0), ("seed", -1), ("seed", 2**63)]
)
def test_settings_that_make_no_sense_are_refused_by_name(field, value):
    with pytest.raises(InputError, match=f"collect.{field} is {value}"):
        CollectConfig(**{field: value})


def test_what_does_not_fit_is_counted_by_reason(tmp_path, pool):
    long = replace(make_problem("long"), statement="word " * 200)
    version = make_dataset(tmp_path, [make_problem("short"), long])
    made = collected_into(version, pool, engine=ScriptedEngine(answer, context=200))
    counts = made.manifest.counts["trajectories"]
    assert (counts.rows_in, counts.rows_out, counts.dropped) == (6, 3, {PROMPT_TOO_LONG: 3})


@pytest.mark.parametrize("steps", [1, 4, 11])
def test_interrupted_anywhere_and_started_again_it_ends_in_the_same_version(version, pool, undisturbed, steps):
    seen = itertools.count(1)

    def interrupt(at):
        if next(seen) == steps:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="give the same command again to go on"):
        collected_into(version, pool, progress=interrupt)
    engine = ScriptedEngine(answer)
    with collect(version, engine, pool, CONFIG) as collected:
        resumed = commit(collected.change, [version])
    assert resumed.id == undisturbed.id
    assert len(engine.calls) == 3 * (5 - collected.resumed // 6)  # no finished unit was generated again


def test_an_engine_that_fails_leaves_what_was_finished(version, pool, undisturbed):
    def failing(chat, seed):
        if "p9" in chat[0]["content"]:
            raise EngineError("the endpoint went away")
        return answer(chat, seed)

    with pytest.raises(EngineError, match="went away"):
        collected_into(version, pool, engine=ScriptedEngine(failing))
    with collect(version, ScriptedEngine(answer), pool, CONFIG) as collected:
        assert collected.resumed >= 6
        assert commit(collected.change, [version]).id == undisturbed.id


def test_damaged_units_are_done_again(version, pool, undisturbed):
    with pytest.raises(ZeroDivisionError), collect(version, ScriptedEngine(answer), pool, CONFIG):
        raise ZeroDivisionError  # whoever was to commit failed
    files = sorted((version.dataset / "runs").glob("*/????????????????.json"))
    files[0].write_bytes(files[0].read_bytes()[:-100])
    files[1].write_bytes(b"")
    files[2].unlink()
    with collect(version, ScriptedEngine(answer), pool, CONFIG) as collected:
        assert collected.resumed == 2 * 6
        assert commit(collected.change, [version]).id == undisturbed.id


def test_two_collections_of_the_same_do_not_work_side_by_side(version, pool):
    with (
        collect(version, ScriptedEngine(answer), pool, CONFIG),
        pytest.raises(CobaltError, match="is at work on this very run"),
        collect(version, ScriptedEngine(answer), pool, CONFIG),
    ):
        pass


def started(dataset):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(dataset)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_killed_twice_at_any_moment_it_ends_in_the_same_version(version, undisturbed):
    for problems_done in (2, 6):
        victim = started(version.dataset)
        while int(victim.stdout.readline()) < problems_done:
            pass
        os.kill(victim.pid, signal.SIGKILL)
        victim.communicate()
        assert open_version(version.dataset).id == version.id
    out, err = started(version.dataset).communicate()
    made, resumed = out.split()[-2:]
    assert made == undisturbed.id and int(resumed) >= 18, err
    assert open_version(version.dataset).id == made


def test_killed_before_its_version_is_written_it_loses_nothing(version, undisturbed):
    victim = started(version.dataset)
    while victim.stdout.readline() != "collected\n":
        pass
    os.kill(victim.pid, signal.SIGKILL)
    victim.communicate()
    assert open_version(version.dataset).id in (version.id, undisturbed.id)
    started(version.dataset).communicate()
    assert len(trajectories(open_version(version.dataset))) == 30


def test_ctrl_c_says_how_to_go_on_and_leaves_at_once(version):
    victim = started(version.dataset)
    for _ in range(4):
        victim.stdout.readline()
    victim.send_signal(signal.SIGINT)
    _, err = victim.communicate(timeout=60)
    assert victim.returncode == 1 and err.count("\n") == 1
    assert "of 5 units are kept" in err and "give the same command again" in err


def test_generation_and_execution_overlap(tmp_path, pool):
    """While a unit's programs wait for the sandbox, another unit is being generated."""
    generating_second = threading.Event()
    first_seen = []

    def slow_first(chat, seed):
        if first_seen and chat[0]["content"] != first_seen[0]:
            generating_second.set()
        first_seen.append(chat[0]["content"])
        return block("print(0)")

    class WaitingPool:
        backend = "bubblewrap"

        def submit(self, program, tests, judge):
            assert generating_second.wait(60)
            return pool.submit(program, tests, judge)

    version = make_dataset(tmp_path, [make_problem("a"), make_problem("b")])
    config = replace(CONFIG, n=1, problems_per_unit=1)
    made = collected_into(version, WaitingPool(), config, ScriptedEngine(slow_first))
    assert len(trajectories(made)) == 2


def test_progress_ends_with_everything_done(version, pool):
    seen = []
    collected_into(version, pool, progress=seen.append)
    last = max(seen, key=lambda at: at.seconds)
    assert (last.problems_done, last.problems, last.programs, last.seconds_left) == (10, 10, 90, 0)
    assert 0 < last.problems_solved <= 10 and last.completion_tokens > 0
    assert [at.seconds for at in seen] == sorted(at.seconds for at in seen)


def test_a_plan_counts_what_is_left_and_says_what_its_time_rests_on(version, pool):
    engine = ScriptedEngine(answer)
    expected = plan(version, engine, CONFIG)
    assert (expected.problems, expected.trajectories, expected.programs) == (10, 30, 90)
    made = collected_into(version, pool)
    turns = [turn for row in trajectories(made) for turn in row.turns]
    assert expected.prompt_tokens == pytest.approx(sum(turn.prompt_tokens for turn in turns), rel=0.3)
    assert expected.completion_tokens == pytest.approx(sum(turn.completion_tokens for turn in turns), rel=0.6)
    assert expected.seconds > 0 and "measured on" in expected.basis
    nothing = plan(made, engine, CONFIG)
    assert (nothing.trajectories, nothing.already_there, nothing.seconds) == (0, 30, 0)


def test_a_plan_counts_one_turn_for_problems_without_public_tests(tmp_path):
    hidden = make_problem("a", tests=[stdin_test("1", "2", public=False)])
    assert plan(make_dataset(tmp_path, [hidden]), ScriptedEngine(answer), CONFIG).programs == 3


def test_the_expected_length_follows_from_how_often_completions_end():
    def measured(finish_reason, tokens):
        return Completion("", finish_reason, 1, tokens)

    assert expected_length([measured("length", 64)] * 3, 512) == 512
    assert expected_length([measured("stop", 20)] * 3, 10_000) == pytest.approx(20)
    cut = [measured("stop", 32), measured("length", 64), measured("length", 64)]
    assert 100 < expected_length(cut, 512) <= 160
    assert expected_length([measured("stop", 1)], 512) == 1
    assert expected_length([measured("stop", 0)], 512) == 1


def test_on_the_embedded_model_a_collection_that_was_interrupted_ends_in_the_same_version(tmp_path, pool):
    config = CollectConfig(n=2, turns=2, sampling=Sampling(max_tokens=8), problems_per_unit=1)
    rows = [replace(make_problem(f"p{number}"), statement=f"Print a number times {number}.") for number in (2, 3)]
    engine = open_engine("transformers", "smollm2-135m")

    def interrupt(at):
        if at.problems_done:
            raise KeyboardInterrupt

    first, second = make_dataset(tmp_path / "first", rows), make_dataset(tmp_path / "second", rows)
    whole = collected_into(first, pool, config, engine)
    with pytest.raises(KeyboardInterrupt):
        collected_into(second, pool, config, engine, progress=interrupt)
    assert collected_into(second, pool, config, engine).id == whole.id
    assert json.loads(next(iter(whole.rows("trajectories")))["sampling"])["template"] == "worked_examples"


def test_a_collection_on_a_version_of_the_hub_asks_where_to_write_before_it_begins_and_leaves_the_cache_alone(
    version, tmp_path, capsys
):
    cached, engine = replace(version, origin="hf://datasets/anna/things"), ScriptedEngine(answer)
    before = sorted(version.dataset.rglob("*"))
    with pytest.raises(InputError, match="-o"):
        show_collection(Screen(json=True), cached, engine, CONFIG, "process")
    show_collection(Screen(json=True), cached, engine, CONFIG, "process", output=str(tmp_path / "mine"))
    assert json.loads(capsys.readouterr().out)["added"] == open_version(tmp_path / "mine").manifest.rows("trajectories")
    assert sorted(version.dataset.rglob("*")) == before
