"""Templates: every situation has its words, and a template with a mistake in it is refused when it is loaded."""

import pytest

from cobalt_data.errors import InputError
from cobalt_data.programs import extract_program
from cobalt_data.rows import Problem, PublicOutcome
from cobalt_data.templates import FOLDER, Template, template_for
from sandbox import Judge, Verdict

NAMES = sorted(file.stem for file in FOLDER.glob("*.toml"))
STDIN = {"kind": "stdin", "public": True, "input": "1 2\n", "output": "3\n"}
CALL = {"kind": "call", "public": True, "args": [[2, 1]], "kwargs": {}, "expected": {"$tuple": [1, 2]}}
ASSERT = {"kind": "assert", "public": True, "code": "assert abs(f(2) - 1.41) < 0.01"}


def problem(judge=None, statement="Print the sum.", starter_code="", tests=(STDIN,)):
    return Problem("p", "s", "t", None, statement, starter_code, tuple(tests), judge or Judge(), (), {})


def outcome(verdict, stdout="", stderr="", returned=None):
    return PublicOutcome(verdict, stdout, stderr, returned)


def said(template, judge=None, test=STDIN, **fields):
    verdict = fields.pop("verdict", Verdict.WRONG_ANSWER)
    return template.feedback([test], [outcome(verdict, **fields)], judge or Judge(entry_point="f"))


@pytest.fixture(params=NAMES)
def template(request):
    return Template.load(request.param)


def test_the_first_turn_asks_for_a_program_in_one_block_after_the_statement(template):
    chat = template.first_turn(problem(statement="Print the $sum of ```two``` numbers."))
    roles = [message["role"] for message in chat if message["role"] != "system"]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    asked = chat[-1]["content"]
    assert "Print the $sum of ```two``` numbers." in asked
    assert "```python" in asked.splitlines()[-1]
    assert "input" in asked


def test_the_first_turn_names_what_must_be_defined_and_shows_the_starter_code(template):
    starter = "def add(a, b):\n    ..."
    function = template.first_turn(problem(Judge(entry_point="add"), starter_code=starter))[-1]["content"]
    assert "function `add`" in function and starter in function and "standard input" not in function
    method = template.first_turn(problem(Judge(entry_point="Solution().add")))[-1]["content"]
    assert "class `Solution`" in method and "method `add`" in method


def test_worked_examples_are_worded_as_the_problem_is_and_judged_as_it_is():
    template = Template.load("worked_examples")
    program = template.first_turn(problem(statement="Add.", starter_code="a = input()"))
    function = template.first_turn(problem(Judge(entry_point="f"), statement="Add.", starter_code="def f(a):"))
    assert len(program) > len(function) > 2
    for chat, given in ((program, "input()"), (function, "def ")):
        examples, asked = chat[1:-1], chat[-1]["content"]
        for question, answer in zip(examples[::2], examples[1::2], strict=True):
            assert given in question["content"]
            assert question["content"].splitlines()[-1] == asked.splitlines()[-1]
            assert extract_program(answer["content"]) is not None


def test_a_wrong_answer_shows_input_output_and_expected_output(template):
    text = said(template, stdout="4\n")
    assert text.index("1 2") < text.index("4") < text.index("3")
    assert "nothing" in said(template, stdout=" \n")


def test_a_wrong_call_shows_python_expressions(template):
    text = said(template, test=CALL, returned="[2, 1]")
    assert text.index("f([2, 1])") < text.index("[2, 1]\n") < text.index("(1, 2)")


def test_a_failed_assert_shows_the_assert_alone(template):
    text = said(template, test=ASSERT)
    assert ASSERT["code"] in text and "nothing" not in text


def test_a_crash_shows_the_traceback_in_place_of_the_expected_output(template):
    stderr = 'Traceback (most recent call last):\n  File "main.py", line 1, in <module>\nValueError: bad'
    text = said(template, verdict=Verdict.RUNTIME_ERROR, stderr=stderr)
    assert "1 2" in text and "ValueError: bad" in text and "3" not in text


def test_limits_say_how_much_was_allowed(template):
    judge = Judge(time_limit_s=2.5, memory_mb=77)
    assert "2.5 seconds" in said(template, judge, verdict=Verdict.TIME_LIMIT)
    assert "77 MiB" in said(template, judge, verdict=Verdict.MEMORY_LIMIT)
    assert "print" in said(template, judge, verdict=Verdict.OUTPUT_LIMIT)


