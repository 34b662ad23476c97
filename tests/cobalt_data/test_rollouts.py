"""Conversations with a real sandbox: what is asked, what is judged, what ends and what is dropped."""

import threading
from dataclasses import replace

import pytest
from builders import call_test, make_problem, stdin_test
from scripted import ScriptedEngine, block

from cobalt_data.engines.base import Sampling
from cobalt_data.ids import derive_seed
from cobalt_data.rollouts import PROMPT_TOO_LONG, SANDBOX_FAILED, roll_out
from cobalt_data.rows import Trajectory
from cobalt_data.templates import Template
from cobalt_data.units import Abandoned, make_units
from sandbox import Judge, Pool, SandboxError, Verdict

DOUBLE = "print(2 * int(input()))"
TEMPLATE = Template.load("paper")


@pytest.fixture(scope="module")
def pool():
    with Pool(workers=2) as pool:
        yield pool


def rolled(pool, answer, problems=None, n=1, turns=3, context=None, engine=None, **arguments):
    problems = problems or [make_problem()]
    (unit,) = make_units(problems, [range(n)] * len(problems), len(problems))
    engine = engine or ScriptedEngine(answer, context)
    sampling = Sampling(max_tokens=10)
    return roll_out(
        unit, engine=engine, pool=pool, template=TEMPLATE, sampling=sampling, turns=turns, run_seed=7, **arguments
    )


def turn_of(chat):
    return sum(message["role"] == "assistant" for message in chat)


def test_a_conversation_alternates_programs_and_feedback_and_ends_with_feedback(pool):
    programs = ["print(0)", "print(", DOUBLE]
    (trajectory,) = rolled(pool, lambda chat, seed: block(programs[turn_of(chat)])).trajectories
    assert [message["role"] for message in trajectory.messages] == ["user", *["assistant", "user"] * 3]
    assert [turn.program for turn in trajectory.turns] == programs
    assert [turn.pass_rate for turn in trajectory.turns] == [0, 0, 1]
    assert [turn.public[0].verdict for turn in trajectory.turns] == [
        Verdict.WRONG_ANSWER,
        Verdict.SYNTAX_ERROR,
        Verdict.PASSED,
    ]
    assert [turn.feedback for turn in trajectory.turns] == [message["content"] for message in trajectory.messages[2::2]]
    assert "never closed" in trajectory.turns[1].feedback and "passes all public tests" in trajectory.turns[2].feedback


def test_nothing_stops_early(pool):
    (trajectory,) = rolled(pool, lambda chat, seed: block(DOUBLE), turns=4).trajectories
    assert trajectory.pass_rates == (1, 1, 1, 1)


def test_public_hidden_and_all_tests_are_counted_apart(pool):
    tests = [
        stdin_test("1", "1"),
        stdin_test("2", "x"),
        stdin_test("3", "3", public=False),
        stdin_test("4", "4", public=False),
    ]
    (trajectory,) = rolled(pool, lambda *_: block("print(input())"), [make_problem(tests=tests)], turns=1).trajectories
    (turn,) = trajectory.turns
    assert (turn.public_pass_rate, turn.hidden_pass_rate, turn.pass_rate) == (0.5, 1.0, 0.75)
    assert [outcome.verdict for outcome in turn.public] == [Verdict.PASSED, Verdict.WRONG_ANSWER]
    assert "Expected output:\nx" in turn.feedback


def test_every_sample_has_its_own_seed_from_what_it_is_and_the_group_is_one_prompt(pool):
    engine = ScriptedEngine(lambda chat, seed: block(f"print({seed})"))
    problems = [make_problem("a"), make_problem("b")]
    trajectories = rolled(pool, None, problems, n=3, turns=2, engine=engine).trajectories
    assert [(row.problem_id, row.sample_index) for row in trajectories] == [(p, i) for p in "ab" for i in range(3)]
    (first_chats, first_seeds), (later_chats, later_seeds) = engine.calls
    assert first_seeds == [[derive_seed(7, p, i, 0) for i in range(3)] for p in "ab"]
    assert len(first_chats) == 2 and len(later_chats) == 6
    assert later_seeds == [[derive_seed(7, p, i, 1)] for p in "ab" for i in range(3)]


def test_conversations_that_still_agree_are_one_prompt(pool):
    engine = ScriptedEngine(lambda chat, seed: "no code")
    rolled(pool, None, n=3, turns=2, engine=engine)
    assert [len(chats) for chats, _ in engine.calls] == [1, 1]
    assert [len(group) for _, groups in engine.calls for group in groups] == [3, 3]


def test_the_outcome_does_not_depend_on_the_company(pool):
    def answer(chat, seed):
        return block(DOUBLE if seed % 2 else f"print({seed % 5})")

    alone = rolled(pool, answer, [make_problem("b")], n=4).trajectories
    together = rolled(pool, answer, [make_problem(name) for name in "abc"], n=4).trajectories
    assert alone == tuple(row for row in together if row.problem_id == "b")


def test_an_answer_without_code_is_a_turn_that_fails(pool):
    (trajectory,) = rolled(pool, lambda *_: "I do not know.").trajectories
    assert [turn.program for turn in trajectory.turns] == [None] * 3
    assert {outcome.verdict for turn in trajectory.turns for outcome in turn.public} == {Verdict.NO_CODE}
    assert trajectory.turns[0].hidden_pass_rate == 0 and "no complete code block" in trajectory.turns[0].feedback


