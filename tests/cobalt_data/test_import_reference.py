"""The reference code's conversations and perturbed problems, and rows that are cobalt's own."""

import gzip
import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from builders import make_all_tables, make_problem, rated

from cobalt_data.commit import commit
from cobalt_data.cut import CutConfig, cut
from cobalt_data.errors import InputError
from cobalt_data.importers import import_problems
from cobalt_data.rows import Prompt, Trajectory
from cobalt_data.schemas import TABLES
from cobalt_data.verify import verify
from sandbox import Verdict

INPUTS, OUTPUTS = ["1", "2", "3", "4", "5", "6"], ["2", "4", "6", "8", "10", "12"]


def cases(*positions, outputs=OUTPUTS):
    return json.dumps({"inputs": [INPUTS[p] for p in positions], "outputs": [outputs[p] for p in positions]})


def chat(*programs):
    messages = [{"role": "system", "content": "Be good."}, {"role": "user", "content": "Double it."}]
    for number, program in enumerate(programs):
        messages.append({"role": "assistant", "content": f"```python\n{program}\n```"})
        messages.append({"role": "user", "content": f"feedback {number}"})
    return messages


def results(*passing, feedback=""):
    return {"passing": list(passing), "feedback": [feedback] * len(passing)}


def reference_row(**changes):
    """Two conversations of two turns: four public tests, two hidden ones."""
    return {
        "id": 5,
        "difficulty": "EASY",
        "question": "Double it.",
        "test_cases": cases(*range(6)),
        "public_test_cases": cases(0, 1, 2, 3),
        "hidden_test_cases": cases(4, 5),
        "conversations": [chat("a", "b"), chat("c", "d")],
        "public_exec_results": [
            [results(True, True, False, False, feedback="Timeout: too slow"), results(False, feedback="Failed to extract code")],
            [results(True, True, True, True), results(True, True, True, False, feedback="Traceback (most recent call last):\nE")],
        ],
        "public_pass_rates": [[0.5, 0.0], [1.0, 0.75]],
        "all_pass_rates": [[0.0, 1.0], [0.5, 0.5]],
        **changes,
    }  # fmt: skip


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def imported(tmp_path, *rows, **settings):
    return import_problems(write(tmp_path / "rows.jsonl", *rows), "reference", **settings)


def refusal(source, format="reference"):
    with pytest.raises(InputError) as caught:
        import_problems(source, format)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def by_sample(trajectories):
    return sorted(trajectories, key=lambda trajectory: trajectory.sample_index)


def test_conversations_become_trajectories_with_the_rates_of_all_tests(tmp_path):
    found = imported(tmp_path, reference_row(), model="qwen")
    first, second = by_sample(found.trajectories)
    assert first.pass_rates == pytest.approx((2 / 6, 1.0)) and second.pass_rates == pytest.approx((1 / 6, 4 / 6))
    assert (first.model, first.problem_id, first.perturbation) == ("qwen", "reference/5", None)
    assert [turn.program for turn in second.turns] == ["c", "d"]
    assert [turn.feedback for turn in first.turns] == ["feedback 0", "feedback 1"]
    assert [turn.hidden_pass_rate for turn in first.turns] == [0.0, 1.0]
    assert [outcome.verdict for outcome in first.turns[0].public] == [
        Verdict.PASSED, Verdict.PASSED, Verdict.TIME_LIMIT, Verdict.TIME_LIMIT,
    ]  # fmt: skip
    assert {outcome.verdict for outcome in second.turns[0].public} == {Verdict.NO_CODE}
    assert second.turns[1].public[3].verdict is Verdict.RUNTIME_ERROR


def test_imported_trajectories_are_sound_and_can_be_cut(tmp_path):
    found = imported(tmp_path, reference_row(), side="train")
    version = commit(found.as_change("rows.jsonl", format="reference"), dataset=tmp_path / "d")
    assert list(verify(version)) == [] and version.manifest.rows("trajectories", "train") == 2
    change = cut(version, CutConfig("estimate"), lambda chat: 9)
    assert change.tables["prompts"].num_rows == 3  # the problem's, and two of the conversation that ends well