def test_code_that_cannot_run_is_told_why_and_shows_no_test(template):
    syntax = said(template, verdict=Verdict.SYNTAX_ERROR, stderr="SyntaxError: '(' was never closed")
    assert "never closed" in syntax and "1 2" not in syntax
    missing = said(template, verdict=Verdict.NO_CODE)
    assert "```python" in missing and "1 2" not in missing


def test_only_the_first_failing_public_test_is_shown(template):
    tests = [{**STDIN, "input": f"input{i}"} for i in range(4)]
    verdicts = [Verdict.PASSED, Verdict.TIME_LIMIT, Verdict.WRONG_ANSWER, Verdict.PASSED]
    text = template.feedback(tests, [outcome(verdict) for verdict in verdicts], Judge())
    assert "input1" in text and not any(f"input{i}" in text for i in (0, 2, 3))


def test_a_program_that_passes_is_asked_about_edge_cases(template):
    text = said(template, verdict=Verdict.PASSED)
    assert "passes all public tests" in text and "edge cases" in text


def test_without_public_tests_there_is_no_feedback(template):
    assert template.feedback([], [], Judge()) == ""


def test_each_part_of_a_huge_test_is_cut_with_its_middle_left_out(template):
    test = {**STDIN, "input": "i" * 10_000, "output": "e" * 10_000}
    text = said(template, test=test, stdout="o" * 10_000)
    assert max(map(text.count, "ieo")) < 450 and text.count("[...]") == 3


@pytest.mark.parametrize("verdict", set(Verdict))
@pytest.mark.parametrize("test", [STDIN, CALL, ASSERT], ids=lambda test: test["kind"])
def test_every_verdict_on_every_kind_of_test_has_its_words_and_asks_for_an_answer(template, verdict, test):
    text = said(template, test=test, verdict=verdict, stderr="$input ${x", stdout="$", returned='"$y"')
    assert "```python" in text.splitlines()[-1]


def test_the_hash_covers_the_words_and_nothing_else(tmp_path):
    original = (FOLDER / "paper.toml").read_text()
    copy = tmp_path / "mine.toml"
    copy.write_text("# another comment\n" + original)
    assert Template.load(str(copy)).hash == Template.load("paper").hash
    copy.write_text(original.replace("public", "visible"))
    assert Template.load(str(copy)).hash != Template.load("paper").hash
    assert Template.load(str(copy)).name == "mine"


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("$statement", "$statment", "$statment"),
        ("$statement", "costs 5$", "$$"),
        ('nothing = "(nothing)"', "", "feedback.nothing is missing"),
        ('nothing = "(nothing)"', "nothing = 3", "feedback.nothing is missing or no text"),
        ('nothing = "(nothing)"', 'nothing = ""\nextra = ""', "feedback.extra"),
        ('system = ""', "", "system"),
        ("[feedback]", "[feedback", "cannot be read"),
        ('system = ""', 'system = ""\nexamples = [{statement = "Add."}]', "examples"),
        (
            'system = ""',
            'system = ""\nexamples = [{statement = 5, starter_code = "", program = "pass"}]',
            "statement is 5, which is no text",
        ),
    ],
)
def test_a_template_with_a_mistake_is_refused_by_name(tmp_path, old, new, named):
    path = tmp_path / "mine.toml"
    path.write_text((FOLDER / "paper.toml").read_text().replace(old, new))
    with pytest.raises(InputError) as refusal:
        Template.load(str(path))
    assert named in str(refusal.value) and "mine" in str(refusal.value)


def test_an_unknown_template_names_those_that_exist():
    with pytest.raises(InputError, match="paper, worked_examples"):
        Template.load("nonsense")


def test_auto_gives_small_models_the_worked_examples():
    assert template_for("auto", "HuggingFaceTB/SmolLM2-135M-Instruct").name == "worked_examples"
    assert template_for("auto", "smollm2-135m").name == "worked_examples"
    assert template_for("auto", "Qwen/Qwen3-8B").name == "paper"
    assert template_for("paper", "smollm2-135m").name == "paper"


def test_a_checkpoint_goes_on_with_the_template_of_its_prompts(tmp_path):
    checkpoint = tmp_path / "run" / "checkpoint-000010"
    checkpoint.mkdir(parents=True)
    (checkpoint / "cobalt.json").write_text('{"template": {"name": "worked_examples", "hash": "0"}}')
    assert (
        template_for("auto", str(checkpoint)).name
        == template_for("auto", str(tmp_path / "run")).name
        == "worked_examples"
    )
    (checkpoint / "cobalt.json").write_text('{"template": null}')
    assert template_for("auto", str(checkpoint)).name == "paper"