def test_thinking_is_not_served_again_and_long_answers_are_cut(pool):
    (trajectory,) = rolled(
        pool, lambda *_: "<think>" + "hm " * 999 + "</think>\n" + block(DOUBLE) + "\n" + "x" * 9000
    ).trajectories
    answers = [message["content"] for message in trajectory.messages if message["role"] == "assistant"]
    assert all(answer.startswith("```python") and len(answer) == 6000 for answer in answers)
    assert trajectory.turns[0].pass_rate == 1


def test_a_problem_without_public_tests_has_turn_0_only(pool):
    problem = make_problem(tests=[stdin_test("1", "2", public=False)])
    engine = ScriptedEngine(lambda *_: block(DOUBLE))
    (trajectory,) = rolled(pool, None, [problem], engine=engine).trajectories
    assert len(trajectory.turns) == 1 and len(engine.calls) == 1
    assert trajectory.messages[-1]["role"] == "assistant" and trajectory.turns[0].feedback == ""
    assert trajectory.turns[0].public_pass_rate is None and trajectory.turns[0].hidden_pass_rate == 1


def test_a_conversation_that_outgrows_the_context_keeps_the_turns_it_has(pool):
    engine = ScriptedEngine(lambda *_: block("print(0)"))
    room = engine.count_tokens(TEMPLATE.first_turn(make_problem()))
    (trajectory,) = rolled(pool, lambda *_: block("print(0)"), context=room + 10).trajectories
    assert len(trajectory.turns) == 1 and trajectory.messages[-1]["role"] == "user"
    too_small = rolled(pool, lambda *_: block("print(0)"), context=room + 9)
    assert too_small.trajectories == () and too_small.dropped == {PROMPT_TOO_LONG: 1}


def test_functions_are_judged_by_their_values(pool):
    problem = make_problem(
        tests=[call_test([[3, 1]], {"$tuple": [1, 3]}), call_test([[2]], [2], public=False)],
        judge=Judge(entry_point="go", time_limit_s=2.0),
    )
    programs = ["def go(x):\n    return list(x)", "def went(x):\n    pass", "def go(x):\n    return sorted(x)"]
    (trajectory,) = rolled(pool, lambda chat, seed: block(programs[turn_of(chat)]), [problem]).trajectories
    wrong, missing, right = trajectory.turns
    assert "go([3, 1])" in wrong.feedback and "[3, 1]\n" in wrong.feedback and "(1, 3)" in wrong.feedback
    assert "NameError" in missing.feedback and right.pass_rate == 1


HOSTILE = [
    "while True: pass",
    "print('x' * 10**9)",
    "x = bytearray(10**10)",
    "import os; os.kill(os.getppid(), 9)",
    "raise SystemExit('\\x00\\ud800')",
    "import sys; sys.stdout.buffer.write(bytes(range(256)) * 99)",
    "def f(): f()\nf()",
    "print(object())",
]


def test_hostile_programs_are_turns_like_any_other_and_their_rows_can_be_stored(pool):
    tests = [stdin_test("1", "2"), stdin_test("2", "4", public=False)]
    problem = make_problem(tests=tests, judge=Judge(time_limit_s=0.3, memory_mb=128))
    engine = ScriptedEngine(lambda chat, seed: block(HOSTILE[turn_of(chat)]))
    (trajectory,) = rolled(pool, None, [problem], turns=len(HOSTILE), engine=engine).trajectories
    assert set(trajectory.pass_rates) == {0}
    assert Trajectory.from_row(trajectory.to_row()) == trajectory
    text = "".join(message["content"] for message in trajectory.messages)
    text.encode("utf-8")
    assert "sandbox" not in text and "object at 0x...>" in text


def test_a_crash_shows_only_the_programs_own_frames(pool):
    program = "import json\ndef main():\n    json.loads('{')\nmain()"
    (trajectory,) = rolled(pool, lambda *_: block(program), turns=1).trajectories
    feedback = trajectory.turns[0].feedback
    assert feedback.count('File "main.py"') == 2 and feedback.count("File") == 2 and "JSONDecodeError" in feedback


class FailingPool:
    """A pool whose sandboxes break on one program, as the real one reports it after its retries."""

    def __init__(self, pool):
        self.pool = pool

    def submit(self, program, tests, judge):
        future = self.pool.submit(program, tests, judge)
        if program is not None and "break" in program:
            future.result()
            future = type(future)()
            future.set_exception(SandboxError("no agent"))
        return future


def test_a_conversation_that_the_sandbox_could_not_judge_is_dropped_and_counted(pool):
    first = derive_seed(7, "p0", 0, 0)
    result = rolled(
        FailingPool(pool), lambda chat, seed: block("print('break')" if seed == first else DOUBLE), n=3, turns=2
    )
    assert [row.sample_index for row in result.trajectories] == [1, 2] and result.dropped == {SANDBOX_FAILED: 1}


def test_an_abandoned_unit_is_left_and_gives_no_result(pool):
    abandoned = threading.Event()

    def answer(chat, seed):
        abandoned.set()
        return block(DOUBLE)

    for turns in (1, 3):
        abandoned.clear()
        with pytest.raises(Abandoned):
            rolled(pool, answer, turns=turns, abandoned=abandoned)


def test_ids_differ_by_sample_seed_and_template_and_not_by_what_was_said(pool):
    (one,) = rolled(pool, lambda *_: "a").trajectories
    (other,) = rolled(pool, lambda *_: "b").trajectories
    assert one.trajectory_id == other.trajectory_id
    assert replace(one, sample_index=1).trajectory_id != one.trajectory_id
    assert one.sampling["template"] == "paper" and one.sampling["template_hash"] == TEMPLATE.hash