def test_public_results_may_be_kept_by_sample_or_be_missing(tmp_path):
    wanted = imported(tmp_path, reference_row()).trajectories
    row = reference_row()
    third = chat("e", "f")
    row["conversations"] = [*row["conversations"], third]
    row["all_pass_rates"] = [*row["all_pass_rates"], [0.0, 0.0]]
    row["public_pass_rates"] = [[0.5, 1.0], [0.0, 0.75], [0.0, 0.0]]  # three samples of two turns
    del row["public_exec_results"]
    found = by_sample(imported(tmp_path, row).trajectories)
    assert [made.pass_rates for made in found[:2]] == [made.pass_rates for made in by_sample(wanted)]
    assert found[0].turns[0].public == () and len(found[0].turns[1].public) == 4
    del row["public_pass_rates"]
    assert by_sample(imported(tmp_path, row).trajectories)[1].pass_rates == (0.5, 0.5)


def test_feedback_that_utf_8_cannot_hold_is_told_by_field(tmp_path):
    half = results(False, False, False, False, feedback="Traceback (most recent call last)\ud800")
    row = reference_row(public_exec_results=[[half, half], [half, half]])
    assert "public_exec_results.feedback" in refusal(write(tmp_path / "rows.jsonl", row))


def test_public_rates_without_verdicts_are_enough_to_cut(tmp_path):
    row = reference_row()
    whole = commit(imported(tmp_path, row).as_change("rows.jsonl"), dataset=tmp_path / "whole")
    del row["public_exec_results"]
    bare = commit(imported(tmp_path, row).as_change("rows.jsonl"), dataset=tmp_path / "bare")
    all_of_them = CutConfig("estimate", select="all", skip_solved=False)
    counts = [cut(version, all_of_them, lambda chat: 9).counts for version in (whole, bare)]
    assert counts[0] == counts[1] and counts[0]["prompts"].rows_out == 5


@pytest.mark.parametrize("replaced", [False, True])
def test_a_perturbed_problem_keeps_its_true_tests_and_records_the_lie(tmp_path, replaced):
    lies = ["6", "4", "2", "8", "10", "12"]
    perturbed = cases(2, 0, 1, 3, outputs=lies)
    row = reference_row(modified_test_cases=cases(2, 0, outputs=lies), perturbed_public_test_cases=perturbed)
    if replaced:
        row["public_test_cases"] = perturbed
    found = imported(tmp_path, row)
    (problem,) = found.problems
    assert {(test["input"], test["output"]) for test in problem.public_tests} == {(n, str(2 * int(n))) for n in "1234"}
    lie = problem.metadata["perturbation"]
    assert lie["kind"] == "swap" and lie["true_outputs"] == ["6", "2"] and lie["told_outputs"] == ["2", "6"]
    assert [problem.public_tests[place]["input"] for place in lie["tests"]] == ["3", "1"]
    assert all(trajectory.perturbation == lie for trajectory in found.trajectories)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"conversations": "x"}, "field 'conversations' holds text that is no JSON"),
        ({"conversations": [[]]}, "field 'conversations[0]' is no task followed by programs"),
        ({"conversations": [chat("a")[:2]]}, "field 'conversations[0]' is no task followed by programs"),
        ({"conversations": [chat("a")[1:] + chat("b")]}, "field 'conversations[0]' is no task followed by programs"),
        ({"conversations": [[{"role": "user"}]]}, "field 'conversations[0][0].content' is null"),
        ({"conversations": [["hello"]]}, "field 'conversations[0][0]' is \"hello\": it must be an object"),
        ({"all_pass_rates": None}, "field 'all_pass_rates' is missing: run the hidden tests"),
        ({"all_pass_rates": [[1.0], [0.0, 1.0]]}, "field 'all_pass_rates' does not have one rate for each program"),
        ({"all_pass_rates": [[1.0, 1.5], [0.0, 1.0]]}, "is 1.5: it must be a share in [0, 1]"),
        ({"all_pass_rates": [[1.0, 10**400], [0.0, 1.0]]}, "it must be a share in [0, 1]"),
        ({"all_pass_rates": [[1.0, float("nan")], [0.0, 1.0]]}, "is NaN: it must be a share in [0, 1]"),
        ({"public_pass_rates": [[0.5]]}, "the public results do not have one entry"),
        ({"public_pass_rates": [["x", 1], [1, 1]]}, "field 'public_pass_rates[0][0]' is \"x\""),
        ({"public_exec_results": [[{"passing": 1}, {}], [{}, {}]]}, "field 'public_exec_results.passing' is 1"),
        ({"modified_test_cases": '{"inputs": ["99"], "outputs": ["1"]}'}, "holds an input that no public test has"),
    ],
)
def test_a_row_whose_parts_do_not_fit_is_told_by_field(tmp_path, changes, said):
    message = refusal(write(tmp_path / "a.jsonl", reference_row(**changes)))
    assert message.startswith(f"{tmp_path / 'a.jsonl'}:1: ") and said in message


