"""What counts as the program of a completion, and that hostile completions cost no more than their length."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobalt_data.programs import extract_program, strip_thinking

FENCE = "```"


def block(code: str, label: str = "python") -> str:
    return f"{FENCE}{label}\n{code}\n{FENCE}\n"


def test_the_last_complete_python_block_is_the_program():
    text = "First try:\n" + block("a = 1") + "Better:\n" + block("a = 2") + block("x", "text") + "Done."
    assert extract_program(text) == "a = 2"


def test_a_labelled_block_beats_a_later_unlabelled_one():
    assert extract_program(block("a = 1") + block("sample output", "")) == "a = 1"


def test_an_unlabelled_block_counts_where_no_python_block_exists():
    assert extract_program("Here:\n" + block("a = 1", "") + block("a = 2", "")) == "a = 2"


@pytest.mark.parametrize("label", ["Python", "py", "python3", "python title=solution.py", " python "])
def test_spellings_of_the_label_are_python(label):
    assert extract_program(block("a = 1", label)) == "a = 1"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no code here",
        "print(1)",
        block("int main() {}", "cpp"),
        block("   \n\t"),
        f"inline {FENCE}python a = 1{FENCE}",
    ],
)
def test_text_without_a_block_holds_no_program(text):
    assert extract_program(text) is None


def test_a_block_that_ran_out_of_tokens_is_no_program_and_leaves_the_earlier_one():
    unfinished = f"{FENCE}python\nfor i in range("
    assert extract_program(unfinished) is None
    assert extract_program(block("a = 1") + unfinished) == "a = 1"


def test_a_block_given_up_for_a_new_one_is_not_glued_to_it():
    assert extract_program(f"{FENCE}python\na = 1\n{FENCE}python\na = 2\n{FENCE}") == "a = 2"


def test_a_longer_fence_may_hold_a_shorter_one():
    code = f'"""\n{FENCE}\nexample\n{FENCE}\n"""'
    assert extract_program(f"`{FENCE}python\n{code}\n`{FENCE}") == code


def test_backticks_within_a_line_of_code_do_not_end_the_block():
    assert extract_program(block(f"print('{FENCE}')")) == f"print('{FENCE}')"


def test_the_indentation_of_the_fence_is_taken_off_and_no_more():
    text = f"1. So:\n   {FENCE}python\n   if x:\n       y()\n  z()\n   {FENCE}"
    assert extract_program(text) == "if x:\n    y()\nz()"


def test_line_ends_of_windows_and_unicode_separators_survive():
    assert extract_program(block("a = 1\r\nb = 2").replace("\n", "\r\n").replace("\r\r", "\r")) == "a = 1\nb = 2"
    assert extract_program(block("s = 'a\u2028b\x0cc'")) == "s = 'a\u2028b\x0cc'"


def test_code_in_the_thinking_is_not_the_answer():
    assert extract_program("<think>\n" + block("a = 1") + "</think>\n" + block("a = 2")) == "a = 2"
    assert extract_program("<think>\n" + block("a = 1") + "</think>\nI give up.") is None
    assert extract_program("<think>\n" + block("a = 1")) is None
    assert extract_program(block("a = 1") + "</think>\n") is None  # the template itself may have opened the thinking


def test_thinking_is_stripped_and_the_answer_cut():
    assert strip_thinking("<think>a</think>\n\nb") == "b"
    assert strip_thinking("a</think>b</think>c") == "c"
    assert strip_thinking("<think>never ends") == ""
    assert strip_thinking("  plain answer ") == "  plain answer "
    assert strip_thinking("<think></think>" + "x" * 10_000) == "x" * 6_000
    assert strip_thinking("abcdef", max_chars=3) == "abc"


@given(st.lists(st.sampled_from(["<think>", "</think>", FENCE, "python", "\n", "a = 1", " ", "`"]), max_size=30))
def test_any_completion_is_read_and_stripping_twice_changes_nothing(parts):
    text = "".join(parts)
    program = extract_program(text)
    assert program is None or program.strip()
    assert strip_thinking(strip_thinking(text)) == strip_thinking(text)


@given(st.text(alphabet=st.characters(exclude_characters="`\r", exclude_categories=["Cs"]), min_size=1))
def test_a_program_without_backticks_comes_back_as_it_was(code):
    expected = code if code.strip() and "</think>" not in code else None
    assert extract_program(block(code)) == expected


@pytest.mark.parametrize(
    "text",
    ["`" * 400_000, "```\n" * 100_000, "```python\n" * 50_000, "<think>" * 60_000, "</think>" * 50_000, " " * 400_000],
)
def test_hostile_text_costs_linear_time(text):
    start = time.process_time()
    extract_program(text)
    assert time.process_time() - start < 1.0
