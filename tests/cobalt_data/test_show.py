"""Finding a row by its id, laying it out turn by turn, and keeping the terminal safe from its text."""

import io
import json
from dataclasses import asdict, replace

import pytest
from builders import count_words, make_all_tables, make_dataset, make_problem, make_trajectory, make_turn, rated
from rich.console import Console

from cobalt_data.commit import Change, commit
from cobalt_data.console import Screen
from cobalt_data.cut import CutConfig, cut
from cobalt_data.errors import InputError
from cobalt_data.history import history
from cobalt_data.manifest import Counts
from cobalt_data.rendering import plain, render_history, render_shown, render_stats
from cobalt_data.rows import Prompt
from cobalt_data.show import program_diff, show
from cobalt_data.split import SplitConfig, split
from cobalt_data.stats import stats

PROBLEM = make_problem()


def screen(renderable):
    console = Console(file=io.StringIO(), width=200)
    console.print(renderable)
    return console.file.getvalue()


def test_nothing_is_cut_off_where_the_screen_is_narrow(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    turn = make_turn(f"print({'1' * 90})", feedback=f"too\n{'long ' * 30}for a line")
    trajectory = make_trajectory(make_problem("p" * 80), [turn])
    sides = [make_problem(f"s{index}", split=f"a_side_with_a_long_name_{index}") for index in range(5)]
    version = make_dataset(tmp_path / "d", [make_problem("p" * 80), *sides], [trajectory])
    for renderable, whole in (
        (render_shown(show(version)), [f"  {line}" for line in turn.feedback.split("\n")] + [f"problem: {'p' * 80}\n"]),
        (render_stats(stats(version)), [problem.split for problem in sides] + ["trajectories"]),
    ):
        Screen().result({}, renderable)
        said = capsys.readouterr().out
        assert [part for part in whole if part not in said] == []


def test_by_default_the_first_solved_trajectory_is_shown(tmp_path):
    solved, unsolved = rated(PROBLEM, [0.0, 1.0], 1), [rated(PROBLEM, [0.0, 0.5], index) for index in range(2, 9)]
    assert show(make_dataset(tmp_path / "d", [PROBLEM], [solved, *unsolved])).id == solved.trajectory_id
    version = make_dataset(tmp_path / "e", [PROBLEM], unsolved)
    assert show(version).id == min(trajectory.trajectory_id for trajectory in unsolved)
    assert show(make_dataset(tmp_path / "f", [PROBLEM])).id == "p0"


def test_a_version_of_prompts_alone_shows_its_first_prompt(tmp_path):
    prompts = make_all_tables(tmp_path / "d").table("prompts")
    version = commit(Change("import", {}, None, {"prompts": prompts}, {}), dataset=tmp_path / "e")
    assert show(version).id == min(prompts["prompt_id"].to_pylist())


def test_rows_are_found_by_a_unique_beginning_of_their_id(tmp_path):
    trajectory = rated(PROBLEM, [0.0, 1.0])
    version = make_dataset(tmp_path / "d", [PROBLEM, make_problem("p00"), make_problem("p01")], [trajectory])
    assert show(version, trajectory.trajectory_id[:8]).table == "trajectories"
    assert show(version, "p0").id == "p0"  # all of an id, though others begin like it
    with pytest.raises(InputError, match="3 ids begin with 'p'"):
        show(version, "p")
    with pytest.raises(InputError, match="no problem, trajectory or prompt"):
        show(version, "q")


def test_a_turn_shows_its_program_what_changed_and_what_was_said(tmp_path):
    turns = [make_turn("print(1)\nprint(2)"), make_turn("print(1)\nprint(3)", 1.0, 1.0, "all pass"), make_turn(None)]
    shown = show(make_dataset(tmp_path / "d", [PROBLEM], [make_trajectory(PROBLEM, turns)]))
    assert shown.turns[0].diff is None
    assert shown.turns[1].diff.splitlines()[1:] == [" print(1)", "-print(2)", "+print(3)"]
    assert shown.turns[1].verdicts == ["passed"] and shown.turns[1].feedback == "all pass"
    assert shown.turns[2].program is None and "-print(3)" in shown.turns[2].diff
    text = screen(render_shown(shown))
    assert text.startswith("trajectory ")
    assert "turn 1: all 100%, public 100%, hidden 100%" in text and "no program (stop after 5 tokens)" in text
    json.dumps(asdict(shown))


def test_the_same_program_again_has_an_empty_diff():
    assert program_diff("a\nb", "a\nb") == ""


def test_a_prompt_shows_its_own_last_feedback(tmp_path):
    version = make_dataset(tmp_path / "d", [PROBLEM], [rated(PROBLEM, [0.0, 0.5, 1.0])])
    prompts = [
        Prompt.from_row(row) for row in cut(version, CutConfig("words"), count_words).tables["prompts"].to_pylist()
    ]
    (last,) = [prompt for prompt in prompts if prompt.turn == 2]
    lie = last.with_last_message("a lie", {"kind": "swap", "tests": [0, 1], "true_outputs": ["2\n", "4\n"]})
    version = make_dataset(tmp_path / "e", [PROBLEM], [rated(PROBLEM, [0.0, 0.5, 1.0])], [lie])
    shown = show(version, lie.prompt_id)
    assert [turn.feedback for turn in shown.turns] == ["feedback 0 0", "a lie"]
    assert shown.facts["perturbed"] == "swap" and json.loads(shown.facts["true outputs"]) == ["2\n", "4\n"]
    assert "a lie" in screen(render_shown(shown))


def test_a_turn_0_prompt_and_a_problem_are_shown_without_turns(tmp_path):
    version = make_dataset(tmp_path / "d", [PROBLEM], [rated(PROBLEM, [0.0, 0.0])])
    version = commit(cut(version, CutConfig("words"), count_words), [version])
    (row,) = version.rows("prompts")
    shown = show(version, row["prompt_id"])
    assert shown.turns == () and PROBLEM.statement in shown.opening[-1]["content"]
    assert len(show(version, "p0").tests) == 4
    assert "hidden tests: 2" in screen(render_shown(show(version, "p0")))


@pytest.mark.parametrize(
    "hostile", ["\x1b[2J\x1b]0;title\x07", "[bold red]markup[/]", "\x9b31m", "\u202egnp.exe", "\ud800", "\r"]
)
def test_text_of_strangers_reaches_the_terminal_as_text(tmp_path, hostile):
    text = screen(plain(hostile))
    assert not any(character in text for character in "\x1b\x9b\x07\r\u202e")
    assert "markup" not in hostile or hostile in text
    problem = replace(PROBLEM, statement=hostile.encode("utf-8", "replace").decode())
    turns = [make_turn(f"print('{problem.statement}')", feedback=problem.statement)]
    version = make_dataset(tmp_path / "d", [problem], [make_trajectory(problem, turns)])
    shown = screen(render_shown(show(version))) + screen(render_shown(show(version, "p0")))
    assert not any(character in shown for character in "\x1b\x9b\x07\r\u202e")


def test_history_goes_back_to_the_import_and_says_what_was_left_out(tmp_path):
    imported = make_dataset(tmp_path / "d", [PROBLEM], [rated(PROBLEM, [0.0, 0.0])])
    placed = commit(split(imported, SplitConfig(seed=3)), [imported])
    prompts = commit(cut(placed, CutConfig("words"), count_words), [placed])
    entries = history(prompts)
    assert [entry.operation for entry in entries] == ["cut", "split", "import"]
    assert [entry.version for entry in entries] == [prompts.id, placed.id, imported.id]
    assert entries[0].counts["prompts"].dropped == {"its pass rate does not vary": 2}
    assert [entry.version for entry in history(placed)] == [placed.id, imported.id]
    text = screen(render_history(entries))
    assert "seed=3" in text and "prompts: 2 left out, its pass rate does not vary" in text


def test_history_says_how_many_rows_were_perturbed(tmp_path):
    imported = make_dataset(tmp_path / "d", [PROBLEM])
    counts = {"perturbed by swap": Counts(5, 2, {"beyond the fraction": 3})}
    lying = commit(Change("augment", {}, 0, {}, counts), [imported])
    text = screen(render_history(history(lying)))
    assert "perturbed by swap: 2 of 5" in text and "perturbed by swap: 3 left out, beyond the fraction" in text


def test_a_parent_of_another_dataset_is_named_and_not_looked_for(tmp_path):
    imported = make_dataset(tmp_path / "d", [PROBLEM])
    elsewhere = commit(split(imported, SplitConfig()), [imported], tmp_path / "e")
    (entry,) = history(elsewhere)
    assert entry.parents_elsewhere == (imported.id,)
    assert f"from {imported.id}" in screen(render_history([entry]))


def test_a_version_with_two_parents_comes_before_both_and_they_before_theirs(tmp_path):
    root = make_dataset(tmp_path / "d", [PROBLEM])
    one = commit(split(root, SplitConfig(seed=1)), [root])
    two = commit(split(one, SplitConfig(seed=2, reassign=True)), [one])
    merged = commit(split(two, SplitConfig(seed=3)), [two, root])
    order = [entry.version for entry in history(merged)]
    assert order == [merged.id, two.id, one.id, root.id]


def test_stats_render_with_and_without_trajectories(tmp_path):
    bare = make_dataset(tmp_path / "d", [PROBLEM, make_problem("p1", split="test", difficulty="hard")])
    assert "problems" in screen(render_stats(stats(bare)))
    full = make_dataset(tmp_path / "e", [PROBLEM], [rated(PROBLEM, [0.0, 1.0])])
    full = commit(cut(full, CutConfig("words"), count_words), [full])
    text = screen(render_stats(stats(full)))
    assert "Pass@1" in text and "turn 0: 1, turn 1: 1, turn 2: 1" in text