def test_prompts_that_the_reference_code_selected_are_told_apart(tmp_path):
    row = {
        "example_id": 1,
        "conversation": chat(),
        "test_cases": cases(0),
        "difficulty": "EASY",
        "prev_best_pass_rate": 0,
    }
    assert "import its conversations instead, then cut" in refusal(write(tmp_path / "a.jsonl", row))


def own_rows(version, name):
    return list(version.rows(name))


def test_a_version_and_its_exported_rows_come_back_with_the_same_ids(tmp_path):
    version = make_all_tables(tmp_path / "d")
    found = import_problems(version.path, "cobalt")
    assert found.rows_in == found.rows_out == sum(map(version.manifest.rows, TABLES))
    again = commit(found.as_change("x", format="cobalt"), dataset=tmp_path / "e")
    assert all(own_rows(again, name) == own_rows(version, name) for name in ("problems", "trajectories", "prompts"))
    folder = tmp_path / "files"
    folder.mkdir()
    write(folder / "problems.jsonl", *own_rows(version, "problems"))
    (folder / "trajectories.jsonl.gz").write_bytes(
        gzip.compress("\n".join(map(json.dumps, own_rows(version, "trajectories"))).encode())
    )
    pq.write_table(version.table("prompts"), folder / "prompts.parquet")
    third = commit(import_problems(folder, "cobalt").as_change("x", format="cobalt"), dataset=tmp_path / "f")
    assert third.id == again.id and list(verify(third)) == []
    alone = import_problems(folder / "prompts.parquet", "cobalt")
    assert len(alone.prompts) == 12 and not alone.problems and alone.rows_in == 12


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"trajectory_id": "0" * 16}, "its content has the id"),
        ({"solved": True}, "does not agree with the rest of the row in solved"),
        ({"turns": "[]"}, "is not a row of this table"),
        ({"turns": None}, "is not a row of this table"),
        ({"sample_index": "3"}, "its content has the id"),
        ({"messages": None}, "is not a row of this table"),
        ({"more": 1}, "field 'more' is no column of trajectories"),
        ({"split": ...}, "field 'split' is missing"),
        ({"best_pass_rate": float("nan")}, "does not agree"),
        ({"messages": []}, "holds 0 programs, but it has 2 turns"),
        ({"messages": 9 * [{"role": "assistant", "content": "x"}]}, "does not begin with a task"),
    ],
)
def test_a_row_that_cobalt_would_not_write_is_refused(tmp_path, changes, said):
    row = {**rated(make_problem(), [0.5, 0.25]).to_row(), **changes}
    row = {name: value for name, value in row.items() if value is not ...}
    assert said in refusal(write(tmp_path / "a.jsonl", row), "cobalt")


def test_what_a_column_would_cut_off_is_refused(tmp_path):
    made = rated(make_problem(), [0.5, 0.25])
    row = {**made.to_row(), "messages": [{**message, "name": "x"} for message in made.messages]}
    assert "field 'messages' is" in refusal(write(tmp_path / "a.jsonl", row), "cobalt")
    row = replace(made, sample_index=1.5).to_row()
    assert "field 'sample_index' is 1.5: it must be a whole number" in refusal(
        write(tmp_path / "a.jsonl", row), "cobalt"
    )


def test_a_prompt_with_more_turns_than_its_trajectory_is_refused_wherever_that_stands(tmp_path):
    version = make_all_tables(tmp_path / "d")
    (first, *others) = map(Prompt.from_row, version.rows("prompts"))
    longer = replace(first, turn=3, prompt=(*first.prompt, *(2 * first.prompt[1:])))
    folder = tmp_path / "files"
    folder.mkdir()
    write(folder / "trajectories.jsonl", *own_rows(version, "trajectories"))
    write(folder / "prompts.jsonl", longer.to_row(), *(prompt.to_row() for prompt in others))
    said = f"prompts.jsonl:1: prompt {longer.prompt_id} has 3 turns, more than its trajectory"
    assert said in refusal(folder, "cobalt")
    found = import_problems(folder, "cobalt", skip_bad_rows=True)
    assert (len(found.prompts), found.left_out, found.rows_in) == (11, {"prompts": {"not sound": 1}}, 24)
    assert len(import_problems(folder / "prompts.jsonl", "cobalt").prompts) == 12  # nothing tells


@pytest.mark.parametrize(
    ("column", "value"),
    [("problem_id", ["p"]), ("source", None), ("title", None), ("split", None), ("split", '{"a":'), ("split", "../x")],
)
def test_a_value_that_its_column_cannot_hold_is_refused_by_name(tmp_path, column, value):
    row = {**make_problem().to_row(), column: value}
    assert f"field '{column}' is" in refusal(write(tmp_path / "a.jsonl", row), "cobalt")


def test_tests_that_nothing_could_run_are_refused(tmp_path):
    for test, said in (
        ({"kind": "stdin", "public": True, "input": "1"}, "test.output is 'None'"),
        ({"kind": "call", "public": True, "args": [], "expected": 1}, "needs judge.entry_point"),
        ({"kind": "stdin", "input": "1", "output": "1"}, "public"),
        ("x", "must be an object"),
    ):
        row = {**make_problem().to_row(), "tests": json.dumps([test], sort_keys=True, separators=(",", ":"))}
        assert said in refusal(write(tmp_path / "a.jsonl", row), "cobalt")
    (tmp_path / "empty").mkdir()
    assert "holds none of problems.parquet" in refusal(tmp_path / "empty", "cobalt")


def test_a_row_with_other_conversations_is_no_repetition_and_which_one_is_kept_is_not_for_the_order_to_say(tmp_path):
    rows = [reference_row(), reference_row(conversations=[chat("a", "x"), chat("c", "d")])]
    assert "was used before" in refusal(write(tmp_path / "rows.jsonl", *rows))
    kept = [imported(tmp_path, *order, skip_bad_rows=True) for order in (rows, rows[::-1])]
    assert kept[0].trajectories == kept[1].trajectories and kept[0].dropped == {"duplicate id": 1}


def test_repeated_rows_count_once_and_trajectories_keep_their_type(tmp_path):
    row = rated(make_problem(), [0.5, 1.0]).to_row()
    found = import_problems(write(tmp_path / "a.jsonl", row, row), "cobalt")
    assert found.trajectories == [Trajectory.from_row(row)] and found.dropped == {"repeated row": 1}
